"""A pod while it is made from its template: with all that admission reads, then as kube-scheduler gets it."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from reberth.records import (
    Container,
    ContainerPort,
    Labels,
    LimitedResources,
    PodSpec,
    Quantities,
    Quantity,
    Resources,
    TemplateContainer,
    TemplatePort,
    TemplateSpec,
)
from reberth.values.quantity import nanos

POD_FIELDS = PodSpec.__struct_fields__
_CONTAINER_FIELDS = Container.__struct_fields__
_Any = TypeVar("_Any", bound=Container)


@dataclass(frozen=True)
class PodDraft:
    """The labels and the spec that admission makes of a template, and the template itself."""

    labels: Labels
    annotations: Labels
    spec: TemplateSpec
    template: TemplateSpec


def list_containers(spec: PodSpec) -> dict[str, Container]:
    return {each.name: each for each in (*(spec.containers or ()), *(spec.init_containers or ()))}


def requests_of(one: Container | PodSpec | None) -> Quantities:
    """Give the requests of a container, or those of a pod as a whole."""
    resources = one.resources if one else None
    return (resources.requests or {}) if resources else {}


def is_same(first: Quantity | None, second: Quantity | None) -> bool:
    """Tell whether two requests are equal. Raises QuantityError."""
    if first is None or second is None:
        return first is second
    return first == second or nanos(first) == nanos(second)


def are_same(first: Quantities, second: Quantities) -> bool:
    """Tell whether requests are equal, however they are written. Raises QuantityError."""
    return first.keys() == second.keys() and all(is_same(first[name], second[name]) for name in first)


def set_requests(
    spec: TemplateSpec, asked: Mapping[tuple[str, str], Quantity], kept: AbstractSet[str] = frozenset()
) -> TemplateSpec:
    """Set requests by container and resource.

    Limits keep their proportion, as the autoscaler sees to it, but for the containers whose limits are kept.
    """
    if not asked:
        return spec
    return replace(
        spec,
        containers=_set_all(spec.containers, asked, kept),
        init_containers=_set_all(spec.init_containers, asked, kept),
    )


def simplify(spec: TemplateSpec, alike: Mapping[str, Container]) -> PodSpec:
    """Give the fields that kube-scheduler reads. A container that is as this known one becomes that one."""
    fields = {name: getattr(spec, name) for name in POD_FIELDS}
    fields |= {
        "containers": _simplify_all(spec.containers, alike),
        "init_containers": _simplify_all(spec.init_containers, alike),
        "resources": Resources(spec.resources.requests) if spec.resources else None,
    }
    return PodSpec(**fields)


def as_template_container(container: Container) -> TemplateContainer:
    """Take over a container that no template has, with the requests and the host ports that it shows."""
    fields = {name: getattr(container, name) for name in _CONTAINER_FIELDS}
    ports = tuple(TemplatePort(each.host_port, each.host_ip, each.protocol) for each in container.ports or ())
    fields |= {
        "resources": LimitedResources(requests=requests_of(container) or None),
        "ports": ports or None,
    }
    return TemplateContainer(**fields)


def _set_all(
    containers: tuple[TemplateContainer, ...] | None,
    asked: Mapping[tuple[str, str], Quantity],
    kept: AbstractSet[str],
) -> tuple[TemplateContainer, ...] | None:
    return containers and tuple(_set(each, asked, kept) for each in containers)


def _set(
    container: TemplateContainer, asked: Mapping[tuple[str, str], Quantity], kept: AbstractSet[str]
) -> TemplateContainer:
    mine = {name: amount for (owner, name), amount in asked.items() if owner == container.name}
    if not mine:
        return container
    resources = container.resources or LimitedResources()
    before, limits = resources.requests or {}, resources.limits or {}
    if container.name not in kept:
        limits = {name: _scale(limit, before.get(name), mine.get(name)) for name, limit in limits.items()}
    return replace(container, resources=LimitedResources(requests={**before, **mine}, limits=limits or None))


def _scale(limit: Quantity, before: Quantity | None, after: Quantity | None) -> Quantity:
    if after is None:
        return limit
    if before is None or not nanos(before):
        return after
    return f"{nanos(limit) * nanos(after) // nanos(before)}n"


def _simplify_all(
    containers: Iterable[TemplateContainer] | None, alike: Mapping[str, Container]
) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(_simplify(each, alike.get(each.name)) for each in containers)


def _simplify(container: TemplateContainer, known: Container | None) -> Container:
    fields = {name: getattr(container, name) for name in _CONTAINER_FIELDS}
    if known is not None and _is_alike(container, known):
        return known
    ports = tuple(
        ContainerPort(each.host_port, each.host_ip, each.protocol) for each in container.ports or ()
    )
    fields |= {"ports": ports or None, "resources": Resources(requests_of(container) or None)}
    return Container(**fields)


def _is_alike(container: TemplateContainer, known: Container) -> bool:
    """Tell whether kube-scheduler sees no difference."""
    if not are_same(requests_of(container), requests_of(known)):
        return False
    return _ports_of(container) == _ports_of(known) and (
        container.image,
        container.restart_policy,
        container.restart_policy_rules or None,
    ) == (known.image, known.restart_policy, known.restart_policy_rules or None)


def _ports_of(container: _Any) -> list[tuple[int, str, str]]:
    return [
        (each.host_port, each.host_ip or "", each.protocol or "TCP")
        for each in container.ports or ()
        if each.host_port
    ]
