"""A custom kind that scripts describe is treated as a built-in one: from its policy to failover."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from federation.failover.health_clock import MOMENT
from tests.live.support.definitions import DEFINITIONS, remove_definitions
from tests.live.support.evictions import is_gone, tasks, told
from tests.live.support.failing_members import (
    NAMES,
    Census,
    Partitioned,
    condition,
    counting,
    partitioned,
    until,
)
from tests.live.support.game_operator import GAMES, KIND, GameOperator, game
from tests.live.support.hub_and_members import eventually, restrict
from tests.live.support.hub_paths import BINDINGS, CLUSTERS, POLICIES, REBALANCERS
from tests.live.support.propagated_objects import definition, selecting
from tests.live.support.rebalancing_members import let_a_second_pass, scheduled, status
from tests.support.builders import Object
from tests.support.federation.crds import example

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

INTERPRETERS = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations"
CHESS, BOUND = f"{GAMES}/chess", f"{BINDINGS}/chess-game"
# A copy that grows or is new is Unhealthy until its pods are ready, which takes long on a busy machine.
SETTLED_ONES = {
    "preConditions": {"healthyState": "Healthy"},
    "decisionConditions": {"tolerationSeconds": 2},
}
RULES = {"apiGroups": ["example.com"], "resources": ["games", "games/status"]}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Partitioned]:
    """Members with a kind of their own, which users have not described yet."""
    folder = tmp_path_factory.mktemp("federation")
    async with partitioned("interpreters", folder, living=NAMES) as place:
        clients = (place.hub, *place.members.values())
        for client in clients:
            await client.create(DEFINITIONS, definition("Game", namespaced=True))
            await client.wait(GAMES, lambda found: "items" in found)
        await restrict(
            place.place,
            hub=[{**RULES, "verbs": ["list", "watch", "patch"]}],
            members=[{**RULES, "verbs": ["get", "list", "watch", "create", "patch", "delete"]}],
        )
        await place.run()
        yield place
        for client in clients:
            await remove_definitions(client, ["games.example.com"])


def customization() -> Object:
    made = example("ResourceInterpreterCustomization")
    made.pop("status")
    return made


NAME = f"{INTERPRETERS}/{customization()['metadata']['name']}"


def chess_policy() -> Object:
    """One cluster at a time, the first that has room."""
    terms = [{"affinityName": name, "clusterNames": [name]} for name in NAMES]
    divided = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    return selecting("games", KIND, placement={"clusterAffinities": terms, "replicaScheduling": divided})


async def stands(place: Partitioned, **wanted: int) -> Any:
    """Wait until the copies are where they are to be, Healthy, and nothing of old ones is left."""

    def holds(one: Any) -> bool:
        healthy = [each["clusterName"] for each in _copies(one) if each.get("health") == "Healthy"]
        is_moving = one and (tasks(one) or one["spec"].get("handover", {}).get("clusters"))
        return bool(one) and scheduled(one) == wanted and healthy == [*wanted] and not is_moving

    found = await eventually(place.hub, BOUND, holds, within=60)
    for name in place.members.keys() - wanted.keys():
        await eventually(place.members[name], CHESS, is_gone)
    return found


def _copies(one: Any) -> list[Object]:
    return list((one or {}).get("status", {}).get("aggregatedStatus", ()))


async def told_ready(place: Partitioned, count: int) -> None:
    await eventually(place.hub, CHESS, lambda one: status(one).get("readyReplicas") == count)


async def allow(place: Partitioned, member: str, *, new: bool) -> None:
    taints = [] if new else [{"key": "busy", "effect": "NoSchedule"}]
    await place.hub.patch(f"{CLUSTERS}/{member}", {"spec": {"taints": taints}})


async def scale(place: Partitioned, census: Census, member: str, to: int) -> None:
    await place.hub.patch(CHESS, {"spec": {"replicas": to}})
    await until(lambda: census.count == to, "it is not scaled")
    await stands(place, **{member: to})
    await told_ready(place, to)


async def come_home(place: Partitioned, census: Census, member: str, replicas: int) -> None:
    """Rebalance to a cluster that is allowed again: the old copy goes when the new one is ready."""
    await allow(place, member, new=True)
    await let_a_second_pass(place.place, BOUND)
    workload = {**KIND, "namespace": "default", "name": "chess"}
    wanted = {"metadata": {"name": "home"}, "spec": {"workloads": [workload]}}
    await place.hub.create(
        REBALANCERS, {"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", **wanted}
    )
    await stands(place, **{member: replicas})
    await eventually(
        place.hub,
        f"{REBALANCERS}/home",
        lambda one: (
            [each.get("result") for each in status(one).get("observedWorkloads", ())] == ["Successful"]
        ),
    )
    await until(lambda: census.count == replicas, "pods of the old copy are left")


async def test_a_described_kind_is_scaled_rebalanced_and_failed_over_without_a_gap(
    place: Partitioned,
) -> None:
    operator = GameOperator(place.members)
    await place.hub.create(INTERPRETERS, customization())
    await allow(place, "member1", new=False)
    async with operator.working(), counting(place.place, "chess", NAMES) as census:
        await place.hub.create(POLICIES, chess_policy())
        await place.hub.create(GAMES, game("chess", 2))
        await stands(place, member2=2)
        await told_ready(place, 2)
        await until(lambda: census.count == 2, "its pods do not run")

        census.begin()
        await scale(place, census, "member2", to=4)
        assert census.lowest == 2
        census.begin()
        await come_home(place, census, "member1", 4)
        assert census.lowest == 4

        await asyncio.sleep(MOMENT + 1)  # it has settled
        await place.hub.patch(f"{POLICIES}/games", {"spec": {"failover": {"application": SETTLED_ONES}}})
        await eventually(place.hub, BOUND, lambda one: one["spec"].get("failover"))
        operator.stalled.add("member1")
        found = await stands(place, member2=4)
        (entry,) = found["spec"]["activeEvictionHistory"]
        assert (entry["clusterName"], entry["reason"]) == ("member1", "ApplicationFailure")
        await told(place, "EvictWorkloadFromClusterSucceed", "member1")
        await until(lambda: census.count == 4, "pods of the old copy are left")
        assert census.lowest == 4
        await told_ready(place, 4)

        await failing_script_is_told(place)
        await place.hub.delete(f"{POLICIES}/games")
        await place.hub.delete(CHESS)
        await eventually(place.hub, BOUND, is_gone)


async def failing_script_is_told(place: Partitioned) -> None:
    """A loop that catches errors: the condition names the operation, and health is not known."""
    broken = {"luaScript": "function InterpretHealth(o) while true do pcall(error) end end"}
    await place.hub.patch(NAME, {"spec": {"customizations": {"healthInterpretation": broken}}})
    failing = await eventually(
        place.hub, NAME, lambda one: condition(one, "Working").get("status") == "False"
    )
    assert condition(failing, "Working")["message"].startswith("InterpretHealth: too ")
    await eventually(place.hub, BOUND, lambda one: [each["health"] for each in _copies(one)] == ["Unknown"])
    await place.hub.patch(NAME, {"spec": customization()["spec"]})
    await eventually(place.hub, NAME, lambda one: condition(one, "Working").get("status") == "True")
    await stands(place, member2=4)
