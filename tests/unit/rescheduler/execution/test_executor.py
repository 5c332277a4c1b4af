"""A move that crashes at each of its writes, and successors that crash too.

Exhaustively: for every number of the write, before and after it took effect, for the first process and for
the one that resumes; with every kind of answer to the eviction; resumed at once or when the move's time is
over.
"""

import asyncio
from collections.abc import Mapping
from itertools import count, product
from typing import Any, cast

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import PODS, Resource
from reberth.records import DebitState, Outcome, Pod
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.moves.lifecycle import MoveState
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.settings import LONGEST_REQUEST
from tests.support.rescheduler.crash_simulator import (
    Evacuated,
    FakeApi,
    FakeMirror,
    Killed,
    Late,
    Lost,
    Overtaken,
    World,
    make_context,
    resume,
)

NO_BUDGET = errors.TooManyRequests("evict", "no", causes=[("DisruptionBudget", "none left", "")])
EVACUATED = Evacuated(
    "evict", 'webhook "w" denied the request: Eviction triggered evacuation of VMI "shop/a"'
)
# What the request for an eviction is answered.
ANSWERS: Mapping[str, Mapping[int, ApiError]] = {
    "granted": {},
    "refused": {1: NO_BUDGET},
    "answer lost": {1: Lost("evict", "reset")},
    "request lost": {1: errors.Unanswered("evict", "reset")},
    "evacuated": {1: EVACUATED},
    "overtaken": {1: Overtaken("evict", "no such pod")},
}
# What the dry run and the true request are answered, where the name of a pod with a budget may return.
ANSWERS_AFTER_A_DRY_RUN: Mapping[str, Mapping[int, ApiError]] = {
    "granted after a dry run": {},
    "dry run refused": {1: NO_BUDGET},
    "refused after a dry run": {2: NO_BUDGET},
    "answer lost after a dry run": {2: Lost("evict", "reset")},
    "evacuated, and so the dry run": dict.fromkeys((1, 2), EVACUATED),
    "overtaken at the dry run": {1: Overtaken("evict", "no such pod")},
}
LATE = {1: Late("evict", "no answer within 30 s")}


def begin(answer: str) -> tuple[World, Mapping[int, ApiError]]:
    """The world for an answer, and the errors of its eviction requests."""
    has_dry_run = answer in ANSWERS_AFTER_A_DRY_RUN
    world = World(names_return=has_dry_run, budgeted=has_dry_run)
    return world, {**ANSWERS, **ANSWERS_AFTER_A_DRY_RUN}[answer]


async def order_and_move(api: FakeApi, *, age: float = 60.0) -> MoveReport:
    context = make_context(api.world, api)
    cast("FakeMirror", context.mirror).age = age
    order = await compose_order(context, "shop", "web-1", to=("n2", "n3"), reason="why not")
    assert isinstance(order, MoveOrder)
    executor = Executor(context)
    report = await executor.move(order)
    await context.ledger.flush()
    assert not executor.moves
    return report


async def take_over(api: FakeApi) -> None:
    context = make_context(api.world, api)
    executor = Executor(context)
    for one in await resume(context, executor):
        if isinstance(one.settled, MoveState):
            await executor.finish(one.handle, one.settled)
    await context.ledger.flush()
    assert not executor.moves


def check(world: World) -> None:
    """One decision was made: its traces agree with what has happened to the pod."""
    assert len(world.evictions) <= 1
    history = world.history()
    assert not world.debits() if history is None else not history.status.open
    past = (history.status.past or ()) if history else ()
    assert len(past) <= 1
    for move in past:
        evicted = move.evicted_at is not None
        assert evicted == bool(world.evictions)
        assert (move.outcome == Outcome.REFUSED) == (not evicted)
        assert world.noted() == ({move.id} if evicted else set())
        states = {debit.state for debit in world.debits().values()}
        assert states == ({DebitState.SPENT} if evicted else set())


