"""kube-scheduler's plugins by name, as functions of the incoming pod and all nodes.

Plugins without a Filter or Score that a forecast depends on are not listed: SchedulingGates, PrioritySort,
DefaultPreemption and DefaultBinder run outside of both. NodeName refuses nothing here, because the incoming
pod has no node yet.

kube-scheduler: `pkg/scheduler/framework/plugins/registry.go`: `NewInTreeRegistry`;
`pkg/scheduler/framework/plugins/nodename/node_name.go`: `(*NodeName).Filter`
"""

from collections.abc import Callable
from typing import TypeVar

from reberth.cluster.columns import Indices, Ints
from reberth.forecast.plugins.dynamic_resources import filter_dynamic_resources
from reberth.forecast.plugins.image_locality import score_image_locality
from reberth.forecast.plugins.inter_pod_affinity import filter_inter_pod_affinity, score_inter_pod_affinity
from reberth.forecast.plugins.node_ports import filter_node_ports
from reberth.forecast.plugins.node_resources import (
    filter_node_resources_fit,
    score_balanced_allocation,
    score_node_resources_fit,
)
from reberth.forecast.plugins.node_rules import (
    filter_node_affinity,
    filter_node_declared_features,
    filter_node_unschedulable,
    filter_taint_toleration,
    score_node_affinity,
    score_taint_toleration,
)
from reberth.forecast.plugins.topology_spread import filter_pod_topology_spread, score_pod_topology_spread
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from reberth.forecast.state.profile import Profile
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected
from reberth.forecast.state.view import View
from reberth.forecast.volumes.binding import filter_volume_binding, score_volume_binding
from reberth.forecast.volumes.limits import filter_node_volume_limits
from reberth.forecast.volumes.restrictions import filter_volume_restrictions
from reberth.forecast.volumes.zone import filter_volume_zone

Filter = Callable[[IncomingPod, View, Profile], FilterVerdict]
Score = Callable[[IncomingPod, View, Indices, Profile], Ints | Rejected | None]

A = TypeVar("A", bound=PluginArgs)


def _filter_with_args(
    refuse: Callable[[IncomingPod, View, A], FilterVerdict], name: str, kind: type[A]
) -> Filter:
    return lambda incoming, view, profile: refuse(incoming, view, _read(profile, name, kind))


def _filter(refuse: Callable[[IncomingPod, View], FilterVerdict]) -> Filter:
    return lambda incoming, view, profile: refuse(incoming, view)  # noqa: ARG005 - the plugin has no arguments


def _score_with_args(
    score: Callable[[IncomingPod, View, Indices, A], Ints | Rejected | None], name: str, kind: type[A]
) -> Score:
    return lambda incoming, view, feasible, profile: score(
        incoming, view, feasible, _read(profile, name, kind)
    )


def _score(score: Callable[[IncomingPod, View, Indices], Ints | None]) -> Score:
    return lambda incoming, view, feasible, profile: score(incoming, view, feasible)  # noqa: ARG005 - likewise


def _read(profile: Profile, name: str, kind: type[A]) -> A:
    arguments = profile.arguments[name]
    if not isinstance(arguments, kind):
        raise TypeError(f"{name} has arguments of {type(arguments).__name__}")
    return arguments


FILTERS: dict[str, Filter] = {
    "NodeUnschedulable": _filter(filter_node_unschedulable),
    "NodeName": lambda incoming, view, profile: FITS,  # noqa: ARG005 - the incoming pod has no node yet
    "TaintToleration": _filter(filter_taint_toleration),
    "NodeAffinity": _filter_with_args(filter_node_affinity, "NodeAffinity", NodeAffinityArgs),
    "NodePorts": _filter(filter_node_ports),
    "NodeResourcesFit": _filter_with_args(
        filter_node_resources_fit, "NodeResourcesFit", NodeResourcesFitArgs
    ),
    "VolumeRestrictions": _filter(filter_volume_restrictions),
    "NodeVolumeLimits": _filter(filter_node_volume_limits),
    "VolumeBinding": _filter_with_args(filter_volume_binding, "VolumeBinding", VolumeBindingArgs),
    "VolumeZone": _filter(filter_volume_zone),
    "PodTopologySpread": _filter_with_args(
        filter_pod_topology_spread, "PodTopologySpread", PodTopologySpreadArgs
    ),
    "InterPodAffinity": _filter(filter_inter_pod_affinity),
    "DynamicResources": _filter(filter_dynamic_resources),
    "NodeDeclaredFeatures": _filter(filter_node_declared_features),
}

SCORES: dict[str, Score] = {
    "TaintToleration": _score(score_taint_toleration),
    "NodeAffinity": _score_with_args(score_node_affinity, "NodeAffinity", NodeAffinityArgs),
    "NodeResourcesFit": _score_with_args(score_node_resources_fit, "NodeResourcesFit", NodeResourcesFitArgs),
    "VolumeBinding": _score_with_args(score_volume_binding, "VolumeBinding", VolumeBindingArgs),
    "PodTopologySpread": _score_with_args(
        score_pod_topology_spread, "PodTopologySpread", PodTopologySpreadArgs
    ),
    "InterPodAffinity": _score_with_args(score_inter_pod_affinity, "InterPodAffinity", InterPodAffinityArgs),
    "DynamicResources": lambda incoming, view, feasible, profile: None,  # noqa: ARG005 - see its filter
    "NodeResourcesBalancedAllocation": _score_with_args(
        score_balanced_allocation, "NodeResourcesBalancedAllocation", NodeResourcesBalancedAllocationArgs
    ),
    "ImageLocality": _score(score_image_locality),
}
