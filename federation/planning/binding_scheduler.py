"""Decisions about bindings one after the other: each sees the room that the ones before it have taken.

It is the memory of one scheduler: the clusters as they were read last, and the replicas that were assigned
and that no member has reported yet (propagation/reservations).
"""

import copy
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Self

import msgspec

from federation.api import Cluster, ResourceBinding
from federation.objects.names import Key
from federation.objects.template import Object
from federation.propagation.reservations import Reservations
from federation.propagation.schedule_note import apply_note, resume
from federation.propagation.schedule_result import change_clusters, describe_unreadable, is_scheduled_by_us
from federation.scheduling import Decision, Fleet, decide
from federation.scheduling.cause import Cause
from federation.scheduling.fleet import MOST, PODS
from federation.scheduling.outcome import Timed, untimed
from reberth.values.object_error import ObjectError
from reberth.values.quantity import UNIT

_ALL_ROOM = {PODS: MOST * UNIT}


class SchedulingRules(NamedTuple):
    """Seconds for which room is reserved, and within which members report a copy that they have applied.

    `handover` is how long new copies may take to get ready after a decision that nobody requested; None
    keeps no old copies.
    """

    reserve_for: float
    reported_within: float
    handover: int | None


class BindingScheduler:
    def __init__(
        self,
        list_clusters: Callable[[], Iterable[Cluster]],
        rules: SchedulingRules,
        *,
        timed: Timed = untimed,
        on_fault: Callable[[ObjectError], None] = lambda _: None,
    ) -> None:
        """`on_fault` is told of each cluster whose room cannot be read."""
        self._list_clusters = list_clusters
        self._rules = rules
        self._timed = timed
        self._on_fault = on_fault
        self._clusters: object = None
        self._fleet: Fleet | None = None
        self._reservations = Reservations(lasting=rules.reserve_for, reported_within=rules.reported_within)

    def fork(self) -> Self:
        """Return a scheduler that knows the same, and whose decisions neither this one nor metrics see."""
        other = copy.copy(self)
        other._timed = untimed  # noqa: SLF001 - the same class
        other._reservations = self._reservations.copy()  # noqa: SLF001 - the same class
        return other

    def restore(self, key: Key, binding: ResourceBinding, *, now: float) -> None:
        """Reserve again what another process has assigned and no member has applied yet."""
        self._reservations.restore(key, binding, now=now)

    def observe(self, key: Key, binding: ResourceBinding | None, *, now: float) -> None:
        """Release what members have reported, or all if the binding is gone."""
        self._reservations.observe(key, binding, now=now)

    def see_fleet(self, key: Key, binding: ResourceBinding, *, now: float) -> Fleet:
        """Return the clusters, less the room that is reserved for others. Raises ObjectError."""
        taken = self._reservations.taken_by_others(key, binding, now=now)
        return self.read_fleet().less(taken)

    def decide(
        self, key: Key, binding: ResourceBinding, *, now: float, without_room: Collection[str] = ()
    ) -> Decision:
        """Decide; an object that cannot be read is a refusal. Clusters `without_room` gain no replicas."""
        try:
            fleet = self.see_fleet(key, binding, now=now).less(dict.fromkeys(without_room, _ALL_ROOM))
            return decide(binding, fleet, now=now, timed=self._timed)
        except ObjectError as error:
            return describe_unreadable(binding, error)

    def decide_known(self, key: Key, binding: ResourceBinding, *, now: float) -> tuple[Decision, bool]:
        """Decide; tell whether an earlier decision was written whose status was not."""
        known = apply_note(binding)
        decision = resume(binding, known, self.decide(key, known, now=now))
        return decision, known is not binding

    def decide_triggered(
        self, key: Key, triggered: ResourceBinding, *, now: float
    ) -> tuple[Decision, Object | None]:
        """Decide for a binding that is about to be triggered; without a patch it is decided afterwards."""
        decision = self.decide(key, apply_note(triggered), now=now)
        is_ours = is_scheduled_by_us(triggered) and decision.cause == Cause.REQUESTED
        return decision, self.change(triggered, decision) if is_ours else None

    def place_new(self, key: Key, wanted: Object, *, now: float) -> Object:
        """Decide for a binding that is about to be created, so that it is created with its clusters.

        If it cannot be decided now, it is created as it is, and scheduled afterwards.
        """
        metadata = {**wanted["metadata"], "namespace": key.namespace}
        binding = msgspec.convert({**wanted, "metadata": metadata}, ResourceBinding)
        self.observe(key, None, now=now)
        decision = self.decide(key, binding, now=now)
        change = self.change(binding, decision) if is_scheduled_by_us(binding) else None
        if change is None:
            return wanted
        self.reserve(key, binding, decision, now=now)
        annotations = {**metadata["annotations"], **change["metadata"]["annotations"]}
        return {
            **wanted,
            "metadata": {**wanted["metadata"], "annotations": annotations},
            "spec": {**wanted["spec"], **change.get("spec", {})},
        }

    def change(self, binding: ResourceBinding, decision: Decision) -> Object | None:
        """Return the patch that carries a decision out; None if nothing changes."""
        leaving = {member.name for member in self.read_fleet().members if member.is_leaving}
        return change_clusters(binding, decision, leaving=leaving, handover=self._rules.handover)

    def reserve(self, key: Key, binding: ResourceBinding, decision: Decision, *, now: float) -> None:
        self._reservations.reserve(key, binding, _list_given(decision), now=now)

    def reserving(
        self, key: Key, binding: ResourceBinding, decision: Decision, *, now: float
    ) -> AbstractContextManager[None]:
        """Reserve while the decision is written; give it back if the API server has not written it."""
        return self._reservations.reserving(key, binding, _list_given(decision), now=now)

    def read_fleet(self) -> Fleet:
        """Return the clusters, read anew when they have changed."""
        clusters = self._list_clusters()
        if clusters is not self._clusters or self._fleet is None:
            known = self._fleet.faults if self._fleet else ()
            self._fleet = Fleet(clusters, before=self._fleet)
            self._clusters = clusters
            for fault in self._fleet.faults:
                if all(fault is not each for each in known):
                    self._on_fault(fault)
        return self._fleet


def _list_given(decision: Decision) -> dict[str, int]:
    return {target.name: target.replicas for target in decision.clusters}