@pytest.mark.looptime
@pytest.mark.parametrize("late", [0.0, 400.0], ids=["at once", "late"])
@pytest.mark.parametrize("answer", [*ANSWERS, *ANSWERS_AFTER_A_DRY_RUN])
async def test_wherever_a_leader_dies_one_decision_evicts_once(answer: str, late: float) -> None:
    for first in count(1):
        for after, heir_dies in product((False, True), range(12)):
            world, refusals = begin(answer)
            api = FakeApi(world, dies_at=first, after=after, refusals=refusals)
            try:
                await order_and_move(api)
            except Killed:
                world.late = late
            else:
                check(world)
                assert first > 5
                return
            heir = FakeApi(world, dies_at=heir_dies, after=after)
            try:
                await take_over(heir)
            except Killed:
                await take_over(FakeApi(world))
            check(world)
            await take_over(FakeApi(world))
            check(world)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("answer", "outcome", "rule"),
    [
        ("granted", Outcome.UNKNOWN, None),
        ("granted after a dry run", Outcome.UNKNOWN, None),
        ("dry run refused", Outcome.REFUSED, "PDB"),
        ("refused", Outcome.REFUSED, "PDB"),
        ("refused after a dry run", Outcome.REFUSED, "PDB"),
        ("answer lost", Outcome.UNKNOWN, None),
        ("answer lost after a dry run", Outcome.UNKNOWN, None),
        ("evacuated, and so the dry run", Outcome.UNKNOWN, None),
        ("evacuated", Outcome.UNKNOWN, None),
        ("request lost", Outcome.REFUSED, "Unanswered"),
        ("overtaken", Outcome.UNKNOWN, None),
        ("overtaken at the dry run", Outcome.UNKNOWN, None),
    ],
)
async def test_the_eviction_response_decides_the_outcome_of_a_move(
    answer: str, outcome: Outcome, rule: str | None
) -> None:
    world, refusals = begin(answer)
    report = await order_and_move(FakeApi(world, refusals=refusals))
    assert report.ending.outcome == outcome
    assert (report.refused.rule if report.refused else None) == rule
    assert report.ending.landed_on == ("n2" if rule is None else None)
    check(world)


@pytest.mark.looptime
async def test_a_move_whose_debit_is_lost_is_undone_and_reports_it() -> None:
    world = World()
    with pytest.raises(Killed):
        await order_and_move(FakeApi(world, dies_evicting=True))
    del world.objects["moveledgers", "", "default"]
    api = FakeApi(world)
    context = make_context(world, api)
    executor = Executor(context)
    (one,) = await resume(context, executor)
    assert isinstance(one.settled, MoveState)
    report = await executor.finish(one.handle, one.settled)
    assert report.refused
    assert report.refused.rule == "DebitLost"
    assert not world.evictions
    assert not world.noted()


class NoPodRead(FakeApi):
    """Nobody may read a pod before its eviction."""

    async def get(self, resource: Resource[Any], name: str, **place: str) -> Any:
        assert resource is not PODS or self.world.evictions
        return await super().get(resource, name, **place)


async def move_without_a_read(
    *,
    age: float,
    budgeted: bool,
    names_return: bool = False,
    is_cached: bool = True,
    refusals: Mapping[int, ApiError] | None = None,
) -> World:
    world = World(budgeted=budgeted, names_return=names_return)
    context = make_context(world, FakeApi(world))
    order = await compose_order(context, "shop", "web-1", to=("n2", "n3"), reason="why not")
    assert isinstance(order, MoveOrder)
    context = make_context(world, NoPodRead(world, refusals=refusals))
    mirror = cast("FakeMirror", context.mirror)
    mirror.age = age
    if not is_cached:
        mirror.cache.replace(PODS.kind, [], "0")
    await Executor(context).move(order)
    return world


@pytest.mark.looptime
async def test_a_pod_with_a_budget_is_read_unless_its_watch_has_just_brought_something() -> None:
    world = await move_without_a_read(age=0.5, budgeted=True)
    assert len(world.evictions) == 1
    with pytest.raises(AssertionError):
        await move_without_a_read(age=1.5, budgeted=True)
    with pytest.raises(AssertionError):
        await move_without_a_read(age=0.5, budgeted=True, is_cached=False)


@pytest.mark.looptime
@pytest.mark.parametrize("names_return", [False, True])
async def test_a_pod_without_a_budget_is_evicted_unread_if_it_still_is_as_it_was_cached(
    *, names_return: bool
) -> None:
    """One request: a dry run, which protects the budget, is not needed either."""
    world = World(names_return=names_return)
    api = FakeApi(world, refusals={2: errors.Conflict("evict", "a second request")})
    report = await order_and_move(api)
    assert report.refused is None
    assert (
        len((await move_without_a_read(age=90.0, budgeted=False, names_return=names_return)).evictions) == 1
    )


@pytest.mark.looptime
async def test_a_pod_whose_name_may_return_is_compared_by_the_dry_run_and_not_read() -> None:
    world = await move_without_a_read(age=90.0, budgeted=True, names_return=True)
    assert len(world.evictions) == 1


@pytest.mark.looptime
@pytest.mark.parametrize("budgeted", [False, True], ids=["the eviction", "its dry run"])
async def test_a_move_is_undone_without_reading_the_pod_if_all_that_was_sent_was_refused(
    *, budgeted: bool
) -> None:
    world = await move_without_a_read(age=90.0, budgeted=budgeted, names_return=True, refusals={1: NO_BUDGET})
    history = world.history()
    assert history is not None
    (past,) = history.status.past or ()
    assert past.outcome == Outcome.REFUSED
    check(world)


