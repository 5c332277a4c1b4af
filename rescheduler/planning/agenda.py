"""The agenda: all proposals in their order. Broken rules come first, then the highest promises."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, Indices, Ints
from reberth.forecast.state.view import View
from reberth.values import refusal
from rescheduler.policies.proposal import Policy, Promises, Proposal, Proposals

_DIGITS = 6
# After each move the promises of this many next proposals are estimated again: estimating all of them after
# every move would cost too much.
_NEAR, _FIRST = 256, 16

Batch = tuple[Proposals, Policy]
# The promise of a proposal and its rank among equal promises: complex numbers sort by both.
SortKeys = NDArray[np.complex128]


class AgendaEntry(NamedTuple):
    """One of the proposals, not written yet."""

    pod: int
    number: int
    proposals: Proposals
    policy: Policy

    def write(self) -> Proposal:
        return self.proposals.pick(self.number)


class ProposalColumns(NamedTuple):
    """For each proposal: its batch, its number in the batch, its pod, and its rank.

    A lower class comes first whatever the promises are; ties decide among equal promises.
    """

    batch: Indices
    number: Indices
    pods: Indices
    classes: Indices
    ties: Ints


@dataclass(frozen=True, eq=False)
class Agenda:
    """Proposals in their order: the sort keys have it, the columns keep the order of proposing."""

    batches: Sequence[Batch]
    columns: ProposalColumns
    order: Ints
    turns: SortKeys

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[AgendaEntry]:
        for place in self.order.tolist():
            proposals, policy = self.batches[self.columns.batch[place]]
            yield AgendaEntry(
                int(self.columns.pods[place]), int(self.columns.number[place]), proposals, policy
            )

    @property
    def batch(self) -> Indices:
        return self.columns.batch[self.order]

    @property
    def pods(self) -> Indices:
        return self.columns.pods[self.order]

    def only(self, chosen: Bools | slice) -> "Agenda":
        return Agenda(self.batches, self.columns, self.order[chosen], self.turns[chosen])

    def since(self, place: int) -> "Agenda":
        """Give the proposals from this place on."""
        return self.only(slice(place, None))

    def near(self) -> "Agenda":
        """Give the next proposals."""
        return self.only(slice(None, _NEAR))

    def weigh_again(self, view: View) -> "Agenda":
        """Sort the next proposals by their promises on a newer view, until no other takes their place."""
        agenda, is_settled = self, False
        while not is_settled:
            agenda, is_settled = agenda._sort_next(view)
        return agenda

    def _sort_next(self, view: View) -> tuple["Agenda", bool]:
        """Sort the next proposals; tell whether none moved to the front by an outdated promise."""
        promises = self.near().weigh(view)
        if promises is None:
            return self, True
        near, rest = self.order[:_NEAR], self.since(_NEAR)
        classes, turns = self.columns.classes[near], _take_turns(promises, self.columns.ties[near])
        ranked = np.lexsort((turns, classes))
        places = rest.find_places(classes[ranked], turns[ranked])
        is_near = np.zeros(len(near) + int(places[-1]), np.bool_)
        is_near[places + np.arange(len(near))] = True
        order = _merge(near[ranked], rest.order, is_near)
        after = _merge(turns[ranked], rest.turns, is_near)
        return Agenda(self.batches, self.columns, order, after), not places[:_FIRST].any()

    def find_places(self, classes: Indices, turns: SortKeys) -> Ints:
        """Find the places of other proposals among these, within the class of the first one."""
        first = self.columns.classes[self.order[0]] if len(self) else 0
        alike = bisect_right(self.order, first, key=self.columns.classes.__getitem__)
        return np.where(classes < first, 0, np.searchsorted(self.turns[:alike], turns))

    def weigh(self, view: View) -> Promises | None:
        """Estimate the promises again; None if they are unchanged."""
        batch, pods, promises = self.batch, self.pods, -self.turns.real
        is_new = False
        for place in range(len(self.batches)):
            theirs = np.flatnonzero(batch == place)
            found = self.batches[place][1].weigh(pods[theirs], view) if len(theirs) else None
            if found is not None:
                promises[theirs], is_new = found, True
        return promises if is_new else None

    def find_due(self, view: View) -> Bools:
        """Tell which of the proposals still hold on a view."""
        due, batch, pods = np.zeros(len(self), np.bool_), self.batch, self.pods
        for place, (proposals, policy) in enumerate(self.batches):
            theirs = np.flatnonzero(batch == place)
            if len(theirs):
                due[theirs] = policy.find_due(proposals.cause, pods[theirs], view)
        return due

    def list_by_policy(self) -> Iterator[tuple[str, Ints]]:
        """Give the places of each batch with the name of its policy."""
        batch = self.batch
        for place, (proposals, _) in enumerate(self.batches):
            yield proposals.policy, np.flatnonzero(batch == place)


def set_agenda(
    policies: Iterable[Policy], view: View, looked_at: frozenset[str], faults: dict[str, str]
) -> Agenda:
    """Order what the policies propose on a view; pods that were forecast in vain come after the others.

    A policy that stumbles proposes nothing, and its fault is added by its name.
    """
    batches = [(each, policy) for policy in policies for each in _propose(policy, view, faults)]
    sizes = [len(each.pods) for each, _ in batches]
    batch = np.repeat(np.arange(len(batches), dtype=np.int32), sizes)
    number = np.concatenate([np.zeros(0, np.int32), *(np.arange(size, dtype=np.int32) for size in sizes)])
    pods = np.concatenate([np.zeros(0, np.int32), *(each.pods for each, _ in batches)])
    undemanded = np.array([each.demand is None for each, _ in batches], np.int32)[batch]
    classes = 2 * undemanded + _find_again(pods, view, looked_at)
    columns = ProposalColumns(batch, number, pods, classes, _break_ties(batches, batch, pods, view))
    promises = np.concatenate([np.zeros(0), *(each.promises for each, _ in batches)])
    turns = _take_turns(promises, columns.ties)
    order = np.lexsort((columns.ties, turns.real, classes))
    return Agenda(batches, columns, order, turns[order])


def _propose(policy: Policy, view: View, faults: dict[str, str]) -> list[Proposals]:
    try:
        return list(policy.propose(view))
    except Exception as error:  # noqa: BLE001 - the plan warns of it, and the others propose
        faults[policy.name] = refusal.describe_fault(error)
        return []


def _break_ties(batches: Sequence[Batch], batch: Indices, pods: Indices, view: View) -> Ints:
    """Rank by priority, then by name of the pod, then by policy and cause."""
    names = sorted({(each.policy, each.cause) for each, _ in batches})
    rank = np.array([names.index((each.policy, each.cause)) for each, _ in batches], np.int32)
    ties = np.empty(len(pods), np.int64)
    ties[np.lexsort((rank[batch], pods, view.facts.snapshot.pods.priority[pods]))] = np.arange(len(pods))
    return ties


def _take_turns(promises: Promises, ties: Ints) -> SortKeys:
    """Make sort keys: the highest promise comes first."""
    return -np.round(promises, _DIGITS) + 1j * ties


def _merge(near: NDArray[Any], rest: NDArray[Any], is_near: Bools) -> NDArray[Any]:
    """Merge some into the first of the others: they go where `is_near` is true."""
    passed = len(is_near) - len(near)
    first = np.empty(len(is_near), near.dtype)
    first[is_near], first[~is_near] = near, rest[:passed]
    return np.concatenate([first, rest[passed:]])


def _find_again(pods: Indices, view: View, looked_at: frozenset[str]) -> Bools:
    if not looked_at:
        return np.zeros(len(pods), np.bool_)
    rows = view.facts.snapshot.pods.rows
    return np.fromiter((rows[pod].uid in looked_at for pod in pods.tolist()), np.bool_, len(pods))
