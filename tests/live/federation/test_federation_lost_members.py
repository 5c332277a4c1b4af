"""Members that are lost, all at once or for good, and one that is slow: what waits for them and what not."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from localcluster.faults.effects import Delay
from localcluster.faults.rules import WRITES, Match
from reberth.values.timestamp import parse_time
from tests.live.support.evictions import (
    apply,
    effects,
    groups,
    is_gone,
    remove,
    targets,
    tasks,
    told,
    works,
)
from tests.live.support.failing_members import NAMES, Partitioned, condition, partitioned, ready_members
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, DEPLOYMENTS, POLICIES
from tests.live.support.wrong_clocks import ahead

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Partitioned]:
    async with partitioned("federation-lost", tmp_path_factory.mktemp("federation")) as place:
        yield place


async def test_a_copy_that_is_purged_directly_counts_as_gone_after_the_fence(place: Partitioned) -> None:
    hub, path = place.hub, f"{BINDINGS}/fenced-deployment"
    await place.run(sections={"graceful": {"fenceAfter": "4s"}})
    await hub.create(DEPLOYMENTS, deployment("fenced", 1))
    wanted = policy("fenced", **groups(("first", "member1"), ("second", "member2")))
    wanted["spec"]["failover"] = {"cluster": {"purgeMode": "Directly"}}
    await hub.create(POLICIES, wanted)
    await eventually(place.members["member1"], f"{DEPLOYMENTS}/fenced", lambda one: one is not None)
    await place.lose("member1")
    await eventually(hub, f"{CLUSTERS}/member1", effects)
    taints = (await hub.get(f"{CLUSTERS}/member1"))["spec"]["taints"]
    lost_for_good = {"key": "lost", "effect": "NoExecute"}
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": [*taints, lost_for_good]}})
    found = await eventually(hub, path, lambda one: condition(one, "Failover").get("status") == "False")
    assert condition(found, "Failover")["reason"] == "MemberLost"
    assert not (await hub.get(works("member2")))["items"]
    await eventually(hub, works("member2"), lambda one: one["items"])
    begun = parse_time(tasks(found)[0]["creationTimestamp"])
    made = parse_time((await hub.get(works("member2")))["items"][0]["metadata"]["creationTimestamp"])
    assert made - begun >= 4
    await eventually(hub, path, lambda one: not tasks(one))
    await place.find("member1")
    await eventually(place.members["member1"], f"{DEPLOYMENTS}/fenced", is_gone)
    await hub.patch(f"{CLUSTERS}/member1", {"spec": {"taints": []}})
    await ready_members(place)
    await remove(place, "fenced")


async def test_nobody_moves_while_all_members_are_lost_and_when_they_come_back_one_by_one(
    place: Partitioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the federation these members are an hour old: one of the first minutes may only be joining."""
    hub, path, lost_after = place.hub, f"{BINDINGS}/calm-deployment", 8
    for name, value in ahead(3600).items():
        monkeypatch.setenv(name, value)
    await place.run(taintLostMembersAfter=f"{lost_after}s")
    await apply(place, "calm", **groups(("first", "member1"), ("second", "member2")))
    before = await eventually(hub, path, lambda one: targets(one) == ["member1"])
    await asyncio.gather(*map(place.lose, NAMES))
    for name in NAMES:
        await eventually(hub, f"{CLUSTERS}/{name}", effects)
    await told(place, "EvictionsBraked", "of 3 members cannot be reached")
    await asyncio.sleep(2 * lost_after)
    for name in ("member2", "member3", "member1"):
        await place.find(name)
        await ready_members(place, [name])
        await asyncio.sleep(2)
    await told(place, "EvictionsUnbraked")
    after = await hub.get(path)
    assert (targets(after), tasks(after)) == (["member1"], [])
    assert after["metadata"]["generation"] == before["metadata"]["generation"], "something was decided"
    assert {tuple(effects(await hub.get(f"{CLUSTERS}/{name}"))) for name in NAMES} == {()}
    await remove(place, "calm")


async def test_a_member_that_answers_slowly_keeps_the_others_waiting_for_nothing(place: Partitioned) -> None:
    hub, (quick, _, slow) = place.hub, place.members.values()
    await place.run()
    await hub.create(POLICIES, policy_for_all("slow", clusterAffinity={"clusterNames": ["member3"]}))
    writes = Match(verb=WRITES)
    async with place.proxy("member3").fault(writes, Delay(6)):
        for number in range(40):
            made = deployment(f"slow-{number}", 1)
            made["metadata"]["labels"]["speed"] = "slow"
            await hub.create(DEPLOYMENTS, made)
        await eventually(hub, works("member3"), lambda one: len(one["items"]) == 40)
        begun = time.monotonic()
        await apply(place, "quick", 1, clusterAffinity={"clusterNames": ["member1"]})
        await eventually(quick, f"{DEPLOYMENTS}/quick", lambda one: one is not None)
        assert time.monotonic() - begun < 5
        assert len((await slow.get(DEPLOYMENTS))["items"]) < 40, "the slow member was not slow"
    await hub.delete(f"{POLICIES}/slow")
    for number in range(40):
        await hub.delete(f"{DEPLOYMENTS}/slow-{number}")
    await remove(place, "quick")


def policy_for_all(speed: str, **placement: Any) -> dict[str, Any]:
    wanted = policy(speed, **placement)
    selector = {"apiVersion": "apps/v1", "kind": "Deployment"}
    wanted["spec"]["resourceSelectors"] = [{**selector, "labelSelector": {"matchLabels": {"speed": speed}}}]
    return wanted
