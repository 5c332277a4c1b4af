"""Open moves are resumed if nobody is working on them, and only then."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import HISTORIES, LEDGERS, PODS, Resource
from reberth.memory.history import open_move
from reberth.memory.ledger import start_ledger
from reberth.memory.notes import NOTE_LOST
from reberth.records import Debit, DebitState, LedgerStatus, MoveLedger, Outcome, Phase, Pod
from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.timestamp import write_micro_time
from rescheduler.execution import executor as executing
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.ledger_writer import SPENT_WITHIN
from rescheduler.execution.orders import compose_order
from rescheduler.moves.lifecycle import MoveState
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.settings import ReschedulerSettings
from tests.support.memory.objects import NOW, WEB, move, web_pod
from tests.support.rescheduler.crash_simulator import FakeApi, Killed, World, make_context, resume
from tests.support.rescheduler.plans import policy
from tests.support.rescheduler.racing_resumes import WORKLOADS, find_lies, race
from tests.support.rescheduler.stalling_leaders import find_contradictions
from tests.support.rescheduler.stalling_leaders import take_over as take_over_from_a_stalling_leader
from tests.support.resumable_rounds import Proof
from tests.unit.rescheduler.execution.test_executor import check, order_and_move
from tests.unit.rescheduler.execution.test_executor import take_over as resume_all

pytestmark = pytest.mark.looptime

SAMPLE = 40
TAKE_OVERS = 20
RACES = 1000
LONGEST_REQUEST = 60.0
NO_BUDGET = errors.TooManyRequests("evict", "no", causes=[("DisruptionBudget", "none left", "")])


async def run_races(seeds: Iterable[int]) -> Counter[str]:
    """Run a race for each seed, and count what happened in them."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        one = await race(seed)
        assert find_lies(one) == [], f"seed {seed}"
        counts += Counter(
            races=1,
            evictions=len(one.world.evictions),
            resumes=one.resumed,
            failed_lists=one.lists_failed,
            interrupted=one.interrupted,
            refused=sum(move.evicted_at is None for move in one.world.past()),
        )
    return counts


async def test_resuming_while_moves_begin_evicts_nobody_unpaid_and_undoes_no_healthy_move() -> None:
    counts = await run_races(range(SAMPLE))
    assert counts["evictions"] >= (WORKLOADS - 1) * SAMPLE
    assert counts["failed_lists"] > SAMPLE
    assert counts["interrupted"] > SAMPLE / 4


@pytest.mark.soak
async def test_in_a_thousand_races_every_eviction_is_paid_and_every_history_is_true() -> None:
    proof = Proof("resumes")
    seeds = proof.remaining(range(RACES))
    counts = await run_races(seeds)
    proof.note(seeds)
    print(f"\n{len(proof.passed())} races; in this run {dict(counts)}")


async def die_before_the_eviction(world: World) -> None:
    """Leave a Noted move with its note and its debit; whether its eviction was sent, nobody knows."""
    context = make_context(world, api := FakeApi(world, dies_evicting=True))
    order = await compose_order(context, "shop", "web-1", to=("n2",), reason="why not")
    assert isinstance(order, MoveOrder)
    with pytest.raises(Killed):
        await Executor(context).move(order)
    assert api.died


async def take_over(world: World, *, timeout: float = LONGEST_REQUEST) -> MoveReport:
    """Resume the move as the next leader, whose eviction is refused."""
    settings = ReschedulerSettings(extender="none", eviction_timeout=Duration(timeout))
    context = make_context(world, FakeApi(world, refusals={1: NO_BUDGET}))
    context = dataclasses.replace(context, settings=lambda: settings)
    executor = Executor(context)
    ((handle, settled),) = await resume(context, executor)
    assert isinstance(settled, MoveState)
    report = await executor.finish(handle, settled)
    await context.ledger.flush()
    return report


async def test_a_refused_move_is_not_undone_while_an_earlier_leaders_eviction_may_arrive() -> None:
    world = World()
    await die_before_the_eviction(world)
    (found,) = world.noted()
    pod = cast("Pod", world.objects[PODS.name, "shop", "web-1"])
    asyncio.get_running_loop().call_later(20.0, world.evict, found, pod)
    report = await take_over(world)
    assert report.refused is None
    assert [debit.state for debit in world.debits().values()] == [DebitState.SPENT]
    history = world.history()
    assert history is not None
    (past,) = history.status.past or ()
    assert past.evicted_at
    assert past.outcome != Outcome.REFUSED
    assert world.noted() == {found}


