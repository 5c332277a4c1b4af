"""Runs moves at the same time: each one is a task, from its order to its outcome."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from enum import Enum
from functools import partial

import msgspec
from msgspec.structs import replace

from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import HISTORY
from reberth.cluster.pods.identity import name_history
from reberth.memory.history import Ending
from reberth.memory.ledger import correct_debits
from reberth.records import DebitState, RememberedRefusal
from reberth.runtime.faults import FAULTS
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused, describe_fault, refuse_fault
from rescheduler.execution.context import ExecutionContext, MoveHandle, MoveHooks
from rescheduler.execution.executor import Executor
from rescheduler.execution.node_order import NodeOrder, Turn
from rescheduler.execution.orders import compose_planned
from rescheduler.execution.recovery import UnsettledMoves, resume_moves
from rescheduler.model.plan import PlannedMove
from rescheduler.model.refusal_memory import RecentRefusals, RefusalMemory, WorkloadName
from rescheduler.model.refusal_scopes import Scope, find_key, find_scope
from rescheduler.model.standing import Standing, judge_standing
from rescheduler.moves.lifecycle import INTERRUPTED, MoveState
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.moves.try_budget import MoveTry, TryBudget, list_refused_at
from rescheduler.telemetry.recording import count_end, count_refusal, count_remembered

_LONGEST_VERDICT = 10.0  # how long a move waits until it is known whether others are refused
_LONGEST_WAIT = 30.0  # for the moves before it: later, its plan would be too old
PLAN_OLD = Refused("PlanOld", "the moves before it in the plan did not land in time")

REFUSAL_RATE = Refused("RefusalRate", "too many moves were refused in the last minute; this one waits")

log = Log(__name__)


class MoveEnd(Enum):
    """How a move ended, for the next plan."""

    EVICTED = "its pod was evicted"
    REFUSED = "it was refused, and the next plan knows: it takes another one"
    WAITING = "it was refused by something that a plan sees: a plan made at once would say the same"
    INTERRUPTED = "an error ended it: the next cycle settles it"


class MoveDispatcher:
    """Starts moves, and keeps them until the task group that they belong to ends.

    `on_end` is called at the end of a move, with its planned move, if any.
    """

    def __init__(
        self,
        context: ExecutionContext,
        group: asyncio.TaskGroup,
        *,
        on_end: Callable[[PlannedMove | None, MoveEnd], None],
    ) -> None:
        self.executor = Executor(context)
        self.unsettled = UnsettledMoves(context.clock)
        self.failed = False  # a move ended with an error: its state must be read from the cluster again
        self.is_well = True
        self.refusals = RecentRefusals()
        self.tries = TryBudget(list_refused_at(context.mirror.cache.of(HISTORY).rows(), context.clock()))
        self._verdict = asyncio.Event()
        self._context = context
        self._group = group
        self._on_end = on_end
        self._pods: dict[str, asyncio.Task[None]] = {}
        self._workloads: Counter[tuple[str, str]] = Counter()
        self._turns = NodeOrder()

    @property
    def waiting(self) -> int:
        """Count the moves that wait for moves before them."""
        return self._turns.waiting

    def __len__(self) -> int:
        return len(self._pods)

    def read_refusals(self) -> RefusalMemory:
        """Give what the next plan is told of refusals."""
        now = self._context.clock()
        return self.refusals.read(now, self.tries.find_left(now))

    def begin(self, planned: PlannedMove) -> bool:
        """Start a planned move, unless its pod or too many pods of its workload are being moved."""
        most = self._context.find_most_moves(planned.uid)
        if self.is_moving(planned.uid) or (
            most is not None and self._workloads[_workload_of(planned)] >= most
        ):
            return False
        self._workloads[_workload_of(planned)] += 1
        turn = self._turns.take((planned.from_, planned.destinations[0].node))
        self._put(planned.uid, planned, partial(self._move, planned, turn))
        return True

    def is_moving(self, uid: str) -> bool:
        """Tell whether this process is moving the pod with this uid."""
        return uid in self._pods

    def begin_order(self, order: MoveOrder, on_report: Callable[[MoveReport], Awaitable[None]]) -> bool:
        """Start a move that a person requested, unless its pod is being moved; it waits for no other move."""
        uid = order.pod.metadata.uid
        if self.is_moving(uid):
            return False
        self._put(uid, None, partial(self._execute, order, on_report))
        return True

    async def resume(self) -> None:
        """Settle the open moves that nobody is working on, and finish those that have to wait."""
        self.failed = False
        try:
            async for one in resume_moves(self._context, self.executor, self.unsettled):
                if isinstance(one.settled, MoveReport):
                    self._record_resumed(one.settled)
                else:
                    self._put(one.settled.entry.pod_uid, None, partial(self._finish, one.handle, one.settled))
            self.is_well = self.is_well and not self.unsettled
        except BaseException:
            self.failed = True  # what was not settled is looked at again
            raise

    def has_orphans(self) -> bool:
        """Tell whether a move is open, or a debit Tentative, of which this process knows nothing.

        What an earlier leader sent may arrive after the take-over. A debit from the future is dated anew by
        resuming, too: as it is, it could fill a rate for good.
        """
        return self._has_future_debits() or any(
            not self.executor.moves.is_held(move) and not self.unsettled.is_resting(move)
            for move in self._list_unfinished()
        )

    def _has_future_debits(self) -> bool:
        limits, now = self._context.policy().limits.rates, self._context.clock()
        ledger = self._context.store.find_ledger()
        return ledger is not None and correct_debits(ledger, limits, now=now) is not ledger

    def _list_unfinished(self) -> Iterator[str]:
        """List by the newest known objects: the cache may not have seen yet what this process has ended."""
        store, spending, in_doubt = (
            self._context.store,
            self._context.ledger.is_spending,
            self.executor.moves.is_in_doubt,
        )
        for listed in self._context.mirror.cache.of(HISTORY).rows():
            if listed.status.open:
                history = store.find_history(listed.metadata.namespace, listed.metadata.name) or listed
                yield from (move.id for move in history.status.open or ())
        ledger = store.find_ledger()
        for debit in (ledger.status.debits or ()) if ledger else ():
            is_due = not (spending(debit.move) or in_doubt(debit.move))
            if debit.state is DebitState.TENTATIVE and is_due:
                yield debit.move

    async def finished(self) -> None:
        """Wait for all moves that have been started, and until their disruptions are written."""
        await asyncio.gather(*self._pods.values())
        await self._context.ledger.flush()

    def _put(self, uid: str, planned: PlannedMove | None, work: Callable[[], Awaitable[MoveEnd]]) -> None:
        task = self._group.create_task(self._watch(planned, work))
        self._pods[uid] = task
        task.add_done_callback(lambda _: self._drop(uid, task))

    def _drop(self, uid: str, task: asyncio.Task[None]) -> None:
        if self._pods.get(uid) is task:
            del self._pods[uid]

    async def _watch(self, planned: PlannedMove | None, work: Callable[[], Awaitable[MoveEnd]]) -> None:
        """An error of one move must not end the others; a lost lease ends all of them."""
        end = MoveEnd.INTERRUPTED
        try:
            end = await work()
        except LeaseLost:
            raise
        except ReberthError as error:
            self._interrupt(planned, replace(INTERRUPTED, reason=str(error)))
            log.warning("move interrupted", pod=planned.pod if planned else None, reason=str(error))
        except Exception as error:  # noqa: BLE001 - it is about this move alone, and is logged
            self._interrupt(planned, refuse_fault(error))
            FAULTS.note("move", planned.pod if planned else "", describe_fault(error), error=error)
        finally:
            self._workloads.subtract([_workload_of(planned)] if planned else [])
        self._on_end(planned, end)

    async def _move(self, planned: PlannedMove, turn: Turn) -> MoveEnd:
        try:
            order = await self._compose(planned, turn)
            if isinstance(order, Refused):
                return self._drop_planned(planned, order)
            attempt = await self._begin_try(planned, order, turn)
            if isinstance(attempt, Refused):
                return self._drop_planned(planned, attempt)
            return await self._try_move(planned, order, turn, attempt)
        finally:
            turn.pass_on()

    def _drop_planned(self, planned: PlannedMove, refused: Refused) -> MoveEnd:
        """End a move before its first write."""
        count_refusal(planned.policy, refused)
        log.info("move refused", pod=planned.pod, policy=planned.policy, **_describe_refusal(refused))
        return self._remember(planned, refused)

    async def _begin_try(self, planned: PlannedMove, order: MoveOrder, turn: Turn) -> MoveTry | Refused:
        """Reserve a try. While others that are being tried may give theirs back, the turn is passed on."""
        context, root = self._context, order.signature.root
        history = context.mirror.cache.of(HISTORY).named(order.signature.namespace, name_history(root))
        name = WorkloadName(*_workload_of(planned))
        known, granted = self.refusals.list_of(name), self.refusals.find_grant(name)
        standing = judge_standing(history, known, context.clock(), granted=granted)
        attempt = self.tries.begin(standing, context.clock())
        if attempt is None:
            turn.pass_on()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LONGEST_VERDICT):
                    while attempt is None and self.tries.is_asking:
                        await self._verdict.wait()
                        attempt = self.tries.begin(standing, context.clock())
        return attempt or REFUSAL_RATE

    async def _try_move(
        self, planned: PlannedMove, order: MoveOrder, turn: Turn, attempt: MoveTry
    ) -> MoveEnd:
        def take_grant(workload: WorkloadName, disproved: tuple[RememberedRefusal, ...]) -> None:
            attempt.grant(self._context.clock())
            self._announce_verdict()
            self._disprove(workload, disproved)

        def take_eviction() -> None:
            # Somebody else has deleted the pod: nothing can refuse the move any more.
            attempt.drop()
            self._announce_verdict()
            turn.pass_on_soon()

        try:
            report = await self.executor.move(order, MoveHooks(take_eviction, turn.pass_on, take_grant))
            end = self._record_end(planned, report)
            if end is MoveEnd.REFUSED:
                attempt.refuse(self._context.clock(), foretells=_foretells(report.refused))
            return end
        except BaseException:
            attempt.refuse(self._context.clock())
            raise
        finally:
            attempt.drop()
            self._announce_verdict()

    def _announce_verdict(self) -> None:
        self._verdict.set()
        self._verdict = asyncio.Event()

    async def _execute(self, order: MoveOrder, on_report: Callable[[MoveReport], Awaitable[None]]) -> MoveEnd:
        report = await self.executor.move(order, MoveHooks(on_grant=self._disprove))
        end = self._record_end(None, report)
        await on_report(report)
        return end

    def _interrupt(self, planned: PlannedMove | None, refused: Refused) -> None:
        """Have the open moves settled, and this one not begun again at once: it may fail every time."""
        self.failed, self.is_well = True, False
        self._remember(planned, refused)

    def _disprove(self, workload: WorkloadName, disproved: tuple[RememberedRefusal, ...]) -> None:
        self.refusals.disprove(workload, disproved, self._context.clock())

    def _remember(self, planned: PlannedMove | None, refused: Refused) -> MoveEnd:
        """Remember a refusal that no history records: the move has written nothing yet."""
        if find_scope(refused.rule) is Scope.NOTHING:
            return MoveEnd.WAITING
        if planned:
            workload = WorkloadName(*_workload_of(planned))
            key = find_key(refused, workload.namespace, uid=planned.uid, node=planned.from_)
            self.refusals.note(workload, refused, key=key, now=self._context.clock())
            count_remembered(refused.rule)
        return MoveEnd.REFUSED

    async def _compose(self, planned: PlannedMove, turn: Turn) -> MoveOrder | Refused:
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                await turn.come()
        except TimeoutError:
            return PLAN_OLD
        return self._context.stop_reason(planned.policy) or compose_planned(self._context, planned)

    async def _finish(self, handle: MoveHandle, state: MoveState) -> MoveEnd:
        move = state.entry.id
        try:
            with self.executor.moves.holding(move):
                return self._record_resumed(await self.executor.finish(handle, state))
        except Exception:
            self.unsettled.note(move)  # it would be resumed at once, and might fail every time
            raise

    def _record_resumed(self, report: MoveReport) -> MoveEnd:
        """A move of an earlier leader has reserved no try here, and uses one up if it was refused."""
        end = self._record_end(None, report)
        if end is MoveEnd.REFUSED:
            self.tries.take_refusal(Standing.REFUSED, self._context.clock())
        return end

    def _record_end(self, planned: PlannedMove | None, report: MoveReport) -> MoveEnd:
        """Log the end of a move in one line, count it, and remember what refused it."""
        landing = report.landing
        count_end(report, landing)
        fields = _describe(report.entry.id, report.ending)
        if report.refused:
            fields |= _describe_refusal(report.refused)
        if report.remembered:
            noted = report.remembered.refusal
            fields |= {"times_refused": noted.count, "not_before": noted.until}
        if landing:
            fields |= {"as_forecast": landing.as_forecast, "miss_cause": landing.cause}
        entry = report.entry
        log.info(
            "move ended",
            pod=planned.pod if planned else entry.pod,
            source=entry.from_,
            destinations=list(entry.destinations or ()),
            policy=entry.policy,
            reason=entry.reason,
            **(_describe_plan(planned) if planned else {}),
            **fields,
        )
        self.is_well = self.is_well and report.is_well
        if report.remembered:
            self.refusals.put(report.remembered)
            count_remembered(report.remembered.refusal.rule)
            return MoveEnd.REFUSED
        return self._remember(planned, report.refused) if report.refused else MoveEnd.EVICTED


def _workload_of(planned: PlannedMove) -> tuple[str, str]:
    return planned.pod.partition("/")[0], planned.workload


def _foretells(refused: Refused | None) -> bool:
    """Tell whether a refusal says something of other moves: not if the pod has just changed or gone."""
    return refused is None or find_scope(refused.rule) is not Scope.POD


def _describe_plan(planned: PlannedMove) -> dict[str, object]:
    figures = {name: getattr(planned, name) for name in ("gain", "cost", "risk", "worth")}
    chance = sum(each.chance for each in planned.destinations)
    fields = {"workload": planned.workload, "level": planned.level, "chance": round(chance, 4)}
    return fields | figures


def _describe(move: str, ending: Ending) -> dict[str, object]:
    values: dict[str, object] = msgspec.structs.asdict(ending)
    known = {name: value for name, value in values.items() if value is not None}
    return {"move": move, **known, "outcome": str(ending.outcome)}


def _describe_refusal(refused: Refused) -> dict[str, object]:
    return {"refused": refused.rule, "refusal": refused.reason}
