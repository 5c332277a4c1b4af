"""LimitRanges: the requests and limits that they give to containers, and the pods that they forbid.

kube-apiserver: `plugin/pkg/admission/limitranger/admission.go`: `PodMutateLimitFunc`, `PodValidateLimitFunc`
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from reberth.records import (
    Container,
    LimitedResources,
    LimitRange,
    LimitRangeItem,
    Quantities,
    Quantity,
    TemplateContainer,
    TemplateSpec,
)
from reberth.values.quantity import nanos

ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINER, _POD = "Container", "Pod"
_CONTRADICTING = 2
_Amounts = dict[str, int]


class _Bounds(NamedTuple):
    """What a container, or a whole pod, requests and is limited to, in nanos."""

    kind: str
    requests: Mapping[str, int]
    limits: Mapping[str, int]


def apply_limit_ranges(spec: TemplateSpec, ranges: Iterable[LimitRange]) -> TemplateSpec:
    """Give the containers the limits and requests that they lack."""
    for each in ranges:
        limits, requests = _read_defaults(each)
        if not limits and not requests:
            continue
        spec = replace(
            spec,
            containers=_apply(spec.containers, limits, requests),
            init_containers=_apply(spec.init_containers, limits, requests),
        )
    return spec


def find_contradiction(spec: TemplateSpec, ranges: Iterable[LimitRange]) -> str | None:
    """Tell what two LimitRanges give differently: the API server takes them in any order."""
    given = [_read_defaults(each) for each in ranges]
    if len(given) < _CONTRADICTING:
        return None
    containers = (*(spec.containers or ()), *(spec.init_containers or ()))
    for which, all_given in (
        ("limits", [each[0] for each in given]),
        ("requests", [each[1] for each in given]),
    ):
        amounts: defaultdict[str, set[int]] = defaultdict(set)
        for name, amount in chain.from_iterable(each.items() for each in all_given):
            amounts[name].add(nanos(amount))
        for name in sorted(name for name, found in amounts.items() if len(found) > 1):
            if any(name not in _part(each, which) for each in containers):
                return f"LimitRanges of the namespace give different {which} of {name}"
    return None


def find_violation(spec: TemplateSpec, ranges: Iterable[LimitRange]) -> str | None:
    """Tell what a LimitRange forbids of the pod. Raises QuantityError."""
    items = [(each, item) for each in ranges for item in each.spec.limits or ()]
    found = (
        f"LimitRange {each.metadata.name}: {said}"
        for each, item in items
        for bounds in _list_bounds(spec, item)
        for said in _list_violations(item, bounds)
    )
    return next(found, None)


def find_above_limit(spec: TemplateSpec) -> str | None:
    """Tell which container requests more than its limit: a LimitRange may have given it either."""
    for each in (*(spec.containers or ()), *(spec.init_containers or ())):
        requests, limits = (
            (each.resources.requests, each.resources.limits) if each.resources else (None, None)
        )
        for name, limit in (limits or {}).items():
            if name in (requests or {}) and nanos((requests or {})[name]) > nanos(limit):
                return f"container {each.name} requests more {name} than its limit of {limit}"
    return None


def is_set_by_range(container: str, resource: str, annotation: str) -> bool:
    """Tell whether a LimitRange gave the request to a container, by the annotation that says what it did."""
    for clause in annotation.partition(":")[2].split(";"):
        names, _, target = clause.strip().partition(" request for ")
        if target.rpartition(" ")[2] == container and resource in names.split(", "):
            return True
    return False


def _read_defaults(each: LimitRange) -> tuple[Quantities, Quantities]:
    limits: Quantities = {}
    requests: Quantities = {}
    for item in each.spec.limits or ():
        if item.type == _CONTAINER:
            limits |= item.default or {}
            requests |= item.default_request or {}
    return limits, requests


def _apply(
    containers: tuple[TemplateContainer, ...] | None, limits: Quantities, requests: Quantities
) -> tuple[TemplateContainer, ...] | None:
    return containers and tuple(
        replace(each, resources=_merge(each.resources or LimitedResources(), limits, requests))
        for each in containers
    )


def _merge(own: LimitedResources, limits: Quantities, requests: Quantities) -> LimitedResources:
    return LimitedResources(
        requests={**requests, **(own.requests or {})}, limits={**limits, **(own.limits or {})}
    )


def _list_bounds(spec: TemplateSpec, item: LimitRangeItem) -> Iterator[_Bounds]:
    if item.type == _CONTAINER:
        for each in (*(spec.containers or ()), *(spec.init_containers or ())):
            resources = each.resources or LimitedResources()
            yield _Bounds(_CONTAINER, _read(resources.requests), _read(resources.limits))
    if item.type == _POD:
        yield _Bounds(_POD, add_up(spec, "requests"), add_up(spec, "limits"))


def _list_violations(item: LimitRangeItem, bounds: _Bounds) -> Iterator[str]:
    for name, least in (item.min or {}).items():
        request, limit = bounds.requests.get(name), bounds.limits.get(name)
        if request is None or request < nanos(least) or (limit is not None and limit < nanos(least)):
            yield f"minimum {name} usage per {bounds.kind} is {least}"
    for name, most in (item.max or {}).items():
        request, limit = bounds.requests.get(name), bounds.limits.get(name)
        if limit is None or limit > nanos(most) or (request is not None and request > nanos(most)):
            yield f"maximum {name} usage per {bounds.kind} is {most}"
    for name, ratio in (item.max_limit_request_ratio or {}).items():
        if _is_beyond(bounds.requests.get(name), bounds.limits.get(name), ratio):
            yield f"{name} max limit to request ratio per {bounds.kind} is {ratio}"


def _is_beyond(request: int | None, limit: int | None, ratio: Quantity) -> bool:
    if not request or not limit:
        return True
    return limit * nanos(1) > request * nanos(ratio)


def add_up(spec: TemplateSpec, which: str) -> dict[str, int]:
    """Add up requests or limits of the containers that run together; those of the whole pod come first."""
    total, sidecars, peak = _Amounts(), _Amounts(), _Amounts()
    for each in spec.containers or ():
        total = _add(total, _part(each, which))
    for each in spec.init_containers or ():
        if each.restart_policy == "Always":
            total, sidecars = _add(total, _part(each, which)), _add(sidecars, _part(each, which))
            peak = _maximum(peak, sidecars)
        else:
            peak = _maximum(peak, _add(sidecars, _part(each, which)))
    return _maximum(total, peak) | _read(getattr(spec.resources, which) if spec.resources else None)


def _part(container: Container, which: str) -> _Amounts:
    return _read(getattr(container.resources, which, None))


def _read(quantities: Quantities | None) -> _Amounts:
    return {name: nanos(quantity) for name, quantity in (quantities or {}).items()}


def _add(amounts: _Amounts, more: _Amounts) -> _Amounts:
    return amounts | {name: amounts.get(name, 0) + amount for name, amount in more.items()}


def _maximum(amounts: _Amounts, more: _Amounts) -> _Amounts:
    return amounts | {name: max(amounts.get(name, 0), amount) for name, amount in more.items()}
