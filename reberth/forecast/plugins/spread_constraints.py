"""The topology spread constraints of a pod: its own, or the profile's defaults for a pod that has none.

Default constraints count the pods that the pod's Services and its controller select. Where they are
kube-scheduler's system defaults, a node may lack a topology label: it then has no count for it.

kube-scheduler:
* `pkg/scheduler/framework/plugins/podtopologyspread/common.go`:
  `(*PodTopologySpread).buildDefaultConstraints`, `(*PodTopologySpread).filterTopologySpreadConstraints`
* `pkg/scheduler/framework/plugins/helper/spread.go`: `DefaultSelector`, `GetPodServices`
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reberth.cluster.kinds import REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, STATEFUL_SET
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import PodTopologySpreadArgs
from reberth.records import Labels, LabelSelector, Service, TopologySpreadConstraint
from reberth.selectors import (
    EVERYTHING,
    NOTHING,
    Selector,
    SelectorError,
    combine,
    compile_labels,
    compile_selector,
)

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"

# `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go`: `systemDefaultConstraints`
_SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SOFT),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SOFT),
)
_OWNERS = {("apps/v1", "ReplicaSet"): REPLICA_SET, ("apps/v1", "StatefulSet"): STATEFUL_SET}
_CONTROLLER = ("v1", "ReplicationController")


class PodSpreadConstraint(NamedTuple):
    """A constraint as it applies to one pod. `own` is what the pod itself adds to its domain: 1 or 0."""

    max_skew: int
    topology_key: str
    selector: Selector
    own: int
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


def constraints_of(
    incoming: IncomingPod, facts: SnapshotFacts, arguments: PodTopologySpreadArgs, *, action: str
) -> tuple[PodSpreadConstraint, ...]:
    """Give the constraints with this whenUnsatisfiable. Raises SelectorError if one is malformed."""
    key = ("constraints", incoming.template, incoming.own.labels, arguments, action)
    return facts.once(key, lambda: _compile(incoming, facts, arguments, action))


def needs_all_labels(incoming: IncomingPod, arguments: PodTopologySpreadArgs) -> bool:
    """Tell if nodes that lack one of the topology labels are left out of counts and scores.

    `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go`: `(*PodTopologySpread).PreScore`
    """
    return bool(incoming.template.spec.topology_spread_constraints) or not _is_system(arguments)


def _is_system(arguments: PodTopologySpreadArgs) -> bool:
    return arguments.defaulting_type == "System"


def _compile(
    incoming: IncomingPod, facts: SnapshotFacts, arguments: PodTopologySpreadArgs, action: str
) -> tuple[PodSpreadConstraint, ...]:
    given = incoming.template.spec.topology_spread_constraints
    if given:
        return tuple(
            _read(each, incoming.labels, _own_selector(each, incoming.labels)) for each in _of(given, action)
        )
    defaults = _of(_SYSTEM_DEFAULTS if _is_system(arguments) else arguments.default_constraints, action)
    selector = _default_selector(incoming, facts) if defaults else EVERYTHING
    return tuple(_read(each, incoming.labels, selector) for each in defaults if selector != EVERYTHING)


def _of(constraints: Iterable[TopologySpreadConstraint], action: str) -> list[TopologySpreadConstraint]:
    return [each for each in constraints if each.when_unsatisfiable == action]


def _read(constraint: TopologySpreadConstraint, labels: Labels, selector: Selector) -> PodSpreadConstraint:
    return PodSpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        own=int(selector.matches(labels)),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in {None, "Honor"},
        honors_taints=constraint.node_taints_policy == "Honor",
    )


def _own_selector(constraint: TopologySpreadConstraint, labels: Labels) -> Selector:
    """Combine the constraint's labelSelector with the pod's values of its matchLabelKeys."""
    shared = {key: labels[key] for key in constraint.match_label_keys or () if key in labels}
    return combine((compile_labels(shared), compile_selector(constraint.label_selector)))


def _default_selector(incoming: IncomingPod, facts: SnapshotFacts) -> Selector:
    """Combine the selectors of all Services that select the pod with its controller's."""
    shared: Labels = {}
    for selector in _services_in(facts, incoming.namespace):
        if selector.items() <= incoming.labels.items():
            shared |= selector
    owner = incoming.controller
    if owner is None:
        return compile_labels(shared)
    kind = (owner.api_version, owner.kind)
    if kind == _CONTROLLER:
        above = facts.snapshot.of(REPLICATION_CONTROLLER).named(incoming.namespace, owner.name)
        return compile_labels(shared | ((above and above.spec.selector) or {}))
    replicated = kind in _OWNERS and facts.snapshot.of(_OWNERS[kind]).named(incoming.namespace, owner.name)
    return combine(_demanded(shared, replicated.spec.selector if replicated else None))


def _services_in(facts: SnapshotFacts, namespace: str) -> tuple[Labels, ...]:
    """Give the selectors of a namespace's Services; a Service may have none."""
    return facts.snapshot.of(SERVICE).part(namespace).read(_list_selectors)


def _list_selectors(services: Iterable[Service]) -> tuple[Labels, ...]:
    return tuple(each.spec.selector for each in services if each.spec.selector)


def _demanded(shared: Labels, selector: LabelSelector | None) -> Iterator[Selector]:
    """Give both selectors; a controller's that is missing or malformed is left out."""
    yield compile_labels(shared)
    try:
        compiled = compile_selector(selector)
    except SelectorError:
        return
    if compiled != NOTHING:
        yield compiled
