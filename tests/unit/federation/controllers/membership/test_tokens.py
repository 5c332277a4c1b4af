"""The controller of tokens against a fake hub and a member that makes tokens."""

import base64
from typing import Any, cast

import msgspec
import pytest

from federation.controllers.membership.tokens import TokensController, TokensSettings
from federation.hub.metrics import TOKEN_ISSUED
from federation.hub.sessions import Session, Sessions
from federation.objects import resources
from federation.objects.resources import Login
from federation.objects.template import Object
from reberth.cluster.kinds import Resource
from reberth.values import errors
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import NOW, bare_cluster
from tests.unit.federation.membership.test_member_token import DAY, bounded, jwt

pytestmark = pytest.mark.looptime
FRESH = bounded(NOW, 7 * DAY)


def encode(token: str) -> str:
    return base64.b64encode(token.encode()).decode()


class TokenHub(FakeHub):
    """A hub with one member, whose Secret it reads and patches; what happens is noted in its order."""

    def __init__(self, token: str, answer: Any = FRESH) -> None:
        super().__init__(resources.CLUSTERS)
        self.token, self.answer = encode(token), answer
        self.did: list[str] = []
        self.is_usable_now = True
        reference = {"namespace": "karmada-cluster", "name": "m1"}
        cluster = bare_cluster(spec={"syncMode": "Push", "secretRef": reference})
        meta = msgspec.structs.replace(cluster.metadata, namespace="")
        self.put(resources.CLUSTERS, msgspec.structs.replace(cluster, metadata=meta))

    async def get(self, _: Resource[Any], name: str, *, namespace: str) -> Login:
        metadata = {"name": name, "namespace": namespace, "resourceVersion": "5"}
        return msgspec.convert({"metadata": metadata, "data": {"token": self.token}}, Login)

    async def merge(self, _: Resource[Any], name: str, patch: Object, **more: Any) -> Any:
        assert (name, more["namespace"]) == ("m1", "karmada-cluster")
        assert patch["metadata"] == {"resourceVersion": "5"}
        assert set(patch["data"]) == {"token"}
        self.token = patch["data"]["token"]
        self.did.append("stored")

    async def create_in(self, resource: Resource[Any], name: str, part: str, _: Object, **more: Any) -> Any:
        assert resource is resources.ACCOUNTS
        self.did.append(f"asked {more['namespace']}/{name}/{part}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"status": {"token": self.answer}}


class FakeSessions:
    """The session of the one member: its API is that of the hub."""

    def __init__(self, hub: TokenHub) -> None:
        self.api = hub
        self._hub = hub

    def listen(self, _: Any) -> None: ...

    def get(self, _: str) -> Session:
        return cast("Session", self)

    def is_usable(self, _: str) -> bool:
        return self._hub.is_usable_now

    def reopen(self, _: Any) -> None:
        self._hub.did.append("taken up")


async def run(hub: TokenHub, seconds: float = 1) -> TokenHub:
    controller = TokensController(hub.hub, cast("Sessions", FakeSessions(hub)), TokensSettings())
    hub.controllers = [controller]
    for cluster in hub.cache.of(resources.CLUSTERS.kind).rows():
        controller.on_change(resources.CLUSTERS, cluster)
    await hub.run(seconds)
    return hub


@pytest.mark.parametrize("old", [jwt(), bounded(NOW - DAY - 1)])
async def test_a_token_that_is_due_is_renewed_and_stored_before_it_is_used(old: str) -> None:
    hub = await run(TokenHub(old))
    assert hub.did == ["asked reberth-system/reberth-federation-member/token", "stored", "taken up"]
    assert hub.token == encode(FRESH)
    assert TOKEN_ISSUED.labels("m1")._value.get() == NOW


@pytest.mark.parametrize("token", [bounded(NOW - 3600), "opaque"])
async def test_a_token_that_is_not_due_or_not_ours_is_left_alone(token: str) -> None:
    hub = await run(TokenHub(token), 3600)
    assert hub.did == []


async def test_it_is_renewed_once_a_day() -> None:
    hub = TokenHub(bounded(NOW - DAY + 7200))
    await run(hub, 7100)
    assert hub.did == []
    await run(hub, 8000)
    assert hub.did[1:] == ["stored", "taken up"]


@pytest.mark.parametrize("answer", [errors.Forbidden("create", "no rights"), "opaque"])
async def test_a_member_that_gives_no_token_keeps_its_present_one_and_is_asked_again(answer: Any) -> None:
    old = bounded(NOW - DAY - 1)
    hub = await run(TokenHub(old, answer), 1300)
    assert hub.token == encode(old)
    assert len(hub.did) == 3
    assert {reason for reason, _ in hub.events} == {"TokenNotRenewed"}


async def test_a_member_that_does_not_answer_is_not_asked() -> None:
    hub = TokenHub(jwt())
    hub.is_usable_now = False
    assert (await run(hub, 1300)).did == []
