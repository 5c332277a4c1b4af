"""What has become of a planned hub, beside what the plan has foretold; each without times."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from federation.api import ResourceBinding
from tests.support.builders import Object


class Outcome(NamedTuple):
    """Every state of every binding from the first on, and the rebalancers at the end."""

    states: dict[str, list[ResourceBinding]]
    rebalancers: dict[str, Object]


def list_differences(outcome: Outcome, answer: Object, *, waits_end: bool = False) -> Iterator[str]:
    """Tell what has happened in another way than it was foretold.

    `waits_end` where the members run pods: what the plan says is waited for has come by the end.
    """
    pairs: dict[str, tuple[Object, Object]] = {
        "ends": (_last_states(outcome), _foretold_states(answer, waits_end=waits_end)),
        "goes through": (_paths_of(outcome), _foretold_paths(answer)),
        "has evictions from": (_begun_evictions(outcome), _foretold_evictions(answer)),
        "is answered": (_results_of(outcome), _foretold_results(answer, waits_end=waits_end)),
    }
    for what, (happened, foretold) in pairs.items():
        for name in sorted(happened.keys() | foretold.keys()):
            if happened.get(name) != foretold.get(name):
                yield f"{name} {what} {happened.get(name)}, foretold was {foretold.get(name)}"


Counts = dict[str, int]


def _paths_of(outcome: Outcome) -> dict[str, list[Counts]]:
    """Where each workload was, one after the other."""
    return {
        name: _shorten([_count(each.spec.clusters) for each in seen]) for name, seen in outcome.states.items()
    }


def _foretold_paths(answer: Object) -> dict[str, list[Counts]]:
    """Where each workload would be, by the steps of the plan."""
    paths = {name: [_counts(each["from"] or ())] for name, each in answer["bindings"].items()}
    for step in answer["steps"]:
        if step["subject"] in paths and step["action"] not in _WITHOUT_CLUSTERS:
            paths[step["subject"]].append(_counts(step.get("to", ())))
    return {name.partition("/")[2]: _shorten(path) for name, path in paths.items()}


_WITHOUT_CLUSTERS = {"Evict", "EndEviction", "Update", "Taint", "Unbind"}


def _count(clusters: Any) -> Counts:
    return {each.name: each.replicas for each in clusters or ()}


def _counts(clusters: Any) -> Counts:
    return {each["name"]: each.get("replicas", 0) for each in clusters}


def _shorten(path: list[Counts]) -> list[Counts]:
    """A binding that is not scheduled yet is nowhere; so is one that does not exist."""
    found: list[Counts] = []
    for each in path:
        if each != (found[-1] if found else {}):
            found.append(each)
    return found


def _last_states(outcome: Outcome) -> dict[str, Object]:
    """What the plan says of each binding, as the hub has it at the end."""
    return {name: _read_state(seen[-1]) for name, seen in sorted(outcome.states.items())}


def _read_state(binding: ResourceBinding) -> Object:
    spec, status = binding.spec, binding.status
    scheduled = [each.reason for each in status.conditions or () if each.type == "Scheduled"]
    return {
        "to": _count(spec.clusters),
        "group": status.observed_affinity,
        "reason": scheduled[0] if scheduled else "NotScheduled",
        "is handed over": bool(spec.handover and spec.handover.clusters),
        "is evicted": bool(spec.graceful_eviction_tasks),
    }


def _foretold_states(answer: Object, *, waits_end: bool) -> dict[str, Object]:
    return {
        name.partition("/")[2]: _foretold_state(each, waits_end=waits_end)
        for name, each in answer["bindings"].items()
    }


def _foretold_state(each: Object, *, waits_end: bool) -> Object:
    waits = set() if waits_end else {wait["for"] for wait in each["waits"]}
    return {
        "to": _counts(each["to"]),
        "group": each["affinityName"],
        "reason": each["reason"],
        "is handed over": "Handover" in waits,
        "is evicted": bool(waits & {"Eviction", "Member"}),
    }


def _begun_evictions(outcome: Outcome) -> dict[str, set[str]]:
    """The clusters of evictions that were not there before."""
    begun = {
        name: {cluster for each in later for cluster in _left_clusters(each) - _left_clusters(first)}
        for name, (first, *later) in outcome.states.items()
    }
    return {name: clusters for name, clusters in begun.items() if clusters}


def _left_clusters(binding: ResourceBinding) -> set[str]:
    return {task.from_cluster for task in binding.spec.graceful_eviction_tasks or ()}


def _foretold_evictions(answer: Object) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for step in answer["steps"]:
        if step["action"] == "Evict":
            name = step["subject"].partition("/")[2]
            found.setdefault(name, set()).update(each["name"] for each in step["from"])
    return found


def _results_of(outcome: Outcome) -> Object:
    """What came of each entry of a rebalancer, without its time."""
    found = {name: one.get("status", {}) for name, one in outcome.rebalancers.items()}
    return _without_times({name: each.get("observedWorkloads", ()) for name, each in found.items()})


def _foretold_results(answer: Object, *, waits_end: bool) -> Object:
    told = _without_times(answer["rebalancers"])
    if waits_end:
        for entry in (each for entries in told.values() for each in entries):
            entry.update({"health": "Healthy"} if "health" in entry else {})
    return told


def _without_times(rebalancers: Object) -> Object:
    return {name: [_read_entry(entry) for entry in each] for name, each in rebalancers.items()}


def _read_entry(entry: Object) -> Object:
    return {key: value for key, value in entry.items() if key != "triggeredAt"}
