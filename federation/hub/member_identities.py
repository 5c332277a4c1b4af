"""Which member each Cluster leads to, so that two Clusters never write to the same one."""

import asyncio

from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.membership.cluster_identity import KUBE_SYSTEM, find_owner
from federation.objects import resources
from reberth.runtime.logs import Log
from reberth.values.errors import ApiError, ConfigurationError, Forbidden

log = Log(__name__)


class SameMember(ConfigurationError):
    """The API server of a Cluster is that of another Cluster."""


class MemberIdentities:
    """The identity of each member that has told it: the uid of its namespace kube-system."""

    def __init__(self, hub: Hub) -> None:
        self.owners: dict[str, str] = {}
        """By the name of a Cluster that may not be used, the Cluster that stands for the same member."""
        self._hub = hub
        self._known: dict[str, str] = {}
        self._asked_at: dict[str, float] = {}

    def of(self, cluster: str) -> str | None:
        """Return the identity, empty if the member does not tell it; None if it was not asked yet."""
        return self._known.get(cluster)

    def list_twins(self, cluster: str) -> list[str]:
        """List the other Clusters whose members told the same identity."""
        identity = self._known.get(cluster)
        return [
            name for name, told in self._known.items() if identity and told == identity and name != cluster
        ]

    def forget(self, cluster: str) -> None:
        """Forget who the member was: the session with it is closed."""
        self._known.pop(cluster, None)

    async def learn(self, cluster: str, api: ObjectApi) -> None:
        """Ask a member who it is. Raises SameMember, or an ApiError."""
        self._asked_at[cluster] = asyncio.get_running_loop().time()
        self._known[cluster] = await _read(cluster, api)
        self.check(cluster)

    async def has_changed(self, cluster: str, api: ObjectApi, *, every: float) -> bool:
        """Ask once more if it is due: behind its address there may be another API server by now.

        A member that does not tell it for now is taken for the one that it was.
        """
        now = asyncio.get_running_loop().time()
        if now < self._asked_at.get(cluster, float("-inf")) + every:
            return False
        self._asked_at[cluster] = now
        try:
            return await _read(cluster, api) not in ("", self._known.get(cluster))
        except ApiError:
            return False

    def check(self, cluster: str) -> None:
        """Raise SameMember if another Cluster stands for this member."""
        identity = self._known.get(cluster)
        rows = self._hub.cache.of(resources.CLUSTERS.kind).rows()
        owner = find_owner(identity, rows, self._known) if identity else None
        if owner is None or owner == cluster:
            self.owners.pop(cluster, None)
            return
        self.owners[cluster] = owner
        self.forget(cluster)
        raise SameMember(f"its API server is that of Cluster {owner}: {KUBE_SYSTEM} has the uid {identity}")


async def _read(cluster: str, api: ObjectApi) -> str:
    """Read the uid of kube-system; empty if the account may not."""
    try:
        pages = api.list_pages(resources.NAMESPACES, fieldSelector=f"metadata.name={KUBE_SYSTEM}")
        uids = [each.metadata.uid async for page in pages for each in page.objects]
    except Forbidden as error:
        log.warning("member does not tell who it is", cluster=cluster, reason=str(error))
        return ""
    return uids[0] if uids else ""
