"""The part of a pod's status that differs from its spec: an in-place resize in progress.

The kubelet repeats the requests of every container in the status, and their sum as those of the pod. While
they equal the spec they add nothing, and replicas stay alike; where they differ, they decide how much the pod
takes from its node. The sum of cpu is a reading of the cgroup, which loses some: a smaller one adds nothing.
"""

from collections.abc import Iterable
from operator import attrgetter

from reberth.cluster.pods.requests import cover
from reberth.records import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    Quantities,
    Resources,
)
from reberth.values.quantity import QuantityError

_PENDING = "PodResizePending"
_type_of = attrgetter("type")


def keep_differing(pod: Pod) -> PodStatus:
    """Keep the QoS class and, during a resize, the fields that the requests depend on."""
    spec, status = pod.spec, pod.status
    pending = _find_pending(status.conditions or ())
    if (
        pending is None
        and _repeat(status.container_statuses, spec.containers)
        and _repeat(status.init_container_statuses, spec.init_containers)
        and _repeats_whole(status, spec)
    ):
        return PodStatus(qos_class=status.qos_class)
    return PodStatus(
        qos_class=status.qos_class,
        conditions=pending,
        container_statuses=_keep_requests(status.container_statuses),
        init_container_statuses=_keep_requests(status.init_container_statuses),
        resources=status.resources,
        allocated_resources=status.allocated_resources,
    )


def _find_pending(conditions: tuple[PodCondition, ...]) -> tuple[PodCondition, ...] | None:
    """Keep the condition that explains why a resize waits, without its times."""
    if _PENDING not in map(_type_of, conditions):
        return None
    return tuple(
        PodCondition(type=each.type, reason=each.reason) for each in conditions if each.type == _PENDING
    )


def _repeat(statuses: Iterable[ContainerStatus] | None, containers: Iterable[Container] | None) -> bool:
    if not statuses:
        return True
    asked = {container.name: container.resources for container in containers or ()}
    for status in statuses:
        wanted, actual, allocated = asked.get(status.name), status.resources, status.allocated_resources
        if wanted and actual == wanted and allocated == wanted.requests:
            continue  # true for nearly all containers: a call for each would cost more than this
        if not _repeats(actual, allocated, wanted):
            return False
    return True


def _repeats_whole(status: PodStatus, spec: PodSpec) -> bool:
    """A pod without pod-level requests has them in its status nevertheless: the sum of its containers'."""
    actual, allocated = status.resources, status.allocated_resources
    if _repeats(actual, allocated, spec.resources):
        return True
    if spec.resources is not None:
        return False
    only, *others = (*(spec.containers or ()), *(spec.init_containers or ())) or (None,)
    if only and not others and _repeats(actual, allocated, only.resources):
        return True  # of nearly all pods, and cheaper than to add up
    try:
        return cover(spec, [reported for reported in (_requests_of(actual), allocated) if reported])
    except QuantityError:
        return False  # kept, so that the field is named where it is read


def _repeats(actual: Resources | None, allocated: Quantities | None, asked: Resources | None) -> bool:
    if actual is None and not allocated:
        return True
    requests = _requests_of(asked)
    return (actual is None or _requests_of(actual) == requests) and (not allocated or allocated == requests)


def _requests_of(resources: Resources | None) -> Quantities | None:
    return (resources.requests or None) if resources else None


def _keep_requests(statuses: Iterable[ContainerStatus] | None) -> tuple[ContainerStatus, ...] | None:
    kept = [
        ContainerStatus(
            name=status.name,
            resources=status.resources,
            allocated_resources=status.allocated_resources,
        )
        for status in statuses or ()
    ]
    return tuple(kept) or None