@pytest.mark.parametrize("timeout", [LONGEST_REQUEST, 3 * LONGEST_REQUEST])
async def test_it_is_undone_once_no_earlier_eviction_can_arrive_any_more(timeout: float) -> None:
    """That depends on how long the API server works on a request."""
    world = World()
    await die_before_the_eviction(world)
    began = asyncio.get_running_loop().time()
    report = await take_over(world, timeout=timeout)
    assert report.refused
    assert report.refused.rule == "PDB"
    assert asyncio.get_running_loop().time() - began >= timeout
    assert (world.evictions, world.debits(), world.noted()) == ([], {}, set())


class StalledUndo(FakeApi):
    """Once its eviction was refused, what it writes stalls on its way, until it is let go."""

    def __init__(self, world: World) -> None:
        super().__init__(world, refusals={1: NO_BUDGET})
        self.go = asyncio.Event()
        self.sent: list[asyncio.Task[Any]] = []
        self._stalls = False

    async def evict(self, *given: Any, **place: Any) -> None:
        self._stalls = True
        await super().evict(*given, **place)

    async def replace(self, *given: Any, **place: Any) -> Any:
        return await self._send(super().replace(*given, **place))

    async def merge(self, *given: Any, **place: Any) -> Any:
        return await self._send(super().merge(*given, **place))

    async def _send(self, request: Coroutine[Any, Any, Any]) -> Any:
        if not self._stalls:
            return await request
        self.sent.append(asyncio.get_running_loop().create_task(self._arrive(request)))
        return await asyncio.shield(self.sent[-1])

    async def _arrive(self, request: Coroutine[Any, Any, Any]) -> Any:
        await self.go.wait()
        return await request


@pytest.mark.parametrize("after", [0.0, 0.05, 30.0], ids=["before", "meanwhile", "after"])
async def test_what_an_earlier_leader_sent_to_undo_a_move_takes_no_debit_and_no_note_from_it(
    after: float,
) -> None:
    """Its eviction was refused; the next leader finds the move as it was, and makes it."""
    api = StalledUndo(world := World())
    first = asyncio.get_running_loop().create_task(order_and_move(api))
    await asyncio.sleep(2)
    assert len(api.sent) == 2  # the note is removed, the debit is returned
    first.cancel()
    asyncio.get_running_loop().call_later(after, api.go.set)
    await asyncio.sleep(0.01)
    await resume_all(FakeApi(world))
    await asyncio.gather(*api.sent, return_exceptions=True)
    check(world)
    assert bool(world.evictions) == bool(after)


async def resume_after_all_doubt(context: ExecutionContext) -> MoveReport:
    """Resume the only move when no eviction can be on its way any more: it is undone at once."""
    executor = Executor(context)
    await asyncio.sleep(LONGEST_REQUEST)
    ((_, settled),) = await resume(context, executor)
    assert isinstance(settled, MoveReport)
    return settled


async def test_a_move_whose_debit_may_not_be_renewed_returns_it() -> None:
    """The rate is lower by now, and another disruption uses it up."""
    world = World()
    await die_before_the_eviction(world)
    ledger = cast("MoveLedger", world.objects[LEDGERS.name, "", "default"])
    other = Debit("m-other", write_micro_time(NOW), DebitState.SPENT, "shop", "uid")
    world.put(LEDGERS, replace(ledger, status=LedgerStatus((other, *(ledger.status.debits or ())))))
    low = policy(limits={"rates": {"cluster": ["1 per 1h"]}})
    context = dataclasses.replace(make_context(world, FakeApi(world)), policy=lambda: low)
    report = await resume_after_all_doubt(context)
    assert report.refused
    assert report.refused.rule == "ClusterRate"
    assert (list(world.debits()), world.noted()) == (["m-other"], set())


async def test_a_move_whose_note_cannot_be_renewed_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    await die_before_the_eviction(world)
    monkeypatch.setattr(executing, "renew_note", lambda *_given, **_now: NOTE_LOST)
    report = await resume_after_all_doubt(make_context(world, FakeApi(world)))
    assert report.refused == NOTE_LOST
    assert (world.debits(), world.noted()) == ({}, set())


