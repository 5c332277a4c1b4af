"""The resource requests of a pod, as kube-scheduler counts them.

Every pod is counted twice: its requests, and its load as LeastAllocated weighs it, with a default for
containers that request nothing. A bound pod may be resized in place: then the requests in its spec, the
resources that the node has allocated and those it actually runs with differ, and the largest counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import NamedTuple

from reberth.records import Container, ContainerStatus, Pod, PodSpec, PodStatus, Quantities, Resources
from reberth.selectors import is_qualified_name
from reberth.values.quantity import MILLI, UNIT, QuantityError, nanos, round_up, write_quantity

Version = tuple[int, int]
NEWEST: Version = (1, 37)
"""The newest version whose way of counting is known: for files that do not tell theirs."""

Amounts = Mapping[str, int]

CPU = "cpu"
MEMORY = "memory"
STORAGE = "ephemeral-storage"
PODS = "pods"

_HUGE_PAGES = "hugepages-"
_SCALAR_PREFIXES = (_HUGE_PAGES, "attachable-volumes-")

_Nanos = dict[str, int]

_ASSUMED = {CPU: 100 * MILLI, MEMORY: 200 * 1024**2 * UNIT}


class PodRequests(NamedTuple):
    """The requests and the load of a pod: cpu in millis, everything else in units.

    The load is what LeastAllocated weighs: it assumes a default for containers that request nothing.
    """

    amounts: Amounts
    load: Amounts

    @property
    def load_cpu(self) -> int:
        return self.load.get(CPU, 0)

    @property
    def load_memory(self) -> int:
        return self.load.get(MEMORY, 0)


class _Part(NamedTuple):
    """The requests of one container; a sidecar is an init container that keeps running."""

    amounts: _Nanos
    is_initial: bool
    stays: bool


class _Bill(NamedTuple):
    """All parts of a pod's total.

    The total is the largest of all views of its containers and of the sums that the node reports; pod-level
    requests replace it; the overhead is added.
    """

    views: list[list[_Part]]
    sums: list[_Nanos]
    whole: _Nanos
    overhead: _Nanos


class _Resize(NamedTuple):
    """The progress of an in-place resize of a bound pod. An infeasible resize does not count as requested."""

    statuses: dict[str, ContainerStatus]
    is_infeasible: bool


def read_version(text: str) -> Version:
    """Read a version of Kubernetes, like 1.36 or v1.36.3, without its patch. Raises ValueError."""
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()):
        raise ValueError(f"invalid version {text!r:.80}, e.g. 1.36")
    return int(major), int(minor)


def write_version(version: Version) -> str:
    return ".".join(map(str, version))


def count_bound_requests(pod: Pod, *, version: Version) -> PodRequests:
    """Count a bound pod, as this version of kube-scheduler does."""
    if pod.spec.resources is None and _is_irrelevant(pod.status):
        return count_incoming_requests(pod.spec)  # the same result for most pods, in two thirds of the time
    resize = _find_resize(pod.status)
    views, sums = _view_maxima(pod, resize) if version < (1, 37) else _view_sums(pod, resize)
    bill = _Bill(views, sums, _find_whole(pod, resize, version), _read(pod.spec.overhead))
    total = _sum_up(bill, {})
    assumed = _ASSUMED
    if _read_whole(pod.spec.resources):
        assumed = {name: amount for name, amount in _ASSUMED.items() if name not in total}
    return _settle(total, _sum_up(bill, assumed))


def count_incoming_requests(spec: PodSpec) -> PodRequests:
    """Count an unbound pod. LeastAllocated ignores its pod-level requests."""
    views = [list(_read_parts(spec, _asked, _asked))]
    bill = _Bill(views, [], _read_whole(spec.resources), _read(spec.overhead))
    total = _sum_up(bill, {})
    if not bill.whole and all(part.amounts.keys() >= _ASSUMED.keys() for part in views[0]):
        return _settle(total, total)
    return _settle(total, _sum_up(bill._replace(whole={}), _ASSUMED))


def node_amounts(allocatable: Quantities | None) -> Amounts:
    """Count what a node offers, in the units of Demand, and how many pods it takes."""
    return _count(_read(allocatable))


def cover(spec: PodSpec, reported: Iterable[Quantities]) -> bool:
    """Tell whether the containers together request no less than each of these sums, whatever the version.

    Raises QuantityError.
    """
    asked = _sum_parts(_read_parts(spec, _asked, _asked), {})
    return all(amount <= asked.get(name, -1) for sums in reported for name, amount in _read(sums).items())


def write_amount(resource: str, amount: int) -> str:
    """Format an amount for people: 1500 of cpu is "1500m", 2**31 of memory "2Gi"."""
    is_bytes = resource in {MEMORY, STORAGE} or resource.startswith(_HUGE_PAGES)
    return write_quantity(amount * _unit(resource), binary=is_bytes)


def _is_irrelevant(status: PodStatus) -> bool:
    """Tell whether no part of a pod's status, as templates keep it, affects its requests."""
    return status == PodStatus(qos_class=status.qos_class)


def _find_resize(status: PodStatus) -> _Resize:
    statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
    pending = (each for each in status.conditions or () if each.type == "PodResizePending")
    first = next(pending, None)
    return _Resize({each.name: each for each in statuses}, first is not None and first.reason == "Infeasible")


def _view_maxima(pod: Pod, resize: _Resize) -> tuple[list[list[_Part]], list[_Nanos]]:
    """Up to 1.36 each container counts with its own largest request."""
    return [list(_read_parts(pod.spec, partial(_largest, resize=resize), _asked))], []