class ChangedPod(FakeApi):
    """The pod changes right before its first eviction arrives, unseen by the cache."""

    def __init__(self, world: World, **status: Any) -> None:
        super().__init__(world)
        self.versions: list[str | None] = []
        self._status = status

    async def evict(self, name: str, *, version: str | None, **given: Any) -> None:
        if not self.versions:
            pod = cast("Pod", self.world.objects["pods", "shop", name])
            self.world.put(PODS, replace(pod, status=replace(pod.status, **self._status)))
        self.versions.append(version)
        await super().evict(name, version=version, **given)


@pytest.mark.looptime
@pytest.mark.parametrize("age", [0.5, 60.0])
async def test_a_pod_that_has_changed_is_read_and_validated_again(age: float) -> None:
    api = ChangedPod(World(), reason="a change that is nothing to us")
    report = await order_and_move(api, age=age)
    assert report.refused is None
    assert len(api.world.evictions) == 1
    first, second = api.versions
    assert first is not None
    assert second is None
    check(api.world)


@pytest.mark.looptime
async def test_a_pod_that_the_dry_run_finds_changed_is_read_and_tried_again_before_a_budget_is_charged() -> (
    None
):
    api = ChangedPod(World(budgeted=True, names_return=True), reason="a change that is nothing to us")
    report = await order_and_move(api)
    assert report.refused is None
    assert len(api.world.evictions) == 1
    first, *others = api.versions
    assert first is not None
    assert others == [None, None]
    check(api.world)


@pytest.mark.looptime
@pytest.mark.parametrize("age", [0.5, 60.0])
async def test_a_pod_that_has_changed_so_that_it_must_not_be_moved_is_not_evicted(age: float) -> None:
    """However young the cache is: the API server has just said that it lacks something."""
    api = ChangedPod(World(), phase="Succeeded")
    report = await order_and_move(api, age=age)
    assert report.refused is not None
    assert report.refused.rule == "Finished"
    assert len(api.versions) == 1
    assert api.world.evictions == []
    check(api.world)


@pytest.mark.looptime
async def test_an_eviction_that_takes_effect_late_is_waited_for() -> None:
    world = World()
    report = await order_and_move(FakeApi(world, refusals=LATE))
    assert report.refused is None
    assert len(world.evictions) == 1
    check(world)


@pytest.mark.looptime
async def test_a_debit_without_a_move_is_returned_if_its_pod_is_alive_and_a_second_move_is_refused() -> None:
    world = World()
    with pytest.raises(Killed):
        await order_and_move(FakeApi(world, dies_evicting=True))
    assert {debit.state for debit in world.debits().values()} == {DebitState.TENTATIVE}
    second = await order_and_move(FakeApi(world))
    assert isinstance(second.refused, Refused)
    assert second.refused.rule == "MoveUnderWay"
    world.objects = {key: kept for key, kept in world.objects.items() if key[0] != "evictionhistories"}
    context = make_context(world, FakeApi(world))
    executor = Executor(context)
    assert await resume(context, executor) == []
    await context.ledger.flush()
    assert {debit.state for debit in world.debits().values()} == {DebitState.TENTATIVE}
    await asyncio.sleep(LONGEST_REQUEST)
    assert await resume(context, executor) == []
    assert world.debits() == {}


@pytest.mark.looptime
async def test_a_debit_without_a_move_is_spent_if_its_pod_is_gone() -> None:
    world = World()
    with pytest.raises(Killed):
        await order_and_move(FakeApi(world, dies_evicting=True))
    world.objects = {
        key: kept for key, kept in world.objects.items() if key[0] not in ("evictionhistories", "pods")
    }
    await take_over(FakeApi(world))
    assert {debit.state for debit in world.debits().values()} == {DebitState.SPENT}


@pytest.mark.looptime
@pytest.mark.parametrize("write", range(2, 9))
async def test_a_workload_deleted_during_a_move_leaves_no_note_and_no_tentative_debit(
    write: int,
) -> None:
    """Its history goes with it, right after any write."""
    world = World()
    api = FakeApi(world, dies_at=write, after=True)

    def delete_instead() -> None:
        world.objects = {key: kept for key, kept in world.objects.items() if key[0] != "evictionhistories"}

    api._die = delete_instead  # type: ignore[method-assign] # the write that would kill deletes instead
    report = await order_and_move(api)
    assert report.ending.outcome in (Outcome.REFUSED, Outcome.GONE, Outcome.UNKNOWN)
    assert DebitState.TENTATIVE not in {debit.state for debit in world.debits().values()}
    assert len(world.evictions) == (report.refused is None)
    if not world.evictions:
        assert not world.noted()
