"""Replicas of a copy that get no node in their cluster: for how long, and what the Work tells of them.

The condition `Unschedulable` of the Work says how many there are, and whether they have waited for long
enough to be given to other clusters. The times are those at which this process saw the pods first: clocks of
two machines are not compared. What another process has told stays told while as many of the pods still wait
that this one found at first.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from federation.api import ResourceBinding
from federation.objects.conditions import find_condition
from reberth.records import Condition
from reberth.values.text_limits import read_json
from reberth.values.timestamp import TimeError, parse_time, write_time

UNSCHEDULABLE = "Unschedulable"
TAKEN = "reberth.dev/replicas-taken"
"""Annotation of a binding: from which clusters replicas were taken for lack of nodes, and when."""
_WAITING, _STUCK, _SCHEDULED = "Waiting", "Stuck", "Scheduled"
_COUNT = re.compile(r"(\d{1,9}) of its pods ")
_ALL_SCHEDULED = "All of its pods have a node."


class PendingRules(NamedTuple):
    """After which time replicas are given elsewhere, and for how long their cluster gets none of them."""

    longer_than: float
    block_for: float = 600.0


class WaitingPods(NamedTuple):
    """The pods of one copy that have no node: all, those seen before, and those that have waited for long.

    `first` are those that the first look of this process has found: only they may have waited before it.
    """

    seen: int = 0
    waiting: int = 0
    stuck: int = 0
    first: int = 0


class PendingTold(NamedTuple):
    """What a Work tells of the pods of its copy that have no node."""

    waiting: int = 0
    stuck: int = 0
    why: str = ""


class WaitingSince:
    """Since when each pod of a member has been seen without a node."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._began: float | None = None
        self._now = 0.0

    def observe(self, uids: Iterable[str], *, now: float) -> None:
        """Forget pods that wait no more, and note those that are new."""
        self._began, self._now = now if self._began is None else self._began, now
        self._since = {uid: self._since.get(uid, now) for uid in uids}

    def count(self, uids: Iterable[str], *, longer_than: float) -> WaitingPods:
        """Count those that had been seen before the last look: most pods get a node in a moment."""
        now = self._now
        times = [self._since.get(uid, now) for uid in uids]
        return WaitingPods(
            len(times),
            sum(at < now for at in times),
            sum(now - at >= longer_than for at in times),
            sum(at == self._began for at in times),
        )


def tell_pending(
    conditions: tuple[Condition, ...] | None,
    pods: WaitingPods,
    explain: Callable[[], str],
    *,
    longer_than: float,
) -> Condition | None:
    """Return the condition that the pods call for; None if there is nothing new to tell.

    The explanation is asked for with new numbers alone: it may change with every node.
    """
    had = read_pending(conditions)
    waiting = max(pods.waiting, min(had.waiting, pods.seen))
    stuck = max(pods.stuck, min(had.stuck, pods.first))
    if (stuck or waiting) == had.waiting and stuck == had.stuck:
        return None
    if stuck:
        text = f"{stuck} of its pods have had no node for longer than {longer_than:g} s: {explain()}"
        return Condition(UNSCHEDULABLE, "True", _STUCK, text)
    if waiting:
        text = f"{waiting} of its pods have no node: {explain()}"
        return Condition(UNSCHEDULABLE, "True", _WAITING, text)
    return Condition(UNSCHEDULABLE, "False", _SCHEDULED, _ALL_SCHEDULED)


def read_pending(conditions: tuple[Condition, ...] | None) -> PendingTold:
    said = find_condition(conditions, UNSCHEDULABLE)
    found = _COUNT.match(said.message or "") if said and said.status == "True" else None
    if said is None or found is None:
        return PendingTold()
    count, why = int(found[1]), (said.message or "").partition(": ")[2]
    return PendingTold(count, count if said.reason == _STUCK else 0, why)


def list_taken(binding: ResourceBinding, rules: PendingRules, *, now: float) -> dict[str, float]:
    """Return when replicas were taken from clusters to which none are given back yet."""
    times = read_taken(binding, now=now)
    return {name: at for name, at in times.items() if now < at + rules.block_for}


def read_taken(binding: ResourceBinding, *, now: float) -> dict[str, float]:
    """Return when replicas were taken from which clusters; a time in the future counts as now."""
    noted = read_json((binding.metadata.annotations or {}).get(TAKEN), dict[str, str]) or {}
    return {name: min(at, now) for name, text in noted.items() if (at := _read(text)) is not None}


def write_taken(taken: dict[str, float]) -> dict[str, str]:
    """Return the annotation that notes them."""
    times = {name: write_time(at) for name, at in taken.items()}
    return {TAKEN: msgspec.json.encode(times, order="sorted").decode()}


def _read(text: str) -> float | None:
    try:
        return parse_time(text)
    except TimeError:
        return None
