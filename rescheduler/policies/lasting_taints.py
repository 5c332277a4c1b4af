"""Which taints of nodes count as broken rules: those that the settings name, once they have lasted.

Many taints come and go. An agent taints its node while it restarts, and the kubelet while a disk is full. If
the first sight of such a taint moved pods, the restart of a DaemonSet would move every pod of the cluster. So
a taint counts only after it has been on its node for some time. Only NoExecute taints say since when they are
there, and by another clock, so the plan memory keeps it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Indices, Ints, NodeColumns, seal
from reberth.config.settings import Section
from reberth.records import Taint, Toleration
from reberth.selectors import find_untolerated, is_qualified_name
from reberth.values.duration import Duration
from rescheduler.model.plan_memory import find_beginnings

# By node and taint: since when it has been there without a gap.
TaintTimes = Mapping[str, Mapping[str, float]]

_ANY = "*"
_HARD_EFFECTS = ("NoSchedule", "NoExecute")
_SET_BY_KUBERNETES = tuple(
    f"node.kubernetes.io/{name}"
    for name in (
        "disk-pressure",
        "memory-pressure",
        "network-unavailable",
        "not-ready",
        "out-of-service",
        "pid-pressure",
        "unreachable",
        "unschedulable",
    )
)


class TaintSettings(Section, frozen=True):
    """Which taints move pods off their node, and after what time."""

    enabled: bool = True
    """Move pods off nodes whose taints they do not tolerate."""
    include: tuple[str, ...] = ()
    """If set, only taints with these keys count: a key, or the beginning of keys followed by `*`."""
    exclude: tuple[str, ...] = _SET_BY_KUBERNETES
    """Taints with these keys do not count. Kubernetes removes its own, or it evicts the pods by itself."""
    lasting: Duration = msgspec.field(default=Duration(5 * 60), name="for")
    """A taint counts after it has been on its node for this time without a gap."""

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            if not _is_pattern(pattern):
                raise ValueError(f"taints: {pattern!r:.60} is neither a key nor the beginning of keys with *")
        for pattern in self.include:
            if _matches_any(pattern, self.exclude):
                raise ValueError(f"taints: {pattern!r:.60} of include has no effect: exclude covers it")

    def counts(self, key: str) -> bool:
        """Tell whether taints with this key count."""
        return (not self.include or _matches_any(key, self.include)) and not _matches_any(key, self.exclude)


@dataclass(frozen=True, eq=False)
class LastingTaints:
    """The taints that count. Nodes with the same ones share a code."""

    distinct: tuple[tuple[Taint, ...], ...]
    codes: Indices
    _known: dict[tuple[Toleration, ...] | None, Ints] = field(default_factory=dict, repr=False)

    def find_untolerated(self, tolerations: tuple[Toleration, ...] | None) -> Ints:
        """Tell for each node, by 1 or 0, whether these tolerations leave one of its taints untolerated."""
        if tolerations not in self._known:
            answers = [find_untolerated(taints, tolerations) is not None for taints in self.distinct]
            self._known[tolerations] = seal(np.array(answers, np.int64)[self.codes])
        return self._known[tolerations]


class WatchedTaints(NamedTuple):
    """The taints that count on a snapshot, and since when each taint has been on its node."""

    lasting: LastingTaints
    since: dict[str, dict[str, float]]


def watch_taints(
    nodes: NodeColumns, settings: TaintSettings, before: TaintTimes | None, *, now: float
) -> WatchedTaints:
    """Find the taints that count; `before` is what the last snapshot gave, None if nothing is remembered."""
    since, codes = {}, np.zeros(len(nodes.names), np.int32)
    distinct: dict[tuple[Taint, ...], int] = {(): 0}
    for place, record in enumerate(nodes.records):
        hard = [taint for taint in record.spec.taints or () if taint.effect in _HARD_EFFECTS]
        if not hard:
            continue
        known = None if before is None else before.get(nodes.names[place], {})
        times = find_beginnings(map(_name, hard), known, now=now)
        since[nodes.names[place]] = times
        counted = tuple(_list_lasting(hard, settings, times, now=now))
        codes[place] = distinct.setdefault(counted, len(distinct))
    return WatchedTaints(LastingTaints(tuple(distinct), seal(codes)), since)


def _list_lasting(
    taints: Iterable[Taint], settings: TaintSettings, since: Mapping[str, float], *, now: float
) -> Iterator[Taint]:
    for taint in taints:
        if settings.counts(taint.key) and now - since[_name(taint)] >= settings.lasting:
            yield msgspec.structs.replace(taint, time_added=None)  # else no two nodes would share a code


def _name(taint: Taint) -> str:
    """Write a taint as `kubectl taint` does."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _is_pattern(text: str) -> bool:
    beginning, star, rest = text.partition(_ANY)
    return not rest and bool(beginning) and is_qualified_name(f"{beginning}x" if star else beginning)


def _matches_any(key: str, patterns: Iterable[str]) -> bool:
    """Tell whether a key, or all keys with a beginning, match one of the patterns."""
    return any(
        key.startswith(pattern.removesuffix(_ANY)) if pattern.endswith(_ANY) else key == pattern
        for pattern in patterns
    )
