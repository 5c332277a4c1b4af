"""Status of a member cluster: sums of its nodes and pods, its API resources, and the condition Ready."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from federation.api import ApiEnablement, Cluster
from federation.objects.conditions import find_condition, put_condition
from federation.objects.merge_patch import make_merge_patch
from federation.objects.template import Object
from reberth.cluster.pods.requests import write_amount
from reberth.cluster.rows import NodeRow, PodRow
from reberth.cluster.templates import RESOURCES
from reberth.records import Condition
from reberth.values.text_limits import cut

READY = "Ready"
COMPLETE_APIS = "CompleteAPIEnablements"
ALL_APIS, SOME_APIS = "AllAPIsAnswer", "SomeAPIsDoNotAnswer"
_NAMED = 10
HEALTHY = "ClusterReady"
NOT_HEALTHY = "ClusterNotReady"
NOT_REACHABLE = "ClusterNotReachable"
NOT_USABLE = "StatusCollectionFailed"
"""The credentials or the certificate do not work, so that the state of the member is unknown.

It is told apart from an unreachable member: a bad Secret must not evict the workloads of a healthy member.
"""
SAME_MEMBER = "SameMemberAsAnotherCluster"
"""Another Cluster stands for the same API server; this one is not used."""
_READY_STATE, _LEAVING, _UNKNOWN = "ready", "leaving", "unknown"
_STATES = {
    NOT_HEALTHY: "unhealthy",
    NOT_REACHABLE: "unreachable",
    NOT_USABLE: "unusable",
    SAME_MEMBER: "sameMember",
}
STATES = (_READY_STATE, *_STATES.values(), _LEAVING, _UNKNOWN)
# What the definition of a Cluster allows: a status beyond it would be refused as a whole.
MOST_GROUP_VERSIONS = MOST_KINDS = 4096
MOST_RESOURCES = 1024
LONGEST_GROUP_VERSION, LONGEST_NAME, LONGEST_KIND = 317, 253, 63
_READY_TEXT = "cluster is healthy and ready to accept workloads"

Amounts = Mapping[str, int]


class ProbeResult(NamedTuple):
    """The result of a probe, and since when all probes have agreed on whether the member is ready."""

    reason: str
    message: str
    since: float

    @property
    def is_ready(self) -> bool:
        return self.reason == HEALTHY

    @property
    def answers(self) -> bool:
        return self.reason in {HEALTHY, NOT_HEALTHY}


class ClusterReport(NamedTuple):
    """What is known of a member; None if it is not known yet."""

    version: str | None = None
    apis: list[Object] | None = None
    room: Object | None = None
    silent: tuple[str, ...] | None = None
    """Group versions that the member announces, and that do not answer."""


def sum_resources(nodes: Iterable[NodeRow], pods: Iterable[PodRow]) -> Object:
    """Add up allocatable amounts of schedulable Ready nodes, and requests of running and pending pods."""
    known = list(nodes)
    ready = {row.record.metadata.name: row for row in known if _is_ready(row)}
    allocatable: Counter[str] = Counter()
    for row in ready.values():
        _add(allocatable, row.main, row.extended)
    allocated: Counter[str] = Counter()
    allocating: Counter[str] = Counter()
    for pod in pods:
        if pod.is_finished or (pod.node is not None and pod.node not in ready):
            continue
        _add(allocated if pod.node else allocating, pod.template.main, pod.template.extended)
    sums = {"allocatable": allocatable, "allocating": allocating, "allocated": allocated}
    summary = {name: _write(amounts) for name, amounts in sums.items() if any(amounts.values())}
    return {"resourceSummary": summary, "nodeSummary": {"totalNum": len(known), "readyNum": len(ready)}}


def change_ready_condition(
    cluster: Cluster, result: ProbeResult, *, is_lasting: bool, now: float
) -> list[Object] | None:
    """Return the conditions with the new Ready; None if it does not change.

    A change needs a result that has lasted, so that one lost probe does not taint the cluster. The first
    result counts at once.
    """
    has = find_condition(cluster.status.conditions, READY)
    status = str(result.is_ready)
    if has and has.status != status and not is_lasting:
        return None
    message = _READY_TEXT if result.is_ready else result.message
    wanted = Condition(type=READY, status=status, reason=result.reason, message=message)
    return put_condition(cluster.status.conditions, wanted, now=now)


def change_api_condition(
    cluster: Cluster, silent: Sequence[str] | None, conditions: list[Object] | None, *, now: float
) -> list[Object] | None:
    """Return the conditions, or those of the Cluster, with CompleteAPIEnablements; None if it has it."""
    if silent is None:
        return None
    has = (
        cluster.status.conditions
        if conditions is None
        else msgspec.convert(conditions, tuple[Condition, ...])
    )
    reason, message = ALL_APIS, "all API groups that the member announces answer"
    if silent:
        more = f" and {len(silent) - _NAMED} more" if len(silent) > _NAMED else ""
        reason, message = SOME_APIS, f"{', '.join(silent[:_NAMED])}{more}: announced, but without an answer"
    wanted = Condition(type=COMPLETE_APIS, status=str(not silent), reason=reason, message=message)
    return put_condition(has, wanted, now=now)


def change_cluster_status(
    cluster: Cluster, survey: ClusterReport, conditions: list[Object] | None
) -> Object | None:
    """Return the merge patch of a Cluster's status; None if nothing changes."""
    wanted: Object = {} if conditions is None else {"conditions": conditions}
    if survey.version is not None:
        wanted["kubernetesVersion"] = survey.version
    if survey.apis is not None:
        wanted["apiEnablements"] = survey.apis[:MOST_GROUP_VERSIONS]
    wanted |= survey.room or {}
    had: Object = msgspec.json.decode(msgspec.json.encode(cluster.status))
    change = {
        name: make_merge_patch(had.get(name), value)
        for name, value in wanted.items()
        if _differ(had.get(name), value)
    }
    if not change:
        return None
    return {"metadata": {"resourceVersion": cluster.metadata.resource_version}, "status": change}


