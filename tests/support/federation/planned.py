"""Hubs to be planned: members, bindings of ours, and the plan of what the controllers would do."""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding, TargetCluster
from federation.commands.plan import read_rules
from federation.objects.names import Key
from federation.planning.hub_objects import HubSnapshot
from federation.planning.plan import HubPlan, PlannedStep
from federation.planning.planner import make_plan
from federation.planning.rehearsal import PlanRules
from federation.settings import FederationSettings
from reberth.values.timestamp import write_time
from tests.support.federation.clusters import DUPLICATED, binding, cluster, groups
from tests.support.federation.rebalancers import T

RULES = read_rules(FederationSettings())
OURS = {"binding.karmada.io/managed-by": "test"}


def ago(seconds: float) -> str:
    return write_time(T - seconds)


def member(name: str, room: int | str = 100, *, is_ready: bool = True, **more: Any) -> Cluster:
    """A member that has answered for an hour, or cannot be reached for as long."""
    reason = "ClusterReady" if is_ready else "ClusterNotReachable"
    condition = {"type": "Ready", "status": str(is_ready), "reason": reason, "lastTransitionTime": ago(3600)}
    status = {"conditions": [condition], "resourceSummary": {"allocatable": {"pods": room, "cpu": 1000}}}
    return cluster(name, status=status, **more)


SPACIOUS = [member("m1", 300), member("m2", 100)]
DEPLOYMENT = Key("apps/v1", "Deployment", "default", "web")
DONE = {"lastScheduledTime": ago(900), "schedulerObservedGeneration": 1}
TASK = {"fromCluster": "m1", "purgeMode": "Gracefully", "producer": "taint-manager", "replicas": 2}


def ours(name: str, *args: Any, **more: Any) -> ResourceBinding:
    """A binding of the scheduler's, for the Deployment of this name."""
    made = binding(*args, **more)
    meta = replace(made.metadata, name=f"{name}-deployment", labels=OURS, generation=1)
    resource = replace(made.spec.resource, name=name, namespace="default")
    return replace(made, metadata=meta, spec=replace(made.spec, resource=resource))


def plan_of(
    clusters: Iterable[Cluster], bindings: Iterable[ResourceBinding], rules: PlanRules = RULES, **more: Any
) -> HubPlan:
    return make_plan(HubSnapshot(clusters, bindings, **more), rules, now=T)


def steps_of(plan: HubPlan) -> list[tuple[str, str, dict[str, int]]]:
    """Each step as its action, the workload, and where it is then."""
    return [(str(each.action), each.subject.removeprefix("default/"), _count(each.to)) for each in plan.steps]


def kept_by(step: PlannedStep) -> dict[str, int]:
    return _count(step.kept)


def waits_of(plan: HubPlan, name: str) -> list[tuple[str, str | None]]:
    return [(str(each.what), each.until) for each in plan.bindings[f"default/{name}-deployment"].waits]


def _count(clusters: Iterable[TargetCluster] | None) -> dict[str, int]:
    return {each.name: each.replicas for each in clusters or ()}


def away(name: str, since: float | None) -> ResourceBinding:
    """A workload that had to leave its first group of clusters, which is usable since so many seconds."""
    placement = {**groups(primary=["m1"], backup=["m2"]), **DUPLICATED}
    noted = {"failback": {"affinityName": "primary", "since": ago(since)}} if since is not None else {}
    status = {**DONE, "schedulerObservingAffinityName": "backup", **noted}
    failover = {"failback": {"stabilizationSeconds": 300}}
    return ours(name, 3, placement, at={"m2": 3}, applied=placement, failover=failover, status=status)
