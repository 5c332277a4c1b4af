"""Move orders from requests, and the destinations that a forecast adds."""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, NODES, PODS
from reberth.cluster.snapshot import Snapshot
from reberth.memory.notes import ANNOTATION
from reberth.records import Node, OpenMove, Outcome, Pod, TemplatedSpec
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.model.plan import LandingScores
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from tests.support import builders
from tests.support.memory.objects import web_pod
from tests.support.rescheduler.crash_simulator import REPLICA_SETS, FakeApi, World, make_context

pytestmark = pytest.mark.looptime
NO_ROOM = Refused("NoFeasibleDestination", "no node has room")


class Oracle:
    """A forecast that says what it is told; a refusal counts from the nth question on."""

    schedulers = frozenset({"default-scheduler"})

    def __init__(self, *, scores: LandingScores | None = None, refuses_from: int = 99) -> None:
        self.scores = scores
        self.refuses_from = refuses_from
        self.asked = 0
        self.seen: Snapshot | None = None

    def look_at(self, snapshot: Snapshot) -> "Oracle":
        self.seen = snapshot
        return self

    def find_destinations(self, pod: Pod) -> tuple[str, ...] | Refused:
        assert self.seen
        assert pod.metadata.name in {row.name for row in self.seen.pods.rows}
        return ("n3", "n2")

    def refuse_destinations(self, _pod: Pod, destinations: tuple[str, ...]) -> Any:
        assert self.seen
        assert set(destinations) <= {node.metadata.name for node in self.seen.nodes.records}
        self.asked += 1
        return NO_ROOM if self.asked >= self.refuses_from else None

    def score_landing(self, _move: OpenMove, landed_on: str) -> LandingScores | None:
        assert landed_on == "n2"
        return self.scores


def with_forecast(world: World, forecast: Oracle | None) -> ExecutionContext:
    return dataclasses.replace(make_context(world, FakeApi(world)), forecast=forecast)


async def wish(world: World, *to: str, forecast: Oracle | None = None) -> MoveOrder | Refused:
    return await compose_order(with_forecast(world, forecast), "shop", "web-1", to=to, reason="why not")


async def carry_out(world: World, *to: str, forecast: Oracle | None = None) -> MoveReport:
    context = with_forecast(world, forecast)
    order = await compose_order(context, "shop", "web-1", to=to, reason="why not")
    assert isinstance(order, MoveOrder)
    return await Executor(context).move(order)


async def test_an_order_knows_the_root_owner_and_the_usable_destinations_in_their_order() -> None:
    order = await wish(World(), "n3", "nowhere", "n2")
    assert isinstance(order, MoveOrder)
    assert (order.signature.root.kind, order.signature.root.uid) == ("Deployment", "uid-deployment")
    assert (order.destinations, order.policy) == (("n3", "n2"), "manual")


async def test_without_destinations_the_forecast_is_used_or_the_order_is_refused() -> None:
    order = await wish(World(), forecast=Oracle())
    assert isinstance(order, MoveOrder)
    assert order.destinations == ("n3", "n2")
    refused = await wish(World())
    assert isinstance(refused, Refused)
    assert "--to" in refused.reason


async def test_named_destinations_must_pass_the_forecast() -> None:
    assert await wish(World(), "n2", forecast=Oracle(refuses_from=1)) == NO_ROOM


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"owned_by": builders.owner("DaemonSet", "d")}, "DaemonSetPod"),
        ({"deleted": "2026-11-18T12:00:00Z"}, "Terminating"),
        ({"node": None}, "NotBound"),
    ],
)
async def test_the_rules_refuse(change: dict[str, Any], rule: str) -> None:
    world = World()
    world.put(PODS, web_pod("web-1", **{"node": "n1", **change}))
    refused = await wish(world, "n2")
    assert isinstance(refused, Refused)
    assert refused.rule == rule


async def test_a_missing_pod_and_one_with_an_unknown_owner_are_refused() -> None:
    world = World()
    for key in [key for key in world.objects if key[0] == "replicasets"]:
        del world.objects[key]
    order = await wish(world, "n2")
    assert isinstance(order, MoveOrder)
    assert order.signature.root.kind == "ReplicaSet"
    del world.objects["pods", "shop", "web-1"]
    refused = await wish(world, "n2")
    assert isinstance(refused, Refused)
    assert refused.rule == "NoSuchPod"


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [(LandingScores(500, 700), Outcome.BETTER), (LandingScores(700, 500), Outcome.WORSE)],
)
async def test_a_forecast_scores_the_landing(scores: LandingScores, outcome: Outcome) -> None:
    report = await carry_out(World(), "n2", forecast=Oracle(scores=scores))
    assert report.ending.outcome == outcome
    assert (report.ending.score_before, report.ending.score_after) == scores


async def test_destinations_that_fill_up_after_the_plan_stop_the_move() -> None:
    world = World()
    report = await carry_out(world, "n2", forecast=Oracle(refuses_from=2))
    assert report.refused == NO_ROOM
    assert not world.evictions
    assert not world.noted()


async def test_a_pod_created_in_the_second_of_the_plan_is_not_taken_for_the_replacement() -> None:
    world = World()
    world.put(PODS, web_pod("web-0", node="n3", age=0.0))
    world.put(REPLICA_SETS, replace(world.replica_set, spec=TemplatedSpec(replicas=2)))
    report = await carry_out(world, "n2")
    assert report.ending.landed_on == "n2"


async def test_after_three_fruitless_moves_the_workload_is_given_up() -> None:
    world = World()
    for number in (1, 2, 3):
        world.put(PODS, web_pod("web-1", node="n1", uid=f"uid-{number}", age=60.0))
        report = await carry_out(world, "n2")
        assert report.ending.outcome == Outcome.UNKNOWN
        for key in [key for key in world.objects if key[0] == "pods"]:
            del world.objects[key]
    history = world.history()
    assert history
    assert history.status.given_up_until


async def test_the_history_of_a_deleted_workload_with_the_same_name_is_replaced() -> None:
    world = World()
    await carry_out(world, "n2")
    old = world.history()
    assert old
    identity = replace(old.spec.workload, uid="uid-of-the-earlier-one")
    world.put(HISTORIES, replace(old, spec=replace(old.spec, workload=identity)))
    world.put(PODS, web_pod("web-1", node="n1", uid="uid-again", age=60.0))
    await carry_out(world, "n2")
    new = world.history()
    assert new
    assert new.spec.workload.uid == "uid-deployment"
    assert len(new.status.past or ()) == 1


@pytest.mark.parametrize(("annotation", "rule"), [("not JSON", "NoteUnreadable"), (None, "NodeGone")])
async def test_a_note_that_cannot_be_written_stops_the_move(annotation: str | None, rule: str) -> None:
    world = World()
    if annotation:
        built = builders.node("n1", annotations={ANNOTATION: annotation})
        world.put(NODES, builders.as_record(Node, built))
    else:
        del world.objects["nodes", "", "n1"]
    report = await carry_out(world, "n2")
    assert report.refused
    assert report.refused.rule == rule
    assert not world.evictions
    assert not world.debits()
