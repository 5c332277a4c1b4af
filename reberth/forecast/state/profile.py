"""A scheduler's profiles: which plugins run for a pod, in which order, with which weights and arguments.

Read from the KubeSchedulerConfiguration that the scheduler itself was given. Plugins are enabled at
`multiPoint` and at single extension points, each with its own list of disabled plugins; both are merged in
the same steps as in kube-scheduler.

kube-scheduler:
* `pkg/scheduler/apis/config/v1/default_plugins.go`: `getDefaultPlugins`, `applyFeatureGates`,
  `applyDynamicResources`, `mergePluginSet`
* `pkg/scheduler/framework/runtime/framework.go`: `(*frameworkImpl).expandMultiPointPlugins`,
  `getValidScoreWeights`
* `pkg/scheduler/apis/config/validation/validation.go`: `validateKubeSchedulerProfile`, `validateExtenders`
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from reberth.cluster.pods.requests import Version
from reberth.config import settings
from reberth.config.settings import Section
from reberth.forecast.state.plugin_args import (
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    Percent,
    PluginArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)

API_VERSION = "kubescheduler.config.k8s.io/v1"
DEFAULT_SCHEDULER = "default-scheduler"

# The in-tree plugins in the order of getDefaultPlugins and applyFeatureGates.
PluginName = Literal[
    "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity",
    "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone",
    "PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption",
    "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder", "NodeDeclaredFeatures",
    "GangScheduling",
]  # fmt: skip
_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
}
# Feature gate GangScheduling is off by default.
_OFF_BY_DEFAULT = ("GangScheduling",)
# Feature gate NodeDeclaredFeatures: off by default in 1.35, on in 1.36.
_SINCE: dict[str, Version] = {"NodeDeclaredFeatures": (1, 36)}

_PRE_FILTER = (
    "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits",
    "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
    "NodeDeclaredFeatures",
)  # fmt: skip
_FILTER = ("NodeUnschedulable", "NodeName", "TaintToleration", *_PRE_FILTER)
_SCORE = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread",
    "InterPodAffinity", "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality",
)  # fmt: skip
_PRE_SCORE = tuple(name for name in _SCORE if name != "ImageLocality")

_ALL = "*"


class Plugin(Section, frozen=True):
    name: PluginName
    weight: Annotated[int, Meta(ge=0)] | None = None


class DisabledPlugin(Section, frozen=True):
    name: PluginName | Literal["*"]


class PluginSet(Section, frozen=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


_NONE = PluginSet()


class Plugins(Section, frozen=True):
    multi_point: PluginSet = _NONE
    pre_enqueue: PluginSet = _NONE
    queue_sort: PluginSet = _NONE
    pre_filter: PluginSet = _NONE
    filter: PluginSet = _NONE
    post_filter: PluginSet = _NONE
    pre_score: PluginSet = _NONE
    score: PluginSet = _NONE
    reserve: PluginSet = _NONE
    permit: PluginSet = _NONE
    pre_bind: PluginSet = _NONE
    bind: PluginSet = _NONE
    post_bind: PluginSet = _NONE


class PluginConfig(Section, frozen=True, tag_field="name"):
    """The arguments of a plugin, by its name."""


class FitConfig(PluginConfig, frozen=True, tag="NodeResourcesFit"):
    args: NodeResourcesFitArgs = NodeResourcesFitArgs()


class BalanceConfig(PluginConfig, frozen=True, tag="NodeResourcesBalancedAllocation"):
    args: NodeResourcesBalancedAllocationArgs = NodeResourcesBalancedAllocationArgs()


class NodeAffinityConfig(PluginConfig, frozen=True, tag="NodeAffinity"):
    args: NodeAffinityArgs = NodeAffinityArgs()


class SpreadConfig(PluginConfig, frozen=True, tag="PodTopologySpread"):
    args: PodTopologySpreadArgs = PodTopologySpreadArgs()


class PodAffinityConfig(PluginConfig, frozen=True, tag="InterPodAffinity"):
    args: InterPodAffinityArgs = InterPodAffinityArgs()


class VolumeBindingConfig(PluginConfig, frozen=True, tag="VolumeBinding"):
    args: VolumeBindingArgs = VolumeBindingArgs()


class PreemptionConfig(PluginConfig, frozen=True, tag="DefaultPreemption"):
    args: dict[str, Any] | None = None


class DynamicResourcesConfig(PluginConfig, frozen=True, tag="DynamicResources"):
    args: dict[str, Any] | None = None


AnyPluginConfig = (
    FitConfig
    | BalanceConfig
    | NodeAffinityConfig
    | SpreadConfig
    | PodAffinityConfig
    | VolumeBindingConfig
    | PreemptionConfig
    | DynamicResourcesConfig
)


class SchedulerProfile(Section, frozen=True):
    scheduler_name: Annotated[str, Meta(min_length=1)] = DEFAULT_SCHEDULER
    percentage_of_nodes_to_score: Percent | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[AnyPluginConfig, ...] = ()

    def __post_init__(self) -> None:
        names = [type(each) for each in self.plugin_config]
        if len(set(names)) < len(names):
            raise ValueError("pluginConfig has two entries for one plugin")


class ManagedResource(Section, frozen=True):
    name: str
    ignored_by_scheduler: bool = False


class ExtenderConfig(Section, frozen=True):
    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: dict[str, Any] | None = None
    http_timeout: str | None = None
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    def __post_init__(self) -> None:
        if self.prioritize_verb and self.weight <= 0:
            raise ValueError("an extender with a prioritizeVerb must have a positive weight")


class KubeSchedulerConfiguration(Section, frozen=True):
    """The configuration of kube-scheduler. Fields that no forecast depends on are not validated."""

    profiles: Annotated[tuple[SchedulerProfile, ...], Meta(min_length=1)] = (SchedulerProfile(),)
    extenders: tuple[ExtenderConfig, ...] = ()
    percentage_of_nodes_to_score: Percent | None = None
    parallelism: Annotated[int, Meta(ge=1)] = 16
    leader_election: dict[str, Any] | None = None
    client_connection: dict[str, Any] | None = None
    enable_profiling: bool | None = None
    enable_contention_profiling: bool | None = None
    pod_initial_backoff_seconds: int | None = None
    pod_max_backoff_seconds: int | None = None
    delay_cache_until_active: bool = False

    def __post_init__(self) -> None:
        names = [profile.scheduler_name for profile in self.profiles]
        if len(set(names)) < len(names):
            raise ValueError("two profiles have the same schedulerName")


class Profile(msgspec.Struct, frozen=True):
    """The plugins that run for the pods of one schedulerName, each list in order."""

    name: str
    pre_filters: tuple[str, ...]  # these may reject the pod before any node is filtered
    filters: tuple[str, ...]
    scores: tuple[tuple[str, int], ...]
    arguments: Mapping[str, PluginArgs]
    percentage: int


class KubeScheduler(msgspec.Struct, frozen=True):
    """The profiles of one kube-scheduler, and the extenders that it calls for every profile."""

    profiles: Mapping[str, Profile]
    extenders: tuple[ExtenderConfig, ...] = ()
    parallelism: int = 16


def parse_scheduler(content: bytes, *, version: Version, source: str = "scheduler") -> KubeScheduler:
    """Read the configuration of a scheduler; errors name its source. Raises SettingsError."""
    configuration = settings.parse(
        content, KubeSchedulerConfiguration, source=source, api_version=API_VERSION
    )
    return arrange(configuration, version=version)


def arrange(configuration: KubeSchedulerConfiguration, *, version: Version) -> KubeScheduler:
    """Determine which plugins run in which order."""
    profiles = [_arrange_profile(each, configuration, version) for each in configuration.profiles]
    return KubeScheduler(
        MappingProxyType({profile.name: profile for profile in profiles}),
        configuration.extenders,
        configuration.parallelism,
    )


def default_scheduler(version: Version) -> KubeScheduler:
    """Give a scheduler with the default configuration."""
    return arrange(KubeSchedulerConfiguration(), version=version)


def _arrange_profile(
    given: SchedulerProfile, configuration: KubeSchedulerConfiguration, version: Version
) -> Profile:
    plugins = given.plugins
    multi_point_plugins = _merge(_default_plugins(version), plugins.multi_point)
    percentage = given.percentage_of_nodes_to_score
    if percentage is None:
        percentage = configuration.percentage_of_nodes_to_score
    weights = _find_weights((*plugins.score.enabled, *multi_point_plugins))
    return Profile(
        name=given.scheduler_name,
        pre_filters=_expand(plugins.pre_filter, multi_point_plugins, _PRE_FILTER),
        filters=_expand(plugins.filter, multi_point_plugins, _FILTER),
        scores=tuple((name, weights[name]) for name in _expand(plugins.score, multi_point_plugins, _SCORE)),
        arguments=_gather_arguments(given, configuration.extenders),
        percentage=percentage or 0,
    )


def _default_plugins(version: Version) -> list[Plugin]:
    return [
        Plugin(name, _WEIGHTS.get(name))
        for name in get_args(PluginName)
        if name not in _OFF_BY_DEFAULT and version >= _SINCE.get(name, (1, 0))
    ]


def _merge(defaults: list[Plugin], given: PluginSet) -> tuple[Plugin, ...]:
    """Replace defaults that are configured, in their places; drop disabled ones; append the others.

    `pkg/scheduler/apis/config/v1/default_plugins.go`: `mergePluginSet`
    """
    disabled = {each.name for each in given.disabled}
    anew = {each.name: each for each in given.enabled}
    kept = [] if _ALL in disabled else [each for each in defaults if each.name not in disabled]
    replaced = {each.name for each in kept}
    return (
        *(anew.get(each.name, each) for each in kept),
        *(each for each in given.enabled if each.name not in replaced),
    )


def _expand(
    point: PluginSet, multi_point_plugins: Iterable[Plugin], able: tuple[str, ...]
) -> tuple[str, ...]:
    """List the plugins of an extension point: those of both lists, then of multiPoint, then of the point.

    `pkg/scheduler/framework/runtime/framework.go`: `(*frameworkImpl).expandMultiPointPlugins`
    """
    named = [each.name for each in point.enabled]
    disabled = {each.name for each in point.disabled}
    if _ALL in disabled:
        return tuple(named)
    general = [each.name for each in multi_point_plugins if each.name in able and each.name not in disabled]
    return tuple(
        dict.fromkeys(
            [
                *(name for name in named if name in general),
                *(name for name in general if name not in named),
                *named,
            ]
        )
    )


def _find_weights(plugins: Iterable[Plugin]) -> dict[str, int]:
    """Give each plugin the first weight found; a plugin without a weight has 1."""
    weights: dict[str, int] = {}
    for plugin in plugins:
        weights.setdefault(plugin.name, plugin.weight or 1)
    return weights


def _gather_arguments(
    given: SchedulerProfile, extenders: Iterable[ExtenderConfig]
) -> Mapping[str, PluginArgs]:
    found: dict[str, PluginArgs] = {
        "NodeResourcesFit": NodeResourcesFitArgs(),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(),
        "NodeAffinity": NodeAffinityArgs(),
        "PodTopologySpread": PodTopologySpreadArgs(),
        "InterPodAffinity": InterPodAffinityArgs(),
        "VolumeBinding": VolumeBindingArgs(),
    }
    for each in given.plugin_config:
        if isinstance(each.args, PluginArgs):
            found[str(each.__struct_config__.tag)] = each.args
    return MappingProxyType(found | {"NodeResourcesFit": _ignore_managed(found, extenders)})


def _ignore_managed(found: Mapping[str, PluginArgs], extenders: Iterable[ExtenderConfig]) -> PluginArgs:
    """Ignore the resources that an extender manages with ignoredByScheduler.

    kube-scheduler replaces the profile's ignoredResources by these, and here they are added.
    `pkg/scheduler/scheduler.go`: `buildExtenders`
    """
    fit = found["NodeResourcesFit"]
    managed = [each.name for one in extenders for each in one.managed_resources if each.ignored_by_scheduler]
    if not managed or not isinstance(fit, NodeResourcesFitArgs):
        return fit
    return msgspec.structs.replace(fit, ignored_resources=(*fit.ignored_resources, *managed))
