"""Tokens of members are renewed while everything goes on, and old ones are no longer needed."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from federation.membership.member_token import MemberToken, read_token
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy, restrict
from tests.live.support.hub_paths import CLUSTERS, DEPLOYMENTS, POLICIES, SECRETS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

LIFETIME = 600.0
QUICK = {"renewEvery": "2s", "lifetime": "600s", "lookEvery": "500ms"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Place, Path]]:
    folder = tmp_path_factory.mktemp("federation")
    async with federated("federation-tokens") as place:
        await restrict(place)
        await place.start(folder, tokens=QUICK)
        yield place, folder
        assert await place.stop() == 0
        assert " error " not in (folder / "federation.log").read_text()


async def test_tokens_are_renewed_and_the_same_caches_go_on(place: tuple[Place, Path]) -> None:
    federation, folder = place
    hub = federation.hub
    await hub.create(DEPLOYMENTS, deployment("web", 2))
    await hub.create(POLICIES, policy("web"))
    first = {name: tell(await hub.get(f"{SECRETS}/{name}")) for name in federation.members}
    for name, member in federation.members.items():
        await eventually(member, f"{DEPLOYMENTS}/web", lambda found: found is not None)
        before = first[name]
        for _ in range(2):  # each one is made with the last one
            found = await eventually(hub, f"{SECRETS}/{name}", lambda one, old=before: tell(one) != old)
            renewed = tell(found)
            assert renewed.expires_at - renewed.issued_at == LIFETIME
            assert (renewed.namespace, renewed.account) == (before.namespace, before.account)
            before = renewed
    await hub.patch(f"{DEPLOYMENTS}/web", {"spec": {"replicas": 5}})
    for member in federation.members.values():
        await eventually(
            member, f"{DEPLOYMENTS}/web", lambda one: (one or {}).get("spec", {}).get("replicas") == 5
        )
    log = (folder / "federation.log").read_text()
    assert log.count("token of member renewed") >= 4
    for name in federation.members:
        lines = [line for line in log.splitlines() if "member caches synced" in line and name in line]
        assert len(lines) == 1


async def test_a_member_that_makes_no_token_is_reported_and_stays_usable(place: tuple[Place, Path]) -> None:
    federation, _ = place
    hub, member = federation.hub, federation.members["member1"]
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/reberth-system/roles/reberth-federation-member"
    await member.patch(role, {"rules": []})
    cluster = f"{CLUSTERS}/member1"
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    await eventually(
        hub, events, lambda found: "TokenNotRenewed" in {one["reason"] for one in found["items"]}
    )
    assert any(one["status"] == "True" for one in (await hub.get(cluster))["status"]["conditions"])


def tell(secret: Any) -> MemberToken:
    token = read_token(base64.b64decode(secret["data"]["token"]).decode())
    assert token is not None
    return token