@pytest.mark.parametrize("is_deleted", [False, True], ids=["kept", "deleted"])
@pytest.mark.parametrize("write", range(1, 8))
async def test_nothing_is_left_of_a_move_that_an_error_interrupted(write: int, *, is_deleted: bool) -> None:
    """At any of its writes; its history may be gone before it is resumed, or was never written."""
    world = World()
    trouble = errors.Forbidden("write", "for a while")
    context = make_context(world, FakeApi(world, troubles={write: trouble}))
    executor = Executor(context)
    order = await compose_order(context, "shop", "web-1", to=("n2",), reason="why not")
    assert isinstance(order, MoveOrder)
    with suppress(errors.Forbidden):
        await executor.move(order)
    if is_deleted:
        world.objects = {key: one for key, one in world.objects.items() if key[0] != HISTORIES.name}
    for _ in range(2):
        for one in await resume(context, executor):
            if isinstance(one.settled, MoveState):
                await executor.finish(one.handle, one.settled)
        await asyncio.sleep(LONGEST_REQUEST)
    assert not executor.moves
    await context.ledger.flush()
    assert DebitState.TENTATIVE not in {debit.state for debit in world.debits().values()}


class PodUnreadable(FakeApi):
    """A pod that cannot be read."""

    error: Exception = errors.Unreadable("get", "not JSON")

    async def get(self, resource: Resource[Any], name: str, **place: str) -> Any:
        if name == "odd":
            raise self.error
        return await super().get(resource, name, **place)


class PodOfADefect(PodUnreadable):
    """A pod at which our code stumbles."""

    error = KeyError("a defect of ours")


@pytest.mark.parametrize(("api", "noted"), [(PodUnreadable, 0), (PodOfADefect, 1)])
async def test_a_debit_whose_pod_cannot_be_read_keeps_no_move_from_being_resumed(
    api: type[FakeApi], noted: int, faults: list[str]
) -> None:
    world = World()
    await die_before_the_eviction(world)
    ledger = cast("MoveLedger", world.objects[LEDGERS.name, "", "default"])
    odd = Debit("m-odd", write_micro_time(NOW), DebitState.TENTATIVE, "shop", "uid", pod="odd", pod_uid="u")
    world.put(LEDGERS, replace(ledger, status=LedgerStatus((odd, *(ledger.status.debits or ())))))
    await resume_all(api(world))
    assert len(world.evictions) == 1
    assert world.debits()["m-odd"].state is DebitState.TENTATIVE
    assert len(faults) == noted
    faults.clear()


def leave_debits(world: World, *moves: str) -> None:
    """Leave Tentative debits whose moves have ended, and whose pods are gone."""
    written = write_micro_time(NOW)
    left = (
        Debit(each, written, DebitState.TENTATIVE, "shop", "uid", pod=f"was-{each}", pod_uid=each)
        for each in moves
    )
    world.put(LEDGERS, replace(start_ledger(), status=LedgerStatus(tuple(left))))


async def test_a_leader_marks_the_debits_that_it_finds_before_it_does_anything_else() -> None:
    """It may not live for the seconds after which it would mark its own; all share one write."""
    leave_debits(world := World(), "m-1", "m-2")
    assert await resume(make_context(world, api := FakeApi(world))) == []
    assert {debit.state for debit in world.debits().values()} == {DebitState.SPENT}
    assert api.writes == 1


async def test_a_ledger_that_cannot_be_written_keeps_no_move_from_being_resumed() -> None:
    leave_debits(world := World(), "m-1")
    context = make_context(world, FakeApi(world, troubles={1: errors.Forbidden("write", "for a while")}))
    assert await resume(context) == []
    assert world.debits()["m-1"].state is DebitState.TENTATIVE
    await asyncio.sleep(SPENT_WITHIN + 1)
    assert world.debits()["m-1"].state is DebitState.SPENT


async def test_a_leader_marks_the_debit_of_an_open_move_whose_pod_is_gone_as_soon_as_it_is_settled() -> None:
    """The usual debit after a crash: its move is still in a history, so it is no orphan."""
    await die_before_the_eviction(world := World())
    (move_id,) = world.debits()
    world.evict(move_id, cast("Pod", world.objects["pods", "shop", "web-1"]))
    assert len(await resume(make_context(world, FakeApi(world)))) == 1
    assert world.debits()[move_id].state is DebitState.SPENT


