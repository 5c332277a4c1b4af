"""Everything that is proposed, in its order: what rules demand comes first, then what promises most."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.columns import Bools, Indices, Ints
from reberth.landing.viewing import View
from rescheduler.policies.proposals import Policy, Promises, Proposal, Proposals

_DIGITS = 6
# What moves leave of promises is found anew for so many proposals, and again once these were all looked at.
_NEAR, _FIRST = 256, 16
_PROMISE = 2

Batch = tuple[Proposals, Policy]


class Columns(NamedTuple):
    """Of each proposal whose batch it is of, which of it, its pod, and what it is sorted by."""

    batch: Indices
    number: Indices
    pods: Indices
    keys: tuple[NDArray[Any], ...]
    """The most important first."""

    def keys_of(self, places: Ints) -> list[NDArray[Any]]:
        return [key[places] for key in self.keys]

    def promise(self, places: Ints, promises: Promises) -> "Columns":
        """Let these promise something else."""
        key = self.keys[_PROMISE].copy()
        key[places] = -np.round(promises, _DIGITS)
        return self._replace(keys=(*self.keys[:_PROMISE], key, *self.keys[_PROMISE + 1 :]))


@dataclass(frozen=True, eq=False)
class Agenda:
    """Proposals in their order. The columns stand as all were proposed; who comes when `order` alone says."""

    batches: Sequence[Batch]
    columns: Columns
    order: Ints

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[tuple[Proposal, Policy]]:
        for place in self.order.tolist():
            proposals, policy = self.batches[self.columns.batch[place]]
            yield proposals.pick(int(self.columns.number[place])), policy

    @property
    def batch(self) -> Indices:
        return self.columns.batch[self.order]

    @property
    def pods(self) -> Indices:
        return self.columns.pods[self.order]

    def only(self, chosen: Bools | slice) -> "Agenda":
        return Agenda(self.batches, self.columns, self.order[chosen])

    def since(self, place: int) -> "Agenda":
        """Give what comes from this place on."""
        return self.only(slice(place, None))

    def near(self) -> "Agenda":
        """Give those that are next."""
        return self.only(slice(None, _NEAR))

    def weigh_again(self, seen: View) -> "Agenda":
        """Sort those that are next by what they promise on another view, and who takes their place too."""
        agenda, is_settled = self, False
        while not is_settled:
            agenda, is_settled = agenda._sort_next(seen)
        return agenda

    def _sort_next(self, seen: View) -> tuple["Agenda", bool]:
        """Sort those that are next; tells whether none comes to the front by an old promise."""
        promises = self.near().weigh(seen)
        if promises is None:
            return self, True
        columns, near = self.columns.promise(self.order[:_NEAR], promises), self.order[:_NEAR]
        near = near[_sort(columns.keys_of(near))]
        moved = np.concatenate([near, self.order[len(near) : _count_until(columns, self.order, near[-1])]])
        turns = _merge(columns.keys_of(moved), len(near))
        order = np.concatenate([moved[turns], self.order[len(moved) :]])
        return Agenda(self.batches, columns, order), not np.any(turns[:_FIRST] >= _NEAR)

    def weigh(self, seen: View) -> Promises | None:
        """Find anew what is promised; None if that is as it was."""
        batch, pods, promises = self.batch, self.pods, -self.columns.keys[_PROMISE][self.order]
        is_new = False
        for place in range(len(self.batches)):
            theirs = np.flatnonzero(batch == place)
            found = self.batches[place][1].weigh(pods[theirs], seen) if len(theirs) else None
            if found is not None:
                promises[theirs], is_new = found, True
        return promises if is_new else None

    def find_due(self, seen: View) -> Bools:
        """Tell which of them still matter on a view."""
        due, batch, pods = np.zeros(len(self), np.bool_), self.batch, self.pods
        for place, (proposals, policy) in enumerate(self.batches):
            theirs = np.flatnonzero(batch == place)
            if len(theirs):
                due[theirs] = policy.find_due(proposals.cause, pods[theirs], seen)
        return due

    def list_by_policy(self) -> Iterator[tuple[str, Ints]]:
        """Give the places of each batch with the name of its policy."""
        batch = self.batch
        for place, (proposals, _) in enumerate(self.batches):
            yield proposals.policy, np.flatnonzero(batch == place)


def set_agenda(policies: Iterable[Policy], seen: View, looked_at: frozenset[str]) -> Agenda:
    """Put in order what the policies propose on a view; who was looked at in vain comes after the others."""
    batches = [(each, policy) for policy in policies for each in policy.propose(seen)]
    sizes = [len(each.pods) for each, _ in batches]
    batch = np.repeat(np.arange(len(batches), dtype=np.int32), sizes)
    number = np.concatenate([np.zeros(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
    pods = np.concatenate([np.zeros(0, np.int32), *(each.pods for each, _ in batches)])
    keys = tuple(_list_keys(batches, batch, pods, seen, looked_at))
    return Agenda(batches, Columns(batch, number, pods, keys), _sort(keys))


def _list_keys(
    batches: Sequence[Batch], batch: Indices, pods: Indices, seen: View, looked_at: frozenset[str]
) -> list[NDArray[Any]]:
    """Sort by demand, by who was looked at, by promise, priority and name: pods stand by their names."""
    snapshot = seen.ground.snapshot
    promises = np.concatenate([np.zeros(0), *(each.promises for each, _ in batches)])
    names = sorted({(each.policy, each.cause) for each, _ in batches})
    rank = np.array([names.index((each.policy, each.cause)) for each, _ in batches], np.int32)
    undemanded = np.array([each.demand is None for each, _ in batches], np.bool_)
    return [
        undemanded[batch],
        _find_again(pods, seen, looked_at),
        -np.round(promises, _DIGITS),
        snapshot.pods.priority[pods],
        pods,
        rank[batch],
    ]


def _count_until(columns: Columns, order: Ints, last: int) -> int:
    """Count those that may stand before one of the first; behind these all are in order."""

    def find_key(place: int) -> tuple[Any, ...]:
        return tuple(key[place] for key in columns.keys[: _PROMISE + 1])

    return bisect_right(order, find_key(last), lo=min(_NEAR, len(order)), key=find_key)


def _merge(keys: Sequence[NDArray[Any]], first: int) -> Ints:
    """Sort two parts that are sorted. Only where both promise alike, the other keys are asked again."""
    if any(key.min() != key.max() for key in keys[:_PROMISE]):
        return _sort(keys)
    order: Ints = np.argsort(keys[_PROMISE], kind="stable")
    promised, is_first = keys[_PROMISE][order], order < first
    is_alike = promised[:-1] == promised[1:]
    run = np.concatenate(([0], np.cumsum(~is_alike)))
    is_mixed = np.zeros(len(order), np.bool_)
    is_mixed[run[1:][is_alike & is_first[:-1] & ~is_first[1:]]] = True
    places = np.flatnonzero(is_mixed[run])
    alike = order[places]
    order[places] = alike[_sort([key[alike] for key in keys])]
    return order


def _sort(keys: Sequence[NDArray[Any]]) -> Ints:
    kept = [key for key in reversed(keys) if len(key) and key.min() != key.max()]
    order: Ints = np.lexsort(kept) if kept else np.arange(len(keys[0]))
    return order


def _find_again(pods: Indices, seen: View, looked_at: frozenset[str]) -> Bools:
    if not looked_at:
        return np.zeros(len(pods), np.bool_)
    rows = seen.ground.snapshot.pods.rows
    return np.fromiter((rows[pod].uid in looked_at for pod in pods.tolist()), np.bool_, len(pods))