def _view_sums(pod: Pod, resize: _Resize) -> tuple[list[list[_Part]], list[_Nanos]]:
    """From 1.37 on the largest sum counts, and the node may report its sums itself."""
    spec, status = pod.spec, pod.status
    asked = [] if resize.is_infeasible else [list(_read_parts(spec, _asked, _asked))]
    allocated, actual = _read(status.allocated_resources), _read_requests(status.resources)
    if allocated and actual:
        return asked, [allocated, actual]
    readings = partial(_allocated, resize=resize), partial(_actual, resize=resize)
    return asked + [list(_read_parts(spec, reading, reading)) for reading in readings], []


def _find_whole(pod: Pod, resize: _Resize, version: Version) -> _Nanos:
    """Give the effective pod-level requests; their resizing counts since 1.36."""
    asked, status = _read_whole(pod.spec.resources), pod.status
    if not asked or status.resources is None or version < (1, 36):
        return asked
    largest = _read_largest(pod.spec.resources, status.resources, status.allocated_resources, resize)
    if version < (1, 37):
        return {name: largest.get(name, 0) for name in asked}
    return {name: amount for name, amount in largest.items() if _may_be_whole(name)}


def _read_parts(
    spec: PodSpec, reading: Callable[[Container], _Nanos], initial: Callable[[Container], _Nanos]
) -> Iterator[_Part]:
    for container in spec.containers or ():
        yield _Part(reading(container), is_initial=False, stays=True)
    for container in spec.init_containers or ():
        stays = container.restart_policy == "Always"
        yield _Part(reading(container) if stays else initial(container), is_initial=True, stays=stays)


def _asked(container: Container) -> _Nanos:
    return _read_requests(container.resources)


def _largest(container: Container, resize: _Resize) -> _Nanos:
    status = resize.statuses.get(container.name)
    if status is None or status.resources is None:
        return _asked(container)
    return _read_largest(container.resources, status.resources, status.allocated_resources, resize)


def _allocated(container: Container, resize: _Resize) -> _Nanos:
    status = resize.statuses.get(container.name)
    known = _read(status.allocated_resources) if status else {}
    return known or ({} if resize.is_infeasible else _asked(container))


def _actual(container: Container, resize: _Resize) -> _Nanos:
    status = resize.statuses.get(container.name)
    return (_read_requests(status.resources) if status else {}) or _allocated(container, resize)


def _sum_up(bill: _Bill, assumed: _Nanos) -> _Nanos:
    total = _maximum([*(_sum_parts(view, assumed) for view in bill.views), *bill.sums])
    return _add(total | bill.whole, bill.overhead)


def _sum_parts(parts: Iterable[_Part], assumed: _Nanos) -> _Nanos:
    """Add up the containers that run together; each init container runs with the sidecars before it."""
    total: _Nanos = {}
    sidecars: _Nanos = {}
    peaks: list[_Nanos] = []
    for part in parts:
        amounts = assumed | part.amounts
        if part.stays:
            total = _add(total, amounts)
        if part.is_initial:
            together = _add(sidecars, amounts)
            peaks.append(together)
            sidecars = together if part.stays else sidecars
    return _maximum([total, *peaks])


def _add(amounts: _Nanos, more: _Nanos) -> _Nanos:
    return amounts | {name: amounts.get(name, 0) + amount for name, amount in more.items()}


def _maximum(choices: Iterable[_Nanos]) -> _Nanos:
    largest: _Nanos = {}
    for choice in choices:
        largest |= {name: max(amount, largest.get(name, 0)) for name, amount in choice.items()}
    return largest


def _settle(total: _Nanos, load: _Nanos) -> PodRequests:
    """Round once, after all values are added."""
    counted = _count(total)
    return PodRequests(counted, counted if load is total else _count(load))


def _count(total: _Nanos) -> Amounts:
    counted = {name: round_up(amount, _unit(name)) for name, amount in total.items() if _is_counted(name)}
    return MappingProxyType(counted)


def _unit(resource: str) -> int:
    return MILLI if resource == CPU else UNIT


@lru_cache(maxsize=2**10)
def _is_counted(resource: str) -> bool:
    """Tell whether kube-scheduler knows the resource or treats it as an extended one."""
    if resource in {CPU, MEMORY, STORAGE, PODS} or resource.startswith(_SCALAR_PREFIXES):
        return True
    if "kubernetes.io/" in resource:
        return True
    is_extended = "/" in resource and not resource.startswith("requests.")
    return is_extended and is_qualified_name(f"requests.{resource}")


def _may_be_whole(resource: str) -> bool:
    return resource in {CPU, MEMORY} or resource.startswith(_HUGE_PAGES)


def _read_whole(resources: Resources | None) -> _Nanos:
    return {name: amount for name, amount in _read_requests(resources).items() if _may_be_whole(name)}


def _read_largest(
    asked: Resources | None, actual: Resources, allocated: Quantities | None, resize: _Resize
) -> _Nanos:
    known = [_read_requests(actual), _read(allocated)]
    return _maximum(known if resize.is_infeasible else [_read_requests(asked), *known])


def _read_requests(resources: Resources | None) -> _Nanos:
    return _read(resources.requests) if resources else {}


def _read(quantities: Quantities | None) -> _Nanos:
    amounts: _Nanos = {}
    name = ""
    try:
        for name, quantity in (quantities or {}).items():
            amounts[name] = nanos(quantity)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from error
    return amounts
