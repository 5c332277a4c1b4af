"""Configurations of kube-scheduler besides the default one."""

from collections.abc import Mapping
from typing import Any

Configuration = dict[str, Any]

DEFAULT = "default-scheduler"
PACKING = "packing"


def _profile(name: str = DEFAULT, **fields: Any) -> Configuration:
    return {"schedulerName": name, **fields}


def _arguments(plugin: str, **fields: Any) -> Configuration:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": f"{plugin}Args"}
    return {"name": plugin, "args": {**kind, **fields}}


_WEIGHED = [
    {"name": "cpu", "weight": 3},
    {"name": "memory", "weight": 1},
    {"name": "example.com/gpu", "weight": 5},
]
_MOST = _arguments("NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": _WEIGHED})
_SHAPE = [
    {"utilization": 0, "score": 0},
    {"utilization": 30, "score": 7},
    {"utilization": 70, "score": 10},
    {"utilization": 100, "score": 2},
]
_RATIO = _arguments(
    "NodeResourcesFit",
    scoringStrategy={
        "type": "RequestedToCapacityRatio",
        "resources": _WEIGHED,
        "requestedToCapacityRatio": {"shape": _SHAPE},
    },
)
_SPREAD = _arguments(
    "PodTopologySpread",
    defaultingType="List",
    defaultConstraints=[
        {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": "example.com/rack", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": "kubernetes.io/hostname", "maxSkew": 4, "whenUnsatisfiable": "DoNotSchedule"},
    ],
)
_FAST_DISKS = {"key": "disk", "operator": "In", "values": ["ssd"]}
_ADDED = _arguments(
    "NodeAffinity",
    addedAffinity={
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 40, "preference": {"matchExpressions": [_FAST_DISKS]}}
        ]
    },
)
_BALANCED = [{"name": one["name"], "weight": 1} for one in _WEIGHED]
_BALANCE = _arguments("NodeResourcesBalancedAllocation", resources=_BALANCED)
_HARD = _arguments("InterPodAffinity", hardPodAffinityWeight=20)
_OWN_TERMS = _arguments("InterPodAffinity", hardPodAffinityWeight=0, ignorePreferredTermsOfExistingPods=True)
_REWEIGHED = {
    "multiPoint": {
        "disabled": [{"name": "ImageLocality"}],
        "enabled": [{"name": "TaintToleration", "weight": 7}, {"name": "PodTopologySpread", "weight": 1}],
    },
    "score": {
        "disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "InterPodAffinity"}],
        "enabled": [{"name": "InterPodAffinity", "weight": 9}],
    },
    "filter": {"disabled": [{"name": "NodePorts"}, {"name": "NodeUnschedulable"}]},
}
_LOT = {
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 3,
    "nodeCacheCapable": True,
    "httpTimeout": "5s",
}

CONFIGURATIONS: Mapping[str, Configuration] = {
    "most allocated": {"profiles": [_profile(pluginConfig=[_MOST])]},
    "ratio": {"profiles": [_profile(pluginConfig=[_RATIO, _BALANCE])]},
    "list of default constraints": {"profiles": [_profile(pluginConfig=[_SPREAD])]},
    "plugins off and re-weighted": {"profiles": [_profile(plugins=_REWEIGHED, pluginConfig=[_HARD])]},
    "two profiles": {"profiles": [_profile(), _profile(PACKING, pluginConfig=[_MOST, _ADDED, _OWN_TERMS])]},
    "an extender": {"profiles": [_profile()], "extenders": [_LOT]},
}
"""The extender draws lots; where it listens is added when that is known."""


def schedulers_of(configuration: Configuration | None) -> tuple[str, ...]:
    profiles = (configuration or {}).get("profiles", [])
    return tuple(profile["schedulerName"] for profile in profiles) if len(profiles) > 1 else ()


def reached_at(configuration: Configuration, url: str) -> Configuration:
    """Complete a configuration: what it is, and where its extender listens."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    extenders = [{"urlPrefix": url, **one} for one in configuration.get("extenders", ())]
    return {**kind, **configuration, **({"extenders": extenders} if extenders else {})}
