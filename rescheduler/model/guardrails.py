"""The settings that keep moves safe: protections, limits and brakes.

The defaults are the safe choice. A limit of None does not limit anything.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from reberth.config.settings import Section
from reberth.memory.backoff import BackOff
from reberth.memory.rates import DisruptionLimits, resolve_limits
from reberth.selectors import is_qualified_name, parse_selector
from reberth.values.duration import Duration, Percentage
from reberth.values.pod_limit import PodLimit
from rescheduler.model.quiet_hours import QuietHours, find_zone
from rescheduler.model.replacing_kinds import parse_kind

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]
RestartPolicy = Literal["Always", "OnFailure", "Never"]
Count = Annotated[int, Meta(ge=0)]


class ProtectionSettings(Section, frozen=True):
    """Which pods no policy moves. Mirror pods, DaemonSet pods and terminating pods are always protected."""

    critical: bool = True
    """Protect pods with a system-critical priority."""
    job_pods: bool = True
    """Protect the pods of Jobs: a Job counts an eviction as a failure towards its backoffLimit."""
    movable_restart_policies: tuple[RestartPolicy, ...] = ("Always",)
    """Move a pod only if its restartPolicy is one of these; the pods of Jobs are the matter of jobPods."""
    replacing_kinds: tuple[str, ...] = ()
    """Kinds of controllers that replace an evicted pod, beside Kubernetes' own: GROUP/KIND."""
    local_storage: bool = True
    """Protect pods whose data would be lost or left behind: emptyDir, hostPath, ephemeral volumes."""
    movable_access_modes: tuple[AccessMode, ...] = ("ReadOnlyMany", "ReadWriteMany")
    """Move a pod with PersistentVolumeClaims only if each claim has one of these access modes."""
    resource_claims: bool = True
    """Protect pods with resource claims (devices)."""
    gangs: bool = True
    """Protect the pods of groups that are scheduled together (gangs)."""
    eviction_responders: bool = True
    """Protect pods with eviction responders: another component prepares their eviction."""
    rollouts: bool = True
    """Protect the pods of a workload whose rollout is paused or in progress."""
    quotas: bool = True
    """Protect pods whose replacement would exceed a ResourceQuota."""
    last_ready: bool = True
    """Protect the last Ready replica of a workload."""
    min_replicas: Count = 1
    """Protect the pods of workloads with fewer replicas than this."""
    min_age: Duration = Duration(5 * 60)
    """Protect pods that are younger than this."""
    system_namespaces: tuple[str, ...] = ("kube-node-lease", "kube-public", "kube-system")
    """Protect the pods of these namespaces unless an annotation marks them as movable."""
    excluded_namespaces: tuple[str, ...] = ()
    """Protect the pods of these namespaces."""
    namespaces: tuple[str, ...] = ()
    """If set, protect the pods of all namespaces but these."""
    namespace_selector: str = ""
    """Protect the pods of namespaces whose labels do not match this selector, as in `kubectl -l`."""
    pod_selector: str = ""
    """Protect pods whose labels do not match this selector, as in `kubectl -l`."""
    protected_pod_annotations: tuple[str, ...] = ()
    """Protect the pods that have one of these annotations: KEY, or KEY=VALUE."""
    prefer_no_eviction: Literal["no", "price"] = "no"
    """The effect of the descheduler's annotation prefer-no-eviction."""

    @property
    def annotation_keys(self) -> frozenset[str]:
        """The keys of protectedPodAnnotations: the cache keeps these annotations for this setting alone."""
        return frozenset(each.partition("=")[0] for each in self.protected_pod_annotations)

    def __post_init__(self) -> None:
        for selector in (self.namespace_selector, self.pod_selector):
            parse_selector(selector)
        for kind in self.replacing_kinds:
            parse_kind(kind)
        for annotation in self.protected_pod_annotations:
            if not is_qualified_name(annotation.partition("=")[0]):
                raise ValueError(f"protectedPodAnnotations: {annotation!r:.60} has no valid annotation key")


