"""The arguments of plugins as in KubeSchedulerConfiguration v1, with Kubernetes' defaults and validation.

kube-scheduler: `pkg/scheduler/apis/config/v1/defaults.go`: `SetDefaults_NodeResourcesFitArgs`,
`SetDefaults_NodeResourcesBalancedAllocationArgs`, `SetDefaults_PodTopologySpreadArgs`,
`SetDefaults_InterPodAffinityArgs`, `SetDefaults_VolumeBindingArgs`;
`pkg/scheduler/apis/config/validation/validation_pluginargs.go`: `ValidateNodeResourcesFitArgs`,
`validateFunctionShape`, `ValidatePodTopologySpreadArgs`, `ValidateNodeAffinityArgs`
"""

from itertools import pairwise
from typing import Annotated, Literal

from msgspec import Meta

from reberth.config.settings import Section
from reberth.records import NodeAffinity, TopologySpreadConstraint
from reberth.selectors import SelectorError, compile_preferences

Percent = Annotated[int, Meta(ge=0, le=100)]


class PluginArgs(Section, frozen=True):
    """The arguments of one plugin; a file may give their apiVersion and kind."""

    api_version: str | None = None
    kind: str | None = None


class ResourceSpec(Section, frozen=True):
    """The weight of a resource in a score."""

    name: str
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class UtilizationShapePoint(Section, frozen=True):
    """A point of the shape of RequestedToCapacityRatio."""

    utilization: Percent
    score: Annotated[int, Meta(ge=0, le=10)]


Shape = Annotated[tuple[UtilizationShapePoint, ...], Meta(min_length=1)]


class RequestedToCapacityRatioParam(Section, frozen=True):
    shape: Shape

    def __post_init__(self) -> None:
        if any(one.utilization >= next_.utilization for one, next_ in pairwise(self.shape)):
            raise ValueError("utilization must increase from point to point of shape")


_CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))


class ScoringStrategy(Section, frozen=True):
    type: Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"] = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if (self.type == "RequestedToCapacityRatio") is (self.requested_to_capacity_ratio is None):
            raise ValueError(
                "requestedToCapacityRatio must be set if, and only if, type is RequestedToCapacityRatio"
            )


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY

    def __post_init__(self) -> None:
        if any(each.weight != 1 for each in self.resources):
            raise ValueError("every weight of resources must be 1")


class NodeAffinityArgs(PluginArgs, frozen=True):
    added_affinity: NodeAffinity | None = None

    def __post_init__(self) -> None:
        added = self.added_affinity
        try:
            compile_preferences((added and added.preferred_during_scheduling_ignored_during_execution) or ())
        except SelectorError as error:
            raise ValueError(f"addedAffinity: {error}") from error


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: Literal["System", "List"] = "System"

    def __post_init__(self) -> None:
        if self.defaulting_type == "System" and self.default_constraints:
            raise ValueError("defaultConstraints require defaultingType List")
        if any(each.label_selector is not None for each in self.default_constraints):
            raise ValueError("defaultConstraints must not have a labelSelector: it is deduced for each pod")


class InterPodAffinityArgs(PluginArgs, frozen=True):
    hard_pod_affinity_weight: Percent = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class VolumeBindingArgs(PluginArgs, frozen=True):
    bind_timeout_seconds: Annotated[int, Meta(ge=0)] = 600
    shape: tuple[UtilizationShapePoint, ...] = ()
