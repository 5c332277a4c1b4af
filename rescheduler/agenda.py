"""Everything that is proposed, in its order: what rules demand comes first, then what promises most."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, eq=False)
class Agenda:
    """Proposals by their place in the order: whose batch each is of, and which of it."""

    batches: Sequence[Batch]
    batch: Indices
    number: Indices
    pods: Indices
    keys: tuple[NDArray[Any], ...]
    """What they are sorted by, the most important first."""

    def __len__(self) -> int:
        return len(self.pods)

    def __iter__(self) -> Iterator[tuple[Proposal, Policy]]:
        for place in range(len(self)):
            proposals, policy = self.batches[self.batch[place]]
            yield proposals.pick(int(self.number[place])), policy

    def only(self, chosen: Bools | Ints | slice) -> "Agenda":
        keys = tuple(key[chosen] for key in self.keys)
        return Agenda(self.batches, self.batch[chosen], self.number[chosen], self.pods[chosen], keys)

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
        promises = self._weigh_next(seen)
        if promises is None:
            return self, True
        keys = list(self.keys)
        keys[_PROMISE] = np.concatenate([-np.round(promises, _DIGITS), keys[_PROMISE][_NEAR:]])
        last = int(_sort([key[:_NEAR] for key in keys])[-1])
        moved = _count_until(keys, last)
        order = _sort([key[:moved] for key in keys])

        def change(column: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([column[order], column[moved:]])

        batch, number, pods = map(change, (self.batch, self.number, self.pods))
        found = Agenda(self.batches, batch, number, pods, tuple(map(change, keys)))
        return found, not np.any(order[:_FIRST] >= _NEAR)

    def _weigh_next(self, seen: View) -> Promises | None:
        """Find anew what is promised of those that are next; None if that is as it was."""
        batch, pods, promises = self.batch[:_NEAR], self.pods[:_NEAR], -self.keys[_PROMISE][:_NEAR]
        is_new = False
        for place in np.unique(batch).tolist():
            theirs = np.flatnonzero(batch == place)
            found = self.batches[place][1].weigh(pods[theirs], seen)
            if found is not None:
                promises[theirs], is_new = found, True
        return promises if is_new else None

    def find_due(self, seen: View) -> Bools:
        """Tell which of them still matter on a view."""
        due = np.zeros(len(self), np.bool_)
        for place, (proposals, policy) in enumerate(self.batches):
            theirs = np.flatnonzero(self.batch == place)
            if len(theirs):
                due[theirs] = policy.find_due(proposals.cause, self.pods[theirs], seen)
        return due

    def list_by_policy(self) -> Iterator[tuple[str, Ints]]:
        """Give the places of each batch with the name of its policy."""
        for place, (proposals, _) in enumerate(self.batches):
            yield proposals.policy, np.flatnonzero(self.batch == place)


def set_agenda(policies: Iterable[Policy], seen: View, looked_at: frozenset[str]) -> Agenda:
    """Put in order what the policies propose on a view; who was looked at in vain comes after the others."""
    batches = [(each, policy) for policy in policies for each in policy.propose(seen)]
    sizes = [len(each.pods) for each, _ in batches]
    batch = np.repeat(np.arange(len(batches), dtype=np.int32), sizes)
    number = np.concatenate([np.zeros(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
    pods = np.concatenate([np.zeros(0, np.int32), *(each.pods for each, _ in batches)])
    keys = tuple(_list_keys(batches, batch, pods, seen, looked_at))
    return Agenda(batches, batch, number, pods, keys).only(_sort(keys))


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


def _count_until(keys: Sequence[NDArray[Any]], last: int) -> int:
    """Count those that may stand before one of the first; behind these all are in order."""
    before = np.ones(len(keys[0]), np.bool_)
    for key in reversed(keys[: _PROMISE + 1]):
        before = (key < key[last]) | ((key == key[last]) & before)
    before[:_NEAR] = True
    return int(before.sum())


def _sort(keys: Sequence[NDArray[Any]]) -> Ints:
    kept = [key for key in reversed(keys) if len(key) and key.min() != key.max()]
    order: Ints = np.lexsort(kept) if kept else np.arange(len(keys[0]))
    return order


def _find_again(pods: Indices, seen: View, looked_at: frozenset[str]) -> Bools:
    if not looked_at:
        return np.zeros(len(pods), np.bool_)
    rows = seen.ground.snapshot.pods.rows
    return np.fromiter((rows[pod].uid in looked_at for pod in pods.tolist()), np.bool_, len(pods))
