"""Reads the moves of a storm from the audit log: when each one began, was evicted, and ended."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from localcluster.audit_log import Call

HISTORIES = "evictionhistories"
_EVICTION = "pods/eviction"
_MINUTE = 60.0


class Quantiles(NamedTuple):
    """In seconds."""

    half: float
    most: float
    """99 of a hundred took no longer."""
    size: int


@dataclass
class Trace:
    """Times of moves by their ids; of evictions without one, by their pod."""

    began: dict[str, float] = field(default_factory=dict)
    """When the first write of the history that has the move was received."""
    evicted: dict[str, float] = field(default_factory=dict)
    """When the eviction was answered."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the write with the outcome was answered."""
    asked: dict[str, float] = field(default_factory=dict)
    """When the eviction was received."""
    refused: Counter[str] = field(default_factory=Counter)
    """Evictions that the API server did not grant, by its answer."""

    def count_by_minute(self, since: float, seconds: float) -> list[int]:
        """Count the evictions of each minute, or of each part of one at the end."""
        counts = [0] * -(-round(seconds) // round(_MINUTE))
        for at in self.evicted.values():
            if 0 <= at - since < seconds:
                counts[int((at - since) // _MINUTE)] += 1
        return counts

    def measure_until_evicted(self) -> Quantiles:
        return measure(_list_spans(self.began, self.evicted))

    def measure_until_ended(self) -> Quantiles:
        return measure(_list_spans({each: self.began.get(each, -1.0) for each in self.evicted}, self.ended))

    def measure_requests(self) -> Quantiles:
        return measure(_list_spans(self.asked, self.evicted))


def trace(calls: Iterable[Call]) -> Trace:
    found = Trace()
    for call in calls:
        if call.answered is None or call.code is None:
            continue
        if call.resource == _EVICTION:
            _trace_eviction(found, call, call.answered)
        elif call.resource.partition("/")[0] == HISTORIES and call.code < 300:
            _trace_history(found, call, call.answered)
    return found


def count_calls(calls: Iterable[Call], user: str) -> Counter[str]:
    """Count the requests of a user by verb and resource."""
    return Counter(f"{call.verb} {call.resource}" for call in calls if call.user == user)


def measure(spans: Sequence[float]) -> Quantiles:
    """Give the median and the 99th of a hundred; zeros if there is nothing."""
    ordered = sorted(spans)
    if not ordered:
        return Quantiles(0.0, 0.0, 0)
    last = len(ordered) - 1
    return Quantiles(ordered[last // 2], ordered[round(last * 0.99)], len(ordered))


def _trace_eviction(found: Trace, call: Call, answered: float) -> None:
    if call.body.get("deleteOptions", {}).get("dryRun"):
        return
    if call.code is None or call.code >= 300:
        found.refused[str(call.code)] += 1
        return
    annotations: Mapping[str, str] = call.body.get("metadata", {}).get("annotations") or {}
    key = annotations.get("reberth.dev/move", f"{call.namespace}/{call.name}")
    found.asked[key], found.evicted[key] = call.received, answered


def _trace_history(found: Trace, call: Call, answered: float) -> None:
    status: Mapping[str, Any] = call.body.get("status") or {}
    for move in status.get("open") or ():
        found.began.setdefault(move["id"], call.received)
    for move in status.get("past") or ():
        found.ended.setdefault(move["id"], answered)


def _list_spans(begins: Mapping[str, float], ends: Mapping[str, float]) -> list[float]:
    return list(_yield_spans(begins, ends))


def _yield_spans(begins: Mapping[str, float], ends: Mapping[str, float]) -> Iterator[float]:
    for key, begin in begins.items():
        if key in ends and begin >= 0:
            yield ends[key] - begin
