"""Find in an audit log which process led when, and which writes came from a process that no longer led.

Times and order are the server's; a leader is recognised by its credential.
"""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from itertools import pairwise
from typing import NamedTuple

from localcluster.audit_log import Call

_WRITES = frozenset({"create", "update", "patch", "delete"})
_HOLDER = "holderIdentity"
_LOOKED = 1.0
"""Who stands by has looked at the lease within so many seconds: it does so more than twice a second."""
_RETURNING = 10.0
"""Who was started, thawed or connected again looks at the lease within so many seconds."""


class Term(NamedTuple):
    """Somebody led from when the server had taken it in until its last word on the lease came."""

    leader: str
    asked: float
    taken: float
    last: float
    is_released: bool


class HandOver(NamedTuple):
    """How long after the last word of one leader the next one took the lease.

    If nobody stood by then, as when the others had just been killed, too, it counts from when the first one
    of them had returned and looked at the lease. Who was there and did not look is not excused.
    """

    at: float
    seconds: float
    is_released: bool


class Fence:
    """The calls of all leaders since a moment; `returned` is when one was started, thawed or reconnected."""

    def __init__(self, calls: Iterable[Call], *, since: float, returned: Iterable[float] = ()) -> None:
        self._returned = tuple(returned)
        self._calls = [call for call in calls if call.received >= since]
        self.terms = list(_list_terms(self._calls))

    @property
    def evicted(self) -> set[str]:
        """The names of the pods that were evicted, or may have been where nobody heard the answer."""
        return {call.name for call in self._list_evictions()}

    @property
    def times(self) -> list[str]:
        """When which pod was evicted, and how it was answered."""
        return [f"{call.received:.3f} {call.name} {call.code}" for call in self._list_evictions()]

    def list_repeated(self) -> list[str]:
        """Tell which pods were evicted more than once, or by more than one move."""
        names = [call.name for call in self._list_evictions() if call.code]
        return sorted({name for name in names if names.count(name) > 1})

    def count_fullest(self, period: float) -> int:
        """Give the most evictions that any window of so many seconds holds."""
        times = [call.received for call in self._list_evictions()]
        return max((sum(first <= time < first + period for time in times) for first in times), default=0)

    def list_forbidden(self) -> list[float]:
        """Give when somebody was told that this is not allowed."""
        return [call.received for call in self._calls if call.code == HTTPStatus.FORBIDDEN]

    def list_handovers(self) -> list[HandOver]:
        return [
            HandOver(after.taken, after.asked - self._find_first_look(before), before.is_released)
            for before, after in pairwise(self.terms)
            if before.leader != after.leader
        ]

    def _find_first_look(self, before: Term) -> float:
        looks = [
            call.received
            for call in self._calls
            if call.resource == "leases" and call.verb == "get" and call.credential != before.leader
        ]
        if any(before.last - _LOOKED <= at <= before.last for at in looks):
            return before.last
        first = next((at for at in looks if at > before.last), before.last)
        has_returned = any(first - _RETURNING <= at <= first for at in self._returned)
        return first if has_returned else before.last

    def list_late(self) -> list[list[Call]]:
        """Give what each leader but the last wrote after the next one had taken the lease."""
        return [
            [
                call
                for call in self._calls
                if call.credential == before.leader and _is_write(call) and taken < call.received < again
            ]
            for number, before in enumerate(self.terms[:-1])
            for taken, again in [self._find_absence(number)]
        ]

    def _find_absence(self, number: int) -> tuple[float, float]:
        """From when the next one led until this one led again."""
        later = self.terms[number + 1 :]
        again = (term.asked for term in later if term.leader == self.terms[number].leader)
        return later[0].taken, next(again, float("inf"))

    def _list_evictions(self) -> Iterator[Call]:
        """Those that were carried out; and those that may have been, unless the pod was evicted later."""
        real = [
            call
            for call in self._calls
            if call.resource == "pods/eviction" and "dryRun" not in call.body.get("deleteOptions", ())
        ]
        done = {call.name for call in real if call.code == HTTPStatus.CREATED}
        for call in real:
            if call.code == HTTPStatus.CREATED or (call.code is None and call.name not in done):
                yield call


def _list_terms(calls: Iterable[Call]) -> Iterator[Term]:
    """Only what the server has answered well changes a lease."""
    term: Term | None = None
    for call in sorted((one for one in calls if _is_kept(one)), key=lambda one: one.answered or 0.0):
        spec = call.body.get("spec", {})
        if spec.get(_HOLDER):
            if term:
                yield term
            term = Term(
                call.credential, call.received, call.answered or 0.0, call.received, is_released=False
            )
        elif term and call.credential == term.leader:
            term = term._replace(last=call.received, is_released=_HOLDER in spec)
    if term:
        yield term


def _is_kept(call: Call) -> bool:
    return call.resource == "leases" and call.verb in _WRITES and call.code in (200, 201)


def _is_write(call: Call) -> bool:
    """An Event is told by whoever saw something: it decides nothing."""
    return call.verb in _WRITES and call.resource not in ("leases", "events")
