"""Whom a plan refuses and why: pod by pod, or tens of thousands at once when it has ended.

The newest word on a pod counts, one for each policy that has proposed it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from reberth.columns import Bools, Indices
from reberth.refusals import Refused
from reberth.rows import PodRow
from rescheduler.plans import NotPlanned


class Word(NamedTuple):
    """What was said of some pods that a policy has proposed."""

    pods: Indices
    policy: str
    refused: Refused


def list_refusals(words: Sequence[Word], rows: Sequence[PodRow], *, stays: Bools) -> Iterator[NotPlanned]:
    """Give the newest words on all pods that stay, by pod and policy."""
    if not words:
        return
    pods, number = _find_newest(words)
    kept = stays[pods]
    for pod, place in zip(pods[kept].tolist(), number[kept].tolist(), strict=True):
        row, (_, policy, refused) = rows[pod], words[place]
        yield NotPlanned(f"{row.namespace}/{row.name}", policy, refused.rule, refused.reason)


def _find_newest(words: Sequence[Word]) -> tuple[Indices, Indices]:
    """Give the pods in order, once for each policy, and the number of the newest word on each."""
    pods = np.concatenate([word.pods for word in words])
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