def describe_apis(
    kinds: Mapping[str, Iterable[tuple[str, str]]], *, silent: Sequence[str], had: Iterable[ApiEnablement]
) -> list[Object]:
    """Return the group versions of the status, with the plural and the name of each kind.

    One that does not answer at the moment keeps the kinds that it had.
    """
    kept = {
        each.group_version: [(one.name, one.kind) for one in each.resources or ()]
        for each in had
        if each.group_version in silent
    }
    return [
        _describe_group(version, each)
        for version, each in sorted({**kept, **kinds}.items(), key=lambda item: ("/" in item[0], item[0]))
    ]


def _describe_group(version: str, kinds: Iterable[tuple[str, str]]) -> Object:
    listed = [{"name": cut(name, LONGEST_NAME), "kind": cut(kind, LONGEST_KIND)} for name, kind in kinds]
    return {"groupVersion": cut(version, LONGEST_GROUP_VERSION), "resources": listed[:MOST_KINDS]}


def is_member_ready(cluster: Cluster) -> bool:
    """Tell whether a member is Ready, so that what it said last of its copies counts."""
    ready = find_condition(cluster.status.conditions, READY)
    return ready is not None and ready.status == "True"


def is_member_silent(cluster: Cluster) -> bool:
    """Tell whether nothing is heard of a member any more, so that nobody knows whether its copies run."""
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None or ready.status == "True":
        return False
    return ready.status == "Unknown" or ready.reason in {NOT_REACHABLE, NOT_USABLE, SAME_MEMBER}


def name_state(cluster: Cluster) -> str:
    """Return the state of a Cluster in one word."""
    if cluster.metadata.deletion_timestamp is not None:
        return _LEAVING
    ready = find_condition(cluster.status.conditions, READY)
    if ready is None:
        return _UNKNOWN
    return _READY_STATE if ready.status == "True" else _STATES.get(ready.reason or "", _UNKNOWN)


def _differ(had: Any, value: Any) -> bool:  # noqa: ANN401 - any JSON
    """Compare without empty values: a record omits them."""
    return had != value and bool((_bare(had) or None) != (_bare(value) or None))


def _bare(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {name: _bare(each) for name, each in value.items() if each not in (0, "", None, [], {})}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _is_ready(row: NodeRow) -> bool:
    conditions = row.record.status.conditions or ()
    ready = any(each.type == READY and each.status == "True" for each in conditions)
    return ready and not row.record.spec.unschedulable


def _add(total: Counter[str], main: bytes, extended: Amounts) -> None:
    amounts = array("q", main)
    for name, amount in zip(RESOURCES, amounts, strict=True):
        total[name] += amount
    for name, amount in extended.items():
        total[name] += amount


def _write(amounts: Amounts) -> dict[str, str]:
    """Write the amounts that are not zero; if there are very many, those first that all nodes have."""
    found = sorted((name for name, amount in amounts.items() if amount), key=_rank)
    return {name: write_amount(name, amounts[name]) for name in sorted(found[:MOST_RESOURCES])}


def _rank(resource: str) -> tuple[bool, str]:
    return resource not in RESOURCES, resource
