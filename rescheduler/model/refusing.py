"""Whom a plan refuses and why: pod by pod, or tens of thousands at once when it has ended.

The newest word on a pod counts, one for each policy that has proposed it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.cluster.rows import PodRow
from reberth.values.refusal import Refused


class Word(NamedTuple):
    """What was said of some pods that a policy has proposed."""

    pods: Indices
    policy: str
    refused: Refused


class NotPlanned(msgspec.Struct, frozen=True, gc=False):
    """A proposal that came to nothing, by the first rule that was against it."""

    pod: str
    policy: str
    rule: str
    reason: str


class Refusals:
    """The newest words on all pods that stay, by pod and policy; spelt out when somebody reads them."""

    def __init__(self, words: Sequence[Word], rows: Sequence[PodRow], *, stays: Bools) -> None:
        self._words, self._rows = words, rows
        pods, number = _find_newest(words)
        self._pods, self._number = pods[stays[pods]], number[stays[pods]]

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[NotPlanned]:
        for pod, place in zip(self._pods.tolist(), self._number.tolist(), strict=True):
            row, (_, policy, refused) = self._rows[pod], self._words[place]
            yield NotPlanned(f"{row.namespace}/{row.name}", policy, refused.rule, refused.reason)

    def count(self) -> Counter[tuple[str, str]]:
        """Count them by rule and policy."""
        found: Counter[tuple[str, str]] = Counter()
        for place, count in enumerate(np.bincount(self._number).tolist()):
            found[self._words[place].refused.rule, self._words[place].policy] += count
        return +found


def _find_newest(words: Sequence[Word]) -> tuple[Indices, Indices]:
    """Give the pods in order, once for each policy, and the number of the newest word on each."""
    pods = np.concatenate([np.zeros(0, np.int32), *(word.pods for word in words)])
    number = np.repeat(np.arange(len(words), dtype=np.int32), [len(word.pods) for word in words])
    policy = _rank(word.policy for word in words)[number]
    order = np.lexsort((number, policy, pods))
    pods, policy, number = pods[order], policy[order], number[order]
    is_newest = np.ones(len(pods), np.bool_)
    is_newest[:-1] = (pods[:-1] != pods[1:]) | (policy[:-1] != policy[1:])
    return pods[is_newest], number[is_newest]


def _rank(names: Iterable[str]) -> Indices:
    """Rank names as they are sorted."""
    found = list(names)
    ranks = {name: rank for rank, name in enumerate(sorted(set(found)))}
    return np.array([ranks[name] for name in found], np.int32)
