"""Renews the tokens of the members daily, so that one that is stolen is soon worth nothing.

Watches Clusters. Reads and writes the Secrets of the members: the member makes a new token of the account
that the present one is of, which is stored before it is used. Asks membership/member_token. A member that
cannot be reached is asked again; its token is good for days.
"""

import base64
from typing import Any

from federation.api import Cluster
from federation.hub import metrics
from federation.hub.hub import Hub, refer_to
from federation.hub.sessions import PUSH, Session, Sessions
from federation.hub.workqueue import QueueSettings, WorkQueue
from federation.membership.kubeconfig import read_text
from federation.membership.member_token import (
    MemberToken,
    find_renewal,
    read_new_token,
    read_token,
    write_token_request,
)
from federation.objects import resources
from federation.objects.names import Key
from federation.objects.resources import Login
from reberth.client.events import WARNING
from reberth.cluster.kinds import Resource
from reberth.runtime.logs import Log
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.errors import ApiError, ConfigurationError

_REFUSED = "TokenNotRenewed"
_SHORTEST = 600

log = Log(__name__)


class TokensSettings(QueueSettings, frozen=True):
    """A hub that is down for less than the difference of lifetime and interval loses no member."""

    renew_every: PositiveDuration = PositiveDuration(24 * 3600)
    lifetime: PositiveDuration = PositiveDuration(7 * 24 * 3600)
    look_every: Duration = Duration(600)
    """How often each Secret is read for a token that is due, and a renewal that failed is tried again."""

    def __post_init__(self) -> None:
        if self.lifetime < _SHORTEST:
            raise ValueError("lifetime must be at least 10m: the API server gives none for less")


class TokensController:
    def __init__(self, hub: Hub, sessions: Sessions, settings: TokensSettings) -> None:
        self._hub = hub
        self._sessions = sessions
        self._settings = settings
        self._queue = WorkQueue("tokens", self._reconcile, settings)
        sessions.listen(self._on_member_change)

    def on_change(self, resource: Resource[Any], record: Any) -> None:  # noqa: ANN401 - a record of the resource
        if resource is resources.CLUSTERS:
            self._queue.add(resources.key_of(resource, record))

    async def run(self) -> None:
        await self._queue.run()

    def _on_member_change(self, cluster: str, record: object) -> None:
        """Look at once when a member has been synced."""
        if record is None:
            self._queue.add(Key(resources.CLUSTERS.api_version, resources.CLUSTERS.kind.name, "", cluster))

    async def _reconcile(self, key: Key) -> float | None:
        cluster = self._hub.find_cluster(key.name)
        if cluster is None or cluster.spec.sync_mode != PUSH or cluster.spec.secret_ref is None:
            metrics.forget_token(key.name)
            return None
        reference = cluster.spec.secret_ref
        try:
            login = await self._hub.api.get(resources.LOGINS, reference.name, namespace=reference.namespace)
            token = read_token(read_text(login, "token"))
        except (ApiError, ConfigurationError):
            return self._settings.look_every  # the condition Ready of the Cluster tells it
        if token is None:
            metrics.forget_token(key.name)
            return self._settings.look_every
        metrics.TOKEN_ISSUED.labels(key.name).set(token.issued_at)
        session = self._sessions.get(key.name)
        due_in = find_renewal(token, self._settings.renew_every) - self._hub.clock()
        if due_in <= 0 and session is not None and self._sessions.is_usable(key.name):
            await self._renew(key, cluster, login, token, session)
            return self._settings.look_every
        return max(1.0, min(due_in, self._settings.look_every)) if due_in > 0 else self._settings.look_every

    async def _renew(
        self, key: Key, cluster: Cluster, login: Login, token: MemberToken, session: Session
    ) -> None:
        """Have the member make a new token, store it, and have the session take it up."""
        try:
            answer = await session.api.create_in(
                resources.ACCOUNTS,
                token.account,
                "token",
                write_token_request(self._settings.lifetime),
                namespace=token.namespace,
            )
        except ApiError as error:
            self._report(key, cluster, str(error))
            return
        fresh = read_new_token(answer, token, now=self._hub.clock())
        if fresh is None:
            self._report(key, cluster, "the member gave no newer token of the same account")
            return
        meta = login.metadata
        encoded = base64.b64encode(fresh.encode()).decode()
        change = {"metadata": {"resourceVersion": meta.resource_version}, "data": {"token": encoded}}
        await self._hub.api.merge(resources.LOGINS, meta.name, change, namespace=meta.namespace)
        log.info("token of member renewed", cluster=key.name)
        renewed = read_token(fresh)
        metrics.TOKEN_ISSUED.labels(key.name).set(renewed.issued_at if renewed else 0.0)
        self._sessions.reopen(key)

    def _report(self, key: Key, cluster: Cluster, reason: str) -> None:
        log.warning("token of member not renewed", cluster=key.name, reason=reason)
        self._hub.recorder.record(
            refer_to(key, cluster.metadata), reason=_REFUSED, note=reason, action="RenewToken", kind=WARNING
        )
