"""kube-scheduler's plugins by their names, each as one question about a pod and all nodes."""

from collections.abc import Callable
from typing import TypeVar

from reberth.cluster.columns import Indices, Ints
from reberth.forecast.plugins.dynamic_resources import refuse_resource_claims
from reberth.forecast.plugins.image_locality import score_images
from reberth.forecast.plugins.inter_pod_affinity import refuse_pod_affinity, score_pod_affinity
from reberth.forecast.plugins.node_ports import refuse_taken_ports
from reberth.forecast.plugins.node_resources import refuse_too_full, score_balance, score_fit
from reberth.forecast.plugins.node_rules import (
    refuse_featureless,
    refuse_tainted,
    refuse_unmatched,
    refuse_unschedulable,
    score_affinity,
    score_taints,
)
from reberth.forecast.plugins.topology_spread import refuse_spread, score_spread
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import (
    Arguments,
    BalanceArguments,
    FitArguments,
    NodeAffinityArguments,
    PodAffinityArguments,
    SpreadArguments,
    VolumeBindingArguments,
)
from reberth.forecast.state.profile import Profile
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected
from reberth.forecast.state.view import View
from reberth.forecast.volumes.binding import refuse_unbound_volumes, score_volumes
from reberth.forecast.volumes.limits import refuse_volume_limits
from reberth.forecast.volumes.restrictions import refuse_restricted_volumes
from reberth.forecast.volumes.zone import refuse_volume_zones

Filter = Callable[[IncomingPod, View, Profile], FilterVerdict]
Score = Callable[[IncomingPod, View, Indices, Profile], Ints | Rejected | None]

A = TypeVar("A", bound=Arguments)


def _argued(refuse: Callable[[IncomingPod, View, A], FilterVerdict], name: str, kind: type[A]) -> Filter:
    return lambda incoming, view, profile: refuse(incoming, view, _read(profile, name, kind))


def _plain(refuse: Callable[[IncomingPod, View], FilterVerdict]) -> Filter:
    return lambda incoming, view, profile: refuse(incoming, view)  # noqa: ARG005 - it has no arguments


def _argued_score(
    score: Callable[[IncomingPod, View, Indices, A], Ints | Rejected | None], name: str, kind: type[A]
) -> Score:
    return lambda incoming, view, feasible, profile: score(
        incoming, view, feasible, _read(profile, name, kind)
    )


def _plain_score(score: Callable[[IncomingPod, View, Indices], Ints | None]) -> Score:
    return lambda incoming, view, feasible, profile: score(incoming, view, feasible)  # noqa: ARG005 - likewise


def _read(profile: Profile, name: str, kind: type[A]) -> A:
    arguments = profile.arguments[name]
    if not isinstance(arguments, kind):
        raise TypeError(f"{name} has arguments of {type(arguments).__name__}")
    return arguments


FILTERS: dict[str, Filter] = {
    "NodeUnschedulable": _plain(refuse_unschedulable),
    "NodeName": lambda incoming, view, profile: FITS,  # noqa: ARG005 - who asks has no node yet
    "TaintToleration": _plain(refuse_tainted),
    "NodeAffinity": _argued(refuse_unmatched, "NodeAffinity", NodeAffinityArguments),
    "NodePorts": _plain(refuse_taken_ports),
    "NodeResourcesFit": _argued(refuse_too_full, "NodeResourcesFit", FitArguments),
    "VolumeRestrictions": _plain(refuse_restricted_volumes),
    "NodeVolumeLimits": _plain(refuse_volume_limits),
    "VolumeBinding": _argued(refuse_unbound_volumes, "VolumeBinding", VolumeBindingArguments),
    "VolumeZone": _plain(refuse_volume_zones),
    "PodTopologySpread": _argued(refuse_spread, "PodTopologySpread", SpreadArguments),
    "InterPodAffinity": _plain(refuse_pod_affinity),
    "DynamicResources": _plain(refuse_resource_claims),
    "NodeDeclaredFeatures": _plain(refuse_featureless),
}

SCORES: dict[str, Score] = {
    "TaintToleration": _plain_score(score_taints),
    "NodeAffinity": _argued_score(score_affinity, "NodeAffinity", NodeAffinityArguments),
    "NodeResourcesFit": _argued_score(score_fit, "NodeResourcesFit", FitArguments),
    "VolumeBinding": _argued_score(score_volumes, "VolumeBinding", VolumeBindingArguments),
    "PodTopologySpread": _argued_score(score_spread, "PodTopologySpread", SpreadArguments),
    "InterPodAffinity": _argued_score(score_pod_affinity, "InterPodAffinity", PodAffinityArguments),
    "DynamicResources": lambda incoming, view, feasible, profile: None,  # noqa: ARG005 - see its filter
    "NodeResourcesBalancedAllocation": _argued_score(
        score_balance, "NodeResourcesBalancedAllocation", BalanceArguments
    ),
    "ImageLocality": _plain_score(score_images),
}
