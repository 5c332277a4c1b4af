"""Defaults beyond those that the schemas of the custom resource definitions can state."""

from collections.abc import Callable, Iterator, Mapping

from federation.admission.json_access import Object, Path, entries, mapping, member, text
from federation.admission.json_patch import Change, Drop, Put
from reberth.values.timestamp import write_time

APPLICATION = ("spec", "failover", "application")
GRACE_PERIOD_SECONDS = 600
GRACEFULLY = "Gracefully"
OLD_PURGE_MODES: Mapping[str, str] = {"Immediately": "Directly", "Graciously": GRACEFULLY}


def set_defaults(kind: str, wanted: Object, *, namespace: str, now: float) -> Iterator[Change]:
    """Return the changes that set the defaults of an object of this kind."""
    if kind in _COMPLETIONS:
        yield from _COMPLETIONS[kind](wanted, namespace, now)


def _complete_policy(policy: Object, namespace: str, _: float) -> Iterator[Change]:
    if namespace:
        yield from _name_namespaces(policy, namespace)
    yield from _spread(policy)
    yield from _divide(policy)
    yield from _rename_purge_mode(APPLICATION, mapping(policy, *APPLICATION))
    yield from _list_states(policy)
    yield from _wait_gracefully(policy)
    yield from _take_dependencies_along(policy)


def _complete_binding(binding: Object, _: str, __: float) -> Iterator[Change]:
    yield from _rename_purge_mode(APPLICATION, mapping(binding, *APPLICATION))
    yield from _list_states(binding)
    for path, task in entries(binding, "spec", "gracefulEvictionTasks"):
        yield from _rename_purge_mode(path, task)
    for path, eviction in entries(binding, "spec", "activeEvictionHistory"):
        yield from _rename_creation(path, eviction)


def _complete_cluster(cluster: Object, _: str, now: float) -> Iterator[Change]:
    for path, taint in entries(cluster, "spec", "taints"):
        if taint.get("effect") == "NoExecute" and taint.get("timeAdded") is None:
            yield Put((*path, "timeAdded"), write_time(now))
    zone = text(cluster, "spec", "zone")
    if zone and not mapping(cluster, "spec").get("zones"):
        yield Put(("spec", "zones"), [zone])


_COMPLETIONS: Mapping[str, Callable[[Object, str, float], Iterator[Change]]] = {
    "Cluster": _complete_cluster,
    "PropagationPolicy": _complete_policy,
    "ClusterPropagationPolicy": _complete_policy,
    "ResourceBinding": _complete_binding,
    "ClusterResourceBinding": _complete_binding,
}


def _name_namespaces(policy: Object, namespace: str) -> Iterator[Change]:
    """A policy with a namespace selects only objects in that namespace."""
    for path, selector in entries(policy, "spec", "resourceSelectors"):
        if selector.get("namespace") in (None, ""):
            yield Put((*path, "namespace"), namespace)


def _spread(policy: Object) -> Iterator[Change]:
    for path, constraint in entries(policy, "spec", "placement", "spreadConstraints"):
        if not (constraint.get("spreadByField") or constraint.get("spreadByLabel")):
            yield Put((*path, "spreadByField"), "cluster")
        if _is_unset(constraint.get("minGroups")):
            yield Put((*path, "minGroups"), 1)


def _is_unset(number: object) -> bool:
    return number is None or (number == 0 and type(number) is int)


def _divide(policy: Object) -> Iterator[Change]:
    path = ("spec", "placement", "replicaScheduling")
    scheduling = mapping(policy, *path)
    divided = scheduling and scheduling.get("replicaSchedulingType", "Divided") == "Divided"
    if divided and not scheduling.get("replicaDivisionPreference"):
        yield Put((*path, "replicaDivisionPreference"), "Weighted")


def _rename_purge_mode(path: Path, holder: Object) -> Iterator[Change]:
    new = OLD_PURGE_MODES.get(text(holder, "purgeMode"))
    if new:
        yield Put((*path, "purgeMode"), new)


def _list_states(holder: Object) -> Iterator[Change]:
    """One state alone becomes a list."""
    path = (*APPLICATION, "decisionConditions")
    state = mapping(holder, *path).get("healthyState")
    if isinstance(state, str):
        yield Put((*path, "healthyState"), [state])


def _rename_creation(path: Path, holder: Object) -> Iterator[Change]:
    old = text(holder, "createTimestamp")
    if old:
        yield Drop((*path, "createTimestamp"))
        if not holder.get("creationTimestamp"):
            yield Put((*path, "creationTimestamp"), old)


def _wait_gracefully(policy: Object) -> Iterator[Change]:
    application = mapping(policy, *APPLICATION)
    mode = text(application, "purgeMode") or GRACEFULLY
    waits = application and OLD_PURGE_MODES.get(mode, mode) == GRACEFULLY
    if waits and application.get("gracePeriodSeconds") is None:
        yield Put((*APPLICATION, "gracePeriodSeconds"), GRACE_PERIOD_SECONDS)


def _take_dependencies_along(policy: Object) -> Iterator[Change]:
    """A workload that fails over needs its ConfigMaps and Secrets in the new cluster, too."""
    if mapping(policy, *APPLICATION) and member(policy, "spec", "propagateDeps") is None:
        yield Put(("spec", "propagateDeps"), True)
