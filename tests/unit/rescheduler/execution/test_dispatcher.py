"""Moves in flight are carried to their end, even if one of them fails."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, cast

import msgspec
import pytest
from msgspec.structs import replace

from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import HISTORIES, LEDGERS, PODS, Resource
from reberth.memory.ledger import Disruption, add_debit, start_ledger
from reberth.memory.rates import DisruptionLimits
from reberth.records import (
    Debit,
    DebitState,
    EvictionHistory,
    HistorySpec,
    HistoryStatus,
    LedgerStatus,
    ObjectMeta,
    OpenMove,
    Phase,
    Pod,
    WorkloadIdentity,
)
from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.refusal import Refused
from reberth.values.timestamp import parse_time, write_micro_time, write_time
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dispatcher import MoveDispatcher, MoveEnd
from rescheduler.execution.extenders import ExtenderClient
from rescheduler.execution.ledger_writer import SPENT_WITHIN
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.model.plan import Destination, PlannedMove
from rescheduler.observe.forecaster import Forecaster
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import LONGEST_REQUEST, ReschedulerSettings
from tests.support import builders
from tests.support.memory.objects import NOW, move, web_pod
from tests.support.metrics import rescheduler_metric
from tests.support.rescheduler.crash_simulator import FakeApi, FakeMirror, Overtaken, World, make_context
from tests.support.rescheduler.plans import MODEL

GRACE = 120.0
READY = {"conditions": [{"type": "Ready", "status": "True"}]}

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]


def planned(pod: str = "web-1", *, uid: str | None = None, to: str = "n2") -> PlannedMove:
    return PlannedMove(
        pod=f"shop/{pod}",
        uid=uid or f"uid-{pod}",
        workload="Deployment/web",
        from_="n1",
        destinations=(Destination(to, 1.0),),
        policy="underUtilisedNodes",
        mode="apply",
        level=2,
        gain=50.0,
        cost=5.0,
        risk=1.0,
        worth=44.0,
        reason="its node is over-utilised",
    )


class SilentExtenders:
    """None of them has seen anything."""

    async def refuse_unseen(self, _versions: object) -> Refused:
        return Refused("NotSeen", "nobody answers")


def judged_landings(world: World) -> list[bool | None]:
    history = world.history()
    assert history is not None
    return [move.as_forecast for move in history.status.past or ()]


class Hand:
    """A dispatcher, what it is equipped with, and the ends that it told of."""

    def __init__(self, dispatcher: MoveDispatcher, context: ExecutionContext, api: FakeApi) -> None:
        self.dispatcher = dispatcher
        self.context = context
        self.api = api
        self.ends: list[tuple[str | None, MoveEnd]] = []

    def sync(self) -> None:
        cast("FakeMirror", self.context.mirror).sync()


@asynccontextmanager
async def carrying(api: FakeApi, **changes: object) -> AsyncIterator[Hand]:
    context = dataclasses.replace(make_context(api.world, api), **changes)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        hand: Hand
        dispatcher = MoveDispatcher(
            context,
            group,
            on_end=lambda move, end: hand.ends.append((move.pod if move else None, end)),
        )
        hand = Hand(dispatcher, context, api)
        yield hand
    await context.ledger.flush()


async def test_a_move_is_executed_to_its_end_and_counted() -> None:
    before = rescheduler_metric("moves_total", policy="underUtilisedNodes", result="evicted")
    async with carrying(FakeApi(World())) as hand:
        assert hand.dispatcher.begin(planned())
        assert len(hand.dispatcher) == 1
    assert hand.ends == [("shop/web-1", MoveEnd.EVICTED)]
    assert len(hand.api.world.evictions) == 1
    assert len(hand.dispatcher) == 0
    assert rescheduler_metric("moves_total", policy="underUtilisedNodes", result="evicted") == before + 1
    assert judged_landings(hand.api.world) == [True]


@pytest.mark.parametrize(("extender", "judged"), [("optional", False), ("none", None)])
async def test_the_history_says_whether_the_landing_was_as_forecast(
    extender: Literal["optional", "none"],
    judged: bool | None,  # noqa: FBT001 - a column of the table
) -> None:
    """Without the extender nothing draws the replacement, so a landing elsewhere says nothing."""
    settings = ReschedulerSettings(extender=extender)
    extenders = cast("ExtenderClient", SilentExtenders())
    async with carrying(FakeApi(World()), settings=lambda: settings, extenders=extenders) as hand:
        assert hand.dispatcher.begin(planned(to="n3"))
    assert judged_landings(hand.api.world) == [judged]


async def test_no_pod_and_no_workload_is_moved_twice_at_once() -> None:
    async with carrying(FakeApi(World())) as hand:
        assert hand.dispatcher.begin(planned())
        assert not hand.dispatcher.begin(planned())
        assert not hand.dispatcher.begin(planned("web-2"))
    assert len(hand.ends) == 1


@pytest.mark.parametrize(
    ("move", "stopped_by", "rule", "end"),
    [
        (planned("web-9"), None, "NoSuchPod", MoveEnd.REFUSED),
        (planned(uid="uid-of-another"), None, "NoSuchPod", MoveEnd.REFUSED),
        (planned(), Refused("Paused", "for a while"), "Paused", MoveEnd.WAITING),
    ],
)
async def test_a_planned_move_that_is_no_longer_possible_is_refused(
    move: PlannedMove, stopped_by: Refused | None, rule: str, end: MoveEnd
) -> None:
    before = rescheduler_metric("moves_refused_total", rule=rule)
    async with carrying(FakeApi(World()), stop_reason=lambda _policy: stopped_by) as hand:
        hand.dispatcher.begin(move)
    assert hand.ends == [(move.pod, end)]
    known = hand.dispatcher.refusals.read(hand.context.clock()).known
    assert [each.refusal.rule for each in known] == ([rule] if end is MoveEnd.REFUSED else [])
    assert hand.api.world.evictions == []
    assert hand.api.writes == 0
    assert rescheduler_metric("moves_refused_total", rule=rule) == before + 1


async def test_an_interrupted_move_is_resumed_by_the_next_cycle() -> None:
    api = FakeApi(World(), troubles={4: errors.Forbidden("write", "for a while")})
    async with carrying(api) as hand:
        hand.dispatcher.begin(planned())
        await hand.dispatcher.finished()
        assert hand.dispatcher.failed
        assert hand.ends == [("shop/web-1", MoveEnd.INTERRUPTED)]
        ((workload, interrupted),) = hand.dispatcher.refusals.read(hand.context.clock()).known
        assert (workload, interrupted.rule) == (("shop", "Deployment/web"), "Interrupted")
        hand.sync()
        assert hand.dispatcher.has_orphans()
        await hand.dispatcher.resume()
        assert not hand.dispatcher.has_orphans()
    history = api.world.history()
    assert history is not None
    assert not history.status.open
    assert len(api.world.evictions) <= 1


async def test_a_debit_of_an_earlier_leader_that_arrives_late_without_a_move_is_spent() -> None:
    world = World()
    api = FakeApi(world)
    async with carrying(api) as hand:
        await hand.dispatcher.resume()
        reserve = partial(
            add_debit, limits=DisruptionLimits(), disruption=Disruption("m-late", "shop", "uid"), now=NOW
        )
        await make_context(world, FakeApi(world)).store.change_ledger(reserve)
        assert not hand.dispatcher.has_orphans()  # the cache is a moment late
        await asyncio.sleep(LONGEST_REQUEST)
        hand.sync()
        assert [debit.state for debit in world.debits().values()] == [DebitState.TENTATIVE]
        assert hand.dispatcher.has_orphans()
        await hand.dispatcher.resume()
        assert not hand.dispatcher.has_orphans()
        await asyncio.sleep(SPENT_WITHIN + 1)
        assert [debit.state for debit in world.debits().values()] == [DebitState.SPENT]
        assert not hand.dispatcher.has_orphans()


async def test_a_debit_whose_eviction_may_be_on_its_way_is_looked_at_when_it_cannot_be_any_more() -> None:
    """Its pod is alive: until then that says nothing, and no cycle needs to read everything again."""
    world = World()
    debit = Debit("m-late", write_micro_time(NOW), DebitState.TENTATIVE, "shop", "uid")
    async with carrying(FakeApi(world)) as hand:
        world.put(
            LEDGERS,
            replace(
                start_ledger(),
                status=LedgerStatus((replace(debit, pod="web-1", pod_uid="uid-web-1"),)),
            ),
        )
        hand.sync()
        assert not hand.dispatcher.has_orphans()
        await asyncio.sleep(LONGEST_REQUEST)
        assert hand.dispatcher.has_orphans()
        await hand.dispatcher.resume()
        assert not hand.dispatcher.has_orphans()
    assert world.debits() == {}


async def test_debits_from_the_future_are_dated_anew_while_the_same_process_leads() -> None:
    """A full rate of them would stay full: no further debit is written then."""
    world = World()
    time = write_micro_time(NOW + 3600)
    debits = tuple(Debit(f"m-{number}", time, DebitState.SPENT, "shop", "uid") for number in range(10))
    world.put(LEDGERS, replace(start_ledger(), status=LedgerStatus(debits)))
    async with carrying(FakeApi(world)) as hand:
        hand.sync()
        assert hand.dispatcher.has_orphans()
        await hand.dispatcher.resume()
    assert {debit.time for debit in world.debits().values()} == {write_micro_time(NOW + 5)}


class ReplacingWorld(World):
    """An evicted pod is gone at once, and its replacement is bound and never Ready."""

    def evict(self, move: str, pod: Pod) -> None:
        self.evictions.append((move, pod.metadata.uid))
        del self.objects["pods", "shop", pod.metadata.name]
        self.put(PODS, web_pod("web-9", node="n2", age=NOW - self.now()))


async def test_a_try_is_given_back_once_somebody_else_has_deleted_the_pod() -> None:
    """Its replacement may take an hour to be Ready; two such moves would keep all others from a try."""
    api = FakeApi(ReplacingWorld(), refusals={1: Overtaken("evict", "gone")})
    async with carrying(api) as hand:
        hand.dispatcher.begin(planned())
        await asyncio.sleep(5)
        history = api.world.history()
        assert history is not None
        assert len(history.status.open or ()) == 1
        assert not hand.dispatcher.tries.is_asking


class LateApi(FakeApi):
    """The connection is lost at once, and the eviction is carried out 45 s later."""

    async def evict(self, name: str, *, namespace: str, dry_run: bool, annotations: Any, **_: object) -> None:
        if dry_run:
            return
        pod = self._find(PODS, name, namespace=namespace)
        asyncio.get_running_loop().call_later(45, self.world.evict, annotations["reberth.dev/move"], pod)
        raise errors.Unanswered("evict", "the connection was lost")


async def test_an_eviction_that_is_carried_out_long_after_its_answer_was_lost_is_paid_for() -> None:
    """The API server works on a request for a minute."""
    api = LateApi(World())
    async with carrying(api) as hand:
        hand.dispatcher.begin(planned())
        await asyncio.sleep(44)
        assert not api.world.evictions
        assert len(api.world.debits()) == 1
    assert len(api.world.evictions) == 1
    assert [debit.state for debit in api.world.debits().values()] == [DebitState.SPENT]


async def test_a_lost_lease_ends_all_moves() -> None:
    api = FakeApi(World(), troubles={3: LeaseLost("not renewed")})

    async def lead() -> None:
        async with carrying(api) as hand:
            hand.dispatcher.begin(planned())
            await asyncio.sleep(60)

    with pytest.raises(ExceptionGroup) as ended:
        await lead()
    assert ended.group_contains(LeaseLost)
    assert api.world.evictions == []


async def test_the_moves_of_one_node_follow_each_other() -> None:
    async with carrying(FakeApi(World())) as hand:
        assert hand.dispatcher.begin(planned())
        assert hand.dispatcher.begin(msgspec.structs.replace(planned("db-1"), workload="Deployment/db"))
        await asyncio.sleep(0.01)
        assert (hand.dispatcher.waiting, hand.ends) == (1, [])
    # The second begins when the first has landed; that one ends later, when its replacement stays Ready.
    assert hand.ends == [("shop/db-1", MoveEnd.REFUSED), ("shop/web-1", MoveEnd.EVICTED)]


class LingeringWorld(World):
    """Pods take their grace period to end, and are replaced only then, like those of a StatefulSet."""

    def evict(self, move: str, pod: Pod) -> None:
        self.evictions.append((move, pod.metadata.uid))
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=write_time(self.now() + GRACE))
        self.put(PODS, msgspec.structs.replace(pod, metadata=meta))
        asyncio.get_running_loop().call_later(GRACE, self._replace, pod.metadata.name)

    def _replace(self, name: str) -> None:
        fields = {"uid": f"uid-{name}-new", "age": NOW - self.now(), "status": READY}
        self.put(PODS, web_pod(name, node="n2", **fields))


async def test_a_pod_with_a_long_grace_period_holds_up_no_other_move() -> None:
    before = rescheduler_metric("moves_refused_total", rule="PlanOld")
    world = LingeringWorld()
    workloads = {
        name: f"StatefulSet/{name.partition('-')[0]}" for name in ("web-1", "db-1", "log-1", "api-1")
    }
    moves = {name: msgspec.structs.replace(planned(name), workload=one) for name, one in workloads.items()}
    for name in list(workloads)[1:]:
        owner = builders.owner("StatefulSet", name.partition("-")[0], uid=f"uid-{name.partition('-')[0]}")
        world.put(PODS, web_pod(name, node="n1", age=60.0, owned_by=owner))
    async with carrying(FakeApi(world)) as hand:
        for name in ("web-1", "db-1", "log-1"):
            assert hand.dispatcher.begin(moves[name])
        await asyncio.sleep(29.0)
        assert len(world.evictions) == 3
        assert hand.dispatcher.waiting == 0  # so moves of the next plan begin
        assert hand.dispatcher.begin(moves["api-1"])
        await asyncio.sleep(0.1)
        assert hand.dispatcher.waiting == 1  # behind the last one of them, evicted nine seconds ago
        await asyncio.sleep(5.0)
        assert len(world.evictions) == 4
        assert hand.ends == []
    assert {end for _, end in hand.ends} == {MoveEnd.EVICTED}
    assert rescheduler_metric("moves_refused_total", rule="PlanOld") == before


async def test_a_move_that_waits_too_long_for_earlier_moves_is_refused() -> None:
    before = rescheduler_metric("moves_refused_total", rule="PlanOld")
    async with carrying(FakeApi(World())) as hand:
        hand.dispatcher._turns.take(("n1",))
        hand.dispatcher.begin(planned())
    assert hand.ends == [("shop/web-1", MoveEnd.WAITING)]
    assert rescheduler_metric("moves_refused_total", rule="PlanOld") == before + 1


@pytest.mark.parametrize("reason", [None, Refused("ReasonGone", "the taint has gone")])
async def test_the_policy_is_asked_for_its_reason_right_before_the_eviction(reason: Refused | None) -> None:
    """Without a reason the debit is returned, the note is removed, and no pod is evicted."""
    asked: list[tuple[str, Phase, bool]] = []
    before = rescheduler_metric("moves_refused_total", rule="ReasonGone")

    class Check:
        def refuse(self, move: OpenMove, *, resumed: bool) -> Refused | None:
            asked.append((move.pod, move.phase, resumed))
            return reason

    world = World()
    world.put(PODS, web_pod("web-0", node="n3", age=60.0, status=READY))
    async with carrying(
        FakeApi(world),
        forecast=Forecaster(MODEL),
        policy=lambda: ReschedulerPolicy(level=5, protections=ProtectionSettings(min_age=Duration(0))),
        find_reasons=lambda _snapshot: Check(),
    ) as hand:
        hand.dispatcher.begin(planned())
    assert asked == [("web-1", Phase.NOTED, False)]
    assert hand.ends == [("shop/web-1", MoveEnd.REFUSED if reason else MoveEnd.EVICTED)]
    assert len(world.evictions) == len(world.debits()) == len(world.noted()) == (reason is None)
    assert rescheduler_metric("moves_refused_total", rule="ReasonGone") == before + (reason is not None)


DENIAL = errors.Forbidden("evict", 'admission webhook "keep.example" denied the request: no')


async def test_a_refused_eviction_is_remembered_in_the_history_and_a_granted_one_disproves_it() -> None:
    world = World()
    before = rescheduler_metric("refusals_remembered_total", rule="EvictionRefused", scope="workload")
    for times in (1, 2):
        async with carrying(FakeApi(world, refusals={1: DENIAL})) as hand:
            hand.dispatcher.begin(planned())
        assert hand.ends == [("shop/web-1", MoveEnd.REFUSED)]
        history = world.history()
        assert history is not None
        assert not history.status.open
        (noted,) = history.status.refused or ()
        assert (noted.rule, noted.count, noted.key) == ("EvictionRefused", times, "")
        assert "keep.example" in noted.reason
        wait = parse_time(noted.until) - parse_time(noted.refused_at)
        assert wait == pytest.approx(60 * times)
        ((workload, known),) = hand.dispatcher.refusals.read(hand.context.clock()).known
        assert (workload, known) == (("shop", "Deployment/web"), noted)
        world.late += 61  # until there is a try again
    assert (
        rescheduler_metric("refusals_remembered_total", rule="EvictionRefused", scope="workload")
        == before + 2
    )
    async with carrying(FakeApi(world)) as hand:
        hand.dispatcher.begin(planned())
    assert hand.ends == [("shop/web-1", MoveEnd.EVICTED)]
    history = world.history()
    assert history is not None
    assert not history.status.refused
    assert hand.dispatcher.refusals.read(hand.context.clock()).known == ()


async def test_the_writes_of_a_refused_move_are_not_more_than_without_its_memory() -> None:
    """The refusal is written with the end of the move: history, debit, note and back, and the eviction."""
    api = FakeApi(World(), refusals={1: DENIAL})
    async with carrying(api) as hand:
        hand.dispatcher.begin(planned())
    assert hand.api.writes == 9


async def test_a_fault_of_a_move_keeps_it_from_being_begun_again_at_once(faults: list[str]) -> None:
    async with carrying(FakeApi(World(), troubles={3: cast("Any", ValueError("ours"))})) as hand:
        hand.dispatcher.begin(planned())
        await hand.dispatcher.finished()
    ((_, refused),) = hand.dispatcher.refusals.read(hand.context.clock()).known
    assert (refused.rule, refused.key) == ("Fault", "uid-web-1")
    assert "move shop/web-1: ValueError: ours (crash_simulator.py:" in " ".join(faults)
    faults.clear()


class Stumbling(FakeApi):
    """One pod is more than our code can take."""

    async def get(self, resource: Resource[Any], name: str, **place: str) -> Any:
        if name == "odd":
            raise RecursionError
        return await super().get(resource, name, **place)


def record_open(world: World, name: str, **fields: Any) -> None:
    """Record an open move of an earlier leader in a history of its own."""
    entry = move(f"m-{name}", phase=Phase.NOTED, life=3600.0, **fields)
    meta = ObjectMeta(name=name, namespace="shop")
    spec = HistorySpec(WorkloadIdentity("apps/v1", "Deployment", name))
    world.put(HISTORIES, EvictionHistory(meta, spec=spec, status=HistoryStatus(open=(entry,))))


async def test_a_history_that_names_what_cannot_be_keeps_no_other_move_from_being_settled() -> None:
    world = World()
    for name, odd in (("a", {"from_": "../namespaces/kube-system/secrets/x"}), ("b", {"pod": "x/../y"})):
        record_open(world, name, **odd)
    async with carrying(FakeApi(world, troubles={4: errors.Forbidden("", "")})) as hand:
        hand.dispatcher.begin(planned())
        await hand.dispatcher.finished()
        hand.sync()
        await hand.dispatcher.resume()
        await hand.dispatcher.finished()
    left = [history for (kind, *_), history in world.objects.items() if kind == HISTORIES.name]
    assert [cast("EvictionHistory", history).status.open or () for history in left] == [()] * 3


async def test_a_move_that_meets_a_fault_is_left_alone_longer_and_longer_and_the_others_are_settled(
    faults: list[str],
) -> None:
    world = World()
    record_open(world, "a", pod="odd", pod_uid="uid-odd")
    record_open(world, "b", pod="gone", pod_uid="uid-gone")
    async with carrying(Stumbling(world)) as hand:
        for rest in (10, 20, 40, 80, 160, 320, 600, 600):
            await hand.dispatcher.resume()
            await hand.dispatcher.finished()
            hand.sync()
            assert not hand.dispatcher.has_orphans()
            assert not hand.dispatcher.failed
            await asyncio.sleep(rest - 1)
            assert not hand.dispatcher.has_orphans()
            await asyncio.sleep(1.5)
            assert hand.dispatcher.has_orphans()
        assert [each.partition(" (")[0] for each in faults] == ["resume shop/a: RecursionError"] * 8
        faults.clear()
        world.objects = {key: kept for key, kept in world.objects.items() if key[2] != "a"}
        await hand.dispatcher.resume()
        assert not hand.dispatcher.unsettled.is_resting("m-a")
    ended = cast("EvictionHistory", world.objects[HISTORIES.name, "shop", "b"])
    assert not ended.status.open