async def test_a_fault_while_debits_are_marked_keeps_no_move_from_being_resumed(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    leave_debits(world := World(), "m-1")
    context = make_context(world, FakeApi(world))

    async def fail() -> None:
        raise KeyError("a defect of ours")

    monkeypatch.setattr(context.ledger, "flush", fail)
    assert await resume(context) == []
    assert context.ledger.is_spending("m-1")
    assert [each.split(" (")[0] for each in faults] == ["resume ledger: KeyError: 'a defect of ours'"]
    faults.clear()


async def test_nothing_else_of_the_workload_is_begun_meanwhile() -> None:
    world = World()
    await die_before_the_eviction(world)
    api = FakeApi(world, refusals={1: NO_BUDGET})
    context = dataclasses.replace(make_context(world, api), policy=lambda: policy(limits={"perWorkload": 3}))
    executor = Executor(context)
    ((handle, settled),) = await resume(context, executor)
    assert isinstance(settled, MoveState)
    order = await compose_order(context, "shop", "web-1", to=("n3",), reason="why not")
    assert isinstance(order, MoveOrder)
    refused = (await executor.move(order)).refused
    assert refused
    assert refused.rule == "MoveUnderWay"
    assert (await executor.finish(handle, settled)).refused
    assert (await executor.move(order)).refused is None


async def test_a_move_that_another_leader_recorded_after_the_take_over_is_resumed() -> None:
    world = World()
    api = FakeApi(world)
    context = make_context(world, api)
    executor = Executor(context)
    assert await resume(context, executor) == []
    late = move("m-late", phase=Phase.PLANNED, pod="web-1", pod_uid="uid-web-1", life=600.0)
    await context.store.start_history(WEB, lambda history: open_move(history, late))
    ((_, settled),) = await resume(context, executor)
    assert isinstance(settled, MoveReport)
    assert settled.refused
    assert settled.refused.rule == "Interrupted"


@pytest.mark.parametrize("phase", [Phase.PLANNED, Phase.NOTED])
async def test_an_open_move_with_the_id_of_another_workloads_move_touches_nothing_of_it(phase: Phase) -> None:
    """Whoever may write histories in a namespace can read the ids of all moves."""
    world = World()
    await die_before_the_eviction(world)
    (found,) = world.noted()
    context = make_context(world, FakeApi(world))
    forged = move(found, phase=phase, pod="theirs", pod_uid="uid-theirs", life=600.0)
    theirs = web_pod("theirs", node="n1")
    world.put(PODS, replace(theirs, metadata=replace(theirs.metadata, namespace="tenant")))
    tenant = replace(WEB, namespace="tenant")
    await context.store.start_history(tenant, lambda history: open_move(history, forged))
    executor = Executor(context)
    resumed = await resume(context, executor)
    (settled,) = [one for one in resumed if one.handle.namespace == "tenant"]
    if isinstance(settled.settled, MoveState):
        await executor.finish(settled.handle, settled.settled)
    assert world.evictions == [(found, "uid-web-1")]
    assert (world.noted(), set(world.debits())) == ({found}, {found})


async def test_a_new_leader_corrects_debits_that_a_wrong_clock_has_dated_to_the_future() -> None:
    world = World()
    wrong = Debit("m1", write_micro_time(world.now() + 86400), DebitState.SPENT, "shop", "uid-web")
    world.put(LEDGERS, replace(start_ledger(), status=LedgerStatus((wrong,))))
    context = make_context(world, api := FakeApi(world))
    assert await resume(context) == []
    assert world.debits()["m1"].time == write_micro_time(world.now() + 5)
    assert await resume(context) == []
    assert api.writes == 1


async def run_take_overs(seeds: Iterable[int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        one = await take_over_from_a_stalling_leader(seed)
        assert find_contradictions(one) == [], f"seed {seed}"
        counts += Counter(rounds=1, evictions=len(one.world.evictions), late=one.late, refused=one.refused)
    return counts


async def test_what_a_leader_sent_before_it_was_cut_off_leaves_no_unpaid_eviction() -> None:
    counts = await run_take_overs(range(TAKE_OVERS))
    assert counts["evictions"] > 2 * TAKE_OVERS
    assert counts["late"] > TAKE_OVERS / 4
    assert counts["refused"] > TAKE_OVERS


@pytest.mark.soak
async def test_the_same_in_a_thousand_take_overs() -> None:
    proof = Proof("take-overs")
    seeds = proof.remaining(range(RACES))
    counts = await run_take_overs(seeds)
    proof.note(seeds)
    print(f"\n{len(proof.passed())} take-overs; in this run {dict(counts)}")
