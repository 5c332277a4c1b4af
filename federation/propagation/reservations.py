"""Reserved room: replicas that were just assigned to a cluster, and that its status does not include yet.

A member reports the requests of its pods some moments after they exist. Until then, decisions are subtracted
from its room, or the next binding would be given the same room again. A reservation ends when the copy
has existed for long enough to be in the cluster's report, when the replicas go elsewhere, or at a timeout.
"""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import msgspec
from msgspec.structs import replace

from federation.api import ResourceBinding
from federation.objects.names import Key
from reberth.records import Quantities, Quantity
from reberth.values import errors
from reberth.values.quantity import QuantityError, nanos

_PODS = "pods"
_PERHAPS_WRITTEN = (errors.ServerFault, errors.Unanswered, errors.Unreadable)


class Reservation(msgspec.Struct, frozen=True):
    """Additional replicas of one request, reserved until a time."""

    replicas: int
    request: Quantities
    until: float

    @property
    def amounts(self) -> dict[str, int]:
        each = {_PODS: "1", **self.request}
        return {name: self.replicas * nanos(amount) for name, amount in each.items()}


class Reservations:
    """Reservations by binding and cluster, and their sum for each cluster."""

    def __init__(self, *, lasting: float, reported_within: float) -> None:
        self._lasting = lasting
        self._reported_within = reported_within
        self._held: dict[Key, dict[str, Reservation]] = {}
        self._taken: dict[str, Counter[str]] = {}
        self._ends: list[tuple[float, int, Key, str]] = []
        self._numbers = itertools.count()

    def copy(self) -> Self:
        """Return the same reservations, to be changed apart from these."""
        other = type(self)(lasting=self._lasting, reported_within=self._reported_within)
        for key, held in self._held.items():
            for name, one in held.items():
                other._put(key, name, one)  # noqa: SLF001 - the same class
        return other

    def reserve(self, key: Key, binding: ResourceBinding, given: Mapping[str, int], *, now: float) -> None:
        """Reserve what a decision gives beyond what the binding has, and what it has and is held still."""
        had = _list_replicas(binding)
        held = self._held.get(key, {})
        more = {
            name: replicas
            - had.get(name, 0)
            + min(held[name].replicas if name in held else 0, had.get(name, 0))
            for name, replicas in given.items()
        }
        self._drop(key, *(held.keys() - {name for name, count in more.items() if count > 0}))
        self._hold(key, binding, more, now=now)

    @contextmanager
    def reserving(
        self, key: Key, binding: ResourceBinding, given: Mapping[str, int], *, now: float
    ) -> Iterator[None]:
        """Reserve while the decision is written; give it back if the API server has not written it."""
        before = dict(self._held.get(key, {}))
        self.reserve(key, binding, given, now=now)
        try:
            yield
        except errors.ApiError as error:
            if not isinstance(error, _PERHAPS_WRITTEN):
                self._drop(key, *self._held.get(key, {}))
                for name, one in before.items():
                    self._put(key, name, one)
            raise

    def restore(self, key: Key, binding: ResourceBinding, *, now: float) -> None:
        """Reserve what another process has assigned and the members have not applied yet."""
        there = _list_applied(binding)
        given = {each.name: each.replicas for each in binding.spec.clusters or () if each.name not in there}
        self._hold(key, binding, given, now=now)

    def observe(self, key: Key, binding: ResourceBinding | None, *, now: float) -> None:
        """Release soon what the members have applied, and at once what belongs to a deleted binding."""
        held = self._held.get(key)
        if held is None:
            return
        if binding is None:
            self._drop(key, *held)
            return
        soon = now + self._reported_within
        for name in _list_applied(binding) & held.keys():
            if soon < held[name].until:
                self._put(key, name, replace(held[name], until=soon))

    def taken(self, *, now: float) -> Mapping[str, Mapping[str, int]]:
        """Return for each cluster the reserved amount of each resource, in nanos."""
        self._forget(now)
        return self._taken

    def taken_by_others(
        self, key: Key, binding: ResourceBinding, *, now: float
    ) -> Mapping[str, Mapping[str, int]]:
        """Return what is taken as far as it may stand against this binding.

        Replicas that it has are in its clusters and are counted there as its own; what is held for it beyond
        them comes from a write of which nobody knows whether it happened, and must not refuse it.
        """
        taken, had = self.taken(now=now), _list_replicas(binding)
        own = {
            name: replace(one, replicas=one.replicas - had.get(name, 0)).amounts
            for name, one in self._held.get(key, {}).items()
            if one.replicas > had.get(name, 0)
        }
        return (
            {**taken, **{name: Counter(taken[name]) - Counter(own[name]) for name in own}} if own else taken
        )

    def _hold(self, key: Key, binding: ResourceBinding, counts: Mapping[str, int], *, now: float) -> None:
        request = _read_request(binding)
        for name, count in counts.items():
            if count > 0:
                self._put(key, name, Reservation(count, request, now + self._lasting))

    def _put(self, key: Key, name: str, one: Reservation) -> None:
        self._drop(key, name)
        self._held.setdefault(key, {})[name] = one
        self._taken.setdefault(name, Counter()).update(one.amounts)
        heapq.heappush(self._ends, (one.until, next(self._numbers), key, name))

    def _drop(self, key: Key, *names: str) -> None:
        held = self._held.get(key, {})
        for name in [name for name in names if name in held]:
            self._taken[name].subtract(held.pop(name).amounts)
        if not held:
            self._held.pop(key, None)

    def _forget(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, _, key, name = heapq.heappop(self._ends)
            if name in self._held.get(key, {}) and self._held[key][name].until <= now:
                self._drop(key, name)


def _read_request(binding: ResourceBinding) -> Quantities:
    """Return what a replica asks for. Of an amount that cannot be read nothing can be reserved."""
    needs = binding.spec.replica_requirements
    request = (needs.resource_request if needs else None) or {}
    return {name: amount for name, amount in request.items() if _is_readable(amount)}


def _is_readable(amount: Quantity) -> bool:
    try:
        nanos(amount)
    except QuantityError:
        return False
    return True


def _list_replicas(binding: ResourceBinding) -> dict[str, int]:
    return {target.name: target.replicas for target in binding.spec.clusters or ()}


def _list_applied(binding: ResourceBinding) -> set[str]:
    return {each.cluster_name for each in binding.status.aggregated_status or () if each.applied}