class LimitSettings(Section, frozen=True):
    """How many moves are allowed: in one cycle, at the same time, and over time."""

    per_cycle: PodLimit | None = PodLimit(100)
    """The most moves in one plan: a number, or a percentage of the cluster's pods, rounded down."""
    per_node: Count | None = 10
    """The most moves at the same time off one node, and onto one node."""
    per_namespace: PodLimit | None = None
    """The most moves at the same time in one namespace: a number, or a percentage of its pods."""
    per_workload: PodLimit | None = PodLimit(1)
    """The most moves at the same time of one workload: a number, or a percentage of its pods."""
    rates: DisruptionLimits = DisruptionLimits()
    """Maximum number of disruptions over time."""
    budget_reserve: Percentage = Percentage(0)
    """The share of a PodDisruptionBudget that is left to others, rounded down."""
    rate_reserve: Percentage = Percentage(0)
    """The share of each rate that is left unused, rounded down."""
    back_off: BackOff = BackOff()
    """How long a workload is not moved after moves that gained nothing."""
    quiet_hours: tuple[QuietHours, ...] = ()
    """Times of day in which policies make no moves."""
    time_zone: str = "UTC"
    """The time zone of quietHours, such as Europe/Berlin."""

    def __post_init__(self) -> None:
        find_zone(self.time_zone)


def count_out(
    limits: LimitSettings,
    *,
    cluster: Callable[[], int],
    namespace: Callable[[], int],
    workload: Callable[[], int],
) -> LimitSettings:
    """Count out the percentages for one workload. Plan and execution use the numbers that come of this."""
    return replace(
        limits,
        per_cycle=limits.per_cycle and limits.per_cycle.among(cluster),
        per_namespace=limits.per_namespace and limits.per_namespace.among(namespace),
        per_workload=limits.per_workload and limits.per_workload.among(workload),
        rates=resolve_limits(limits.rates, cluster=cluster, namespace=namespace, workload=workload),
    )


def list_percentages(limits: LimitSettings) -> Iterator[str]:
    """Tell what each limit in percent has come to."""
    in_flight = {
        "perCycle": limits.per_cycle,
        "perNamespace": limits.per_namespace,
        "perWorkload": limits.per_workload,
    }
    for setting, limit in in_flight.items():
        if limit and limit.is_percentage:
            yield f"{setting} {limit}"
    rates = {
        "cluster": limits.rates.cluster,
        "namespace": limits.rates.namespace,
        "workload": limits.rates.workload,
    }
    for scope, found in rates.items():
        yield from (f"rates.{scope} {rate}" for rate in found if rate.is_percentage)


class BrakeSettings(Section, frozen=True):
    """When all moves stop, and when the moves stop that no broken rule demands."""

    not_ready_nodes: Percentage = Percentage(0.1)
    """Stop if more than this share of the nodes is not Ready."""
    mirror_age: Duration = Duration(30)
    """Stop if a cache has been out of sync for longer than this."""
    pending_replacement: Duration = Duration(2 * 60)
    """Do not move a workload with a replacement that has been pending for longer than this."""
    fewest_workloads: Annotated[int, Meta(ge=1)] = 3
    """Results of moves stop more than the workloads that had them only if these are at least so many.

    If all of them are in one namespace, only that namespace is stopped.
    """
    moves: Annotated[int, Meta(ge=1)] = 20
    """For that, count the pending replacements of this many of the last moves."""
    pending_within: Duration = Duration(3600)
    """The oldest pending replacement that counts for that."""
    landings: Annotated[int, Meta(ge=1)] = 50
    """Measure the forecast's accuracy over this many of the last landings."""
    fewest_landings: Annotated[int, Meta(ge=1)] = 10
    """The fewest landings to measure it."""
    landings_within: Duration = Duration(24 * 3600)
    """The oldest landing that counts, so that the brake releases by itself."""
    inside_forecast: Percentage = Percentage(0.9)
    """Stop if a smaller share of these landings was as forecast."""
    settling: Duration = Duration(10 * 60)
    """How long no moves for balance are made off and onto a pool of nodes after nodes were added to it.

    Counted from the first of several that each came before the last had settled.
    """
    pause_while_draining: bool = True
    """Make no moves for balance off and onto a pool of nodes while an autoscaler removes one of them."""
    longest_drain: Duration = Duration(3600)
    """The longest such pause because of one node."""
    node_pool_budgets: bool = True
    """Make no moves for balance off and onto a Karpenter NodePool while a disruption budget of it is 0."""
    node_pool_labels: tuple[str, ...] = (
        "karpenter.sh/nodepool",
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "kubernetes.azure.com/agentpool",
        "agentpool",
        "kops.k8s.io/instancegroup",
    )
    """The labels that name the pool of a node; the first that it has. Nodes without one are one pool."""

    def __post_init__(self) -> None:
        wrong = [label for label in self.node_pool_labels if not is_qualified_name(label)]
        if wrong:
            raise ValueError(f"nodePoolLabels: {wrong[0]!r:.60} is not a label key")
