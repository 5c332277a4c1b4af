"""Writes the move ledger: the debits of all moves that ask at the same time share one write.

There is one ledger, so the moves of a cluster would otherwise wait for each other's writes. At most ten
writes a second are sent, and of a large ledger fewer. A reserved debit is answered after its write. A spent
one only ends a reservation that counts anyway, so it waits a few seconds for another write.

If who asked for a debit has gone before the answer, no eviction follows from it: the debit is returned.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from reberth.client.lease import LeaseLost
from reberth.memory.ledger import Disruption, add_debit, count_disruption, is_debit_of, return_debit
from reberth.memory.rates import DisruptionLimits
from reberth.records import Debit, MoveLedger, OpenMove
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import Refused
from rescheduler.execution.store import MoveStore

SPENT_WITHIN = 5.0
"""A spent debit is marked so many seconds after the termination at the latest."""
_APART = 0.1
_BYTES_PER_SECOND = 512 * 1024  # of a ledger of a megabyte, ten writes a second would be too much for etcd

Change = Callable[[MoveLedger], MoveLedger | Refused]

log = Log(__name__)


def find_debit(ledger: MoveLedger | None, move: str) -> Debit | None:
    debits = (ledger.status.debits or ()) if ledger else ()
    return next((one for one in debits if one.move == move), None)


@dataclass(eq=False)
class _Wanted:
    """A change of the ledger that somebody waits for."""

    change: Change
    refused: Refused | None = None
    error: Exception | None = None
    answer: asyncio.Future[MoveLedger | Refused] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def apply(self, ledger: MoveLedger) -> MoveLedger:
        """Apply the change; an error in it must not keep the others from theirs."""
        self.refused = self.error = None
        try:
            changed = self.change(ledger)
        except Exception as error:  # noqa: BLE001 - whoever waits for it gets it, whatever it is
            self.error = error
            return ledger
        self.refused = changed if isinstance(changed, Refused) else None
        return ledger if isinstance(changed, Refused) else changed

    def give(self, ledger: MoveLedger | Refused) -> None:
        if self.answer.done():
            return
        if self.error:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.refused or ledger)


class LedgerWriter:
    """The debits of all moves of one leader."""

    def __init__(
        self, store: MoveStore, *, limits: Callable[[], DisruptionLimits], clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._limits = limits
        self._clock = clock
        self._wanted: list[_Wanted] = []
        self._spent: dict[str, tuple[Disruption, float]] = {}  # by move; since when the pod terminates
        self._abandoned: set[str] = set()  # moves whose debits are about to be returned
        self._committing: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None
        self._not_before = 0.0  # by the clock of the event loop

    def find(self, move: OpenMove, namespace: str) -> Debit | None:
        """Give the debit of a move in the newest known ledger."""
        return self._find_in(self._store.find_ledger(), move, namespace)

    async def read(self, move: OpenMove, namespace: str) -> Debit | None:
        """Give the debit of a move as the API server has it."""
        return self._find_in(await self._store.read_ledger(), move, namespace)

    def _find_in(self, ledger: MoveLedger | None, move: OpenMove, namespace: str) -> Debit | None:
        found = None if move.id in self._abandoned else find_debit(ledger, move.id)
        return found if found and is_debit_of(found, namespace, move.pod_uid) else None

    def is_spending(self, move: str) -> bool:
        """Tell whether the debit of a move is about to be marked as Spent."""
        return move in self._spent

    async def reserve(self, disruption: Disruption, limits: DisruptionLimits) -> Debit | Refused | None:
        """Reserve a disruption within limits whose percentages are counted out for its workload.

        It is returned if the caller is cancelled before the answer.
        """

        def add(ledger: MoveLedger) -> MoveLedger | Refused:
            return add_debit(ledger, limits, disruption, now=self._clock())

        try:
            answer = await self._change(add)
        except asyncio.CancelledError:
            self._abandon(disruption.move)
            raise
        return answer if isinstance(answer, Refused) else find_debit(answer, disruption.move)

    async def renew(self, disruption: Disruption, limits: DisruptionLimits) -> Debit | Refused | None:
        """Write the debit of a move again, so that a request of an earlier leader to return it is too late.

        If that was carried out before, it is reserved anew. A Spent one cannot be returned and stays.
        """

        def change(ledger: MoveLedger) -> MoveLedger | Refused:
            left = return_debit(ledger, disruption.move)
            if isinstance(left, Refused):
                return ledger
            return add_debit(left, limits, disruption, now=self._clock())

        answer = await self._change(change)
        return answer if isinstance(answer, Refused) else find_debit(answer, disruption.move)

    async def give_back(self, move: str) -> None:
        """Return the debit of a disruption that did not happen; one that is Spent stays."""
        await self._change(partial(return_debit, move=move))

    def spend(self, disruption: Disruption, at: float) -> None:
        """Mark the debit as Spent within a few seconds; the pod began to terminate at that time."""
        self._spent.setdefault(disruption.move, (disruption, at))
        self._commit_later()

    async def correct(self, change: Callable[[MoveLedger], MoveLedger]) -> None:
        """Change the ledger otherwise."""
        await self._change(change)

    async def flush(self) -> None:
        """Mark what is spent now: nobody will do it later."""
        if self._spent:
            await self._change(lambda ledger: ledger)

    async def _change(self, change: Change) -> MoveLedger | Refused:
        wanted = _Wanted(change)
        self._wanted.append(wanted)
        self._commit()
        return await wanted.answer

    def _abandon(self, move: str) -> None:
        """Return a debit that was perhaps written and that nobody waits for."""
        self._abandoned.add(move)
        returned = _Wanted(partial(return_debit, move=move))
        returned.answer.add_done_callback(lambda _: self._abandoned.discard(move))
        self._wanted.append(returned)
        self._commit()

    def _commit(self) -> None:
        if self._committing is None or self._committing.done():
            self._committing = asyncio.get_running_loop().create_task(self._commit_all())

    def _commit_later(self) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(SPENT_WITHIN, self._commit_due)

    def _commit_due(self) -> None:
        self._later = None
        self._commit()

    async def _commit_all(self) -> None:
        while self._wanted or (self._spent and self._later is None):
            await asyncio.sleep(self._not_before - asyncio.get_running_loop().time())
            wanted, self._wanted = [each for each in self._wanted if not each.answer.cancelled()], []
            try:
                await self._write(wanted)
            except ReberthError as error:
                self._fail(wanted, error)
            except BaseException as error:  # whatever it is, nobody may wait for ever
                told, self._wanted = [*wanted, *self._wanted], []
                self._fail(told, error)
                if not told:
                    raise

    async def _write(self, wanted: list[_Wanted]) -> None:
        spent = dict(self._spent)

        def change(ledger: MoveLedger) -> MoveLedger:
            for each in wanted:
                ledger = each.apply(ledger)
            return self._mark(ledger, spent)

        begun = asyncio.get_running_loop().time()
        ledger = await self._store.change_ledger(change)
        size = 0 if isinstance(ledger, Refused) else len(msgspec.json.encode(ledger))
        self._not_before = begun + max(_APART, size / _BYTES_PER_SECOND)
        for move in spent:
            del self._spent[move]
        for each in wanted:
            each.give(ledger)

    def _mark(self, ledger: MoveLedger, spent: Mapping[str, tuple[Disruption, float]]) -> MoveLedger:
        """Mark debits as Spent; one that is not there, as after the ledger was deleted, is counted, too."""
        for disruption, at in spent.values():
            ledger = count_disruption(ledger, disruption, self._limits(), now=self._clock(), at=at)
        return ledger

    def _fail(self, wanted: list[_Wanted], error: BaseException) -> None:
        """Tell all that wait. What is spent stays so, and is marked with a later write."""
        self._not_before = asyncio.get_running_loop().time() + _APART
        for each in wanted:
            if not each.answer.done():
                each.answer.set_exception(error)
                each.answer.exception()  # of an abandoned debit nobody hears
        if isinstance(error, LeaseLost):
            self._spent.clear()  # the next leader finds these debits, and that the pods are gone
        elif self._spent:
            log.debug("debits not marked as Spent yet", reason=str(error))
            self._commit_later()
