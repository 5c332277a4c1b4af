"""PodTopologySpread agrees with its definition: every pod counted for every node."""

from math import floor, log
from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from reberth.forecast.plugins.topology_spread import filter_pod_topology_spread, score_pod_topology_spread
from reberth.forecast.state.plugin_args import PodTopologySpreadArgs
from reberth.forecast.state.verdict import Rejected
from reberth.records import TopologySpreadConstraint
from tests.support import builders
from tests.support.forecast.crowds import (
    DEDICATED,
    HOSTNAME,
    INDEX,
    ZONE,
    Object,
    counted,
    crowd,
    dice,
    is_empty,
    labels,
    labels_of,
    of_kind,
    selector,
    selects,
    topology_key,
)
from tests.support.forecast.worlds import asking, refused, world

SKEWED = "node(s) didn't match pod topology spread constraints"
LACKING = f"{SKEWED} (missing required label)"
OWNERS = (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController"))

LISTED = PodTopologySpreadArgs(
    default_constraints=(
        TopologySpreadConstraint(1, ZONE, "DoNotSchedule", min_domains=2),
        TopologySpreadConstraint(2, ZONE, "ScheduleAnyway", node_affinity_policy="Ignore"),
        TopologySpreadConstraint(1, HOSTNAME, "ScheduleAnyway", node_taints_policy="Honor"),
    ),
    defaulting_type="List",
)
SYSTEM = [
    {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
    {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
]

all_arguments = st.sampled_from(
    [PodTopologySpreadArgs(), LISTED, PodTopologySpreadArgs(defaulting_type="List")]
)


class Rule(NamedTuple):
    """A constraint, and all the selectors that a pod must match to be counted."""

    constraint: Object
    selectors: list[Object | None]

    @property
    def key(self) -> str:
        return str(self.constraint["topologyKey"])

    def means(self, pod: Object) -> bool:
        return all(selects(each, labels_of(pod)) for each in self.selectors)


def constraint(drawn: Random) -> Object:
    made: Object = {
        "maxSkew": drawn.choice((1, 1, 2, 3)),
        "topologyKey": topology_key(drawn),
        "whenUnsatisfiable": drawn.choice(("DoNotSchedule", "ScheduleAnyway")),
        "labelSelector": selector(drawn),
    }
    if drawn.random() < 0.3:
        made["matchLabelKeys"] = drawn.sample(("app", "tier", INDEX), 1)
    if drawn.random() < 0.3 and made["whenUnsatisfiable"] == "DoNotSchedule":
        made["minDomains"] = drawn.randint(1, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if drawn.random() < 0.4:
            made[policy] = drawn.choice(("Honor", "Ignore"))
    return made


def asking_pod(drawn: Random) -> Object:
    own = [constraint(drawn) for _ in range(drawn.choice((0, 1, 1, 2, 3)))]
    version, kind = drawn.choice(OWNERS)
    return builders.pod(
        "asking",
        labels=labels(drawn),
        owned_by=builders.owner(kind, "above", api_version=version) if drawn.random() < 0.7 else None,
        topologySpreadConstraints=own,
        nodeSelector={"pool": "x"} if drawn.random() < 0.4 else None,
        tolerations=[{**DEDICATED, "operator": "Exists"}] if drawn.random() < 0.4 else None,
    )


def owners(drawn: Random) -> list[Object]:
    """The owners and Services that may stand behind the pod."""
    made = []
    for version, kind in OWNERS:
        given = {"app": "web"} if kind == "ReplicationController" else selector(drawn)
        metadata = {"name": "above", "namespace": drawn.choice(("default", "default", "shop"))}
        made.append({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"selector": given}})
    for number in range(drawn.randint(0, 3)):
        metadata = {"name": f"service-{number}", "namespace": drawn.choice(("default", "default", "shop"))}
        chosen = drawn.choice(({"app": "web"}, {"tier": "front"}, {"app": "web", "tier": "front"}, None))
        made.append(
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": chosen}}
        )
    return made


def rules(pod: Object, objects: list[Object], arguments: PodTopologySpreadArgs, action: str) -> list[Rule]:
    own = pod["spec"]["topologySpreadConstraints"]
    if own:
        made = [Rule(each, [each["labelSelector"], _own_values(each, pod)]) for each in own]
    else:
        selectors = default_selectors(pod, objects)
        given = SYSTEM if arguments.defaulting_type == "System" else _as_objects(arguments)
        made = [Rule(each, selectors) for each in given if not all(map(is_empty, selectors))]
    return [rule for rule in made if rule.constraint["whenUnsatisfiable"] == action]


def _own_values(constraint: Object, pod: Object) -> Object:
    keys = constraint.get("matchLabelKeys", ())
    return {"matchLabels": {key: labels_of(pod)[key] for key in keys if key in labels_of(pod)}}


def _as_objects(arguments: PodTopologySpreadArgs) -> list[Object]:
    return [
        {
            "topologyKey": each.topology_key,
            "maxSkew": each.max_skew,
            "whenUnsatisfiable": each.when_unsatisfiable,
            "minDomains": each.min_domains or 1,
            "nodeAffinityPolicy": each.node_affinity_policy or "Honor",
            "nodeTaintsPolicy": each.node_taints_policy or "Ignore",
        }
        for each in arguments.default_constraints
    ]


def default_selectors(pod: Object, objects: list[Object]) -> list[Object | None]:
    """What the pod's Services select together, and what its owner does."""
    near = [each for each in objects if each["metadata"].get("namespace") == "default"]
    shared: dict[str, str] = {}
    for service in of_kind(near, "Service"):
        if selects({"matchLabels": service["spec"]["selector"] or {}}, labels_of(pod)):
            shared |= service["spec"]["selector"] or {}
    kinds = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
    above = [each["spec"]["selector"] for kind in kinds for each in of_kind(near, kind)]
    if "ReplicationController" in kinds:
        return [{"matchLabels": shared | {key: value for each in above for key, value in each.items()}}]
    return [{"matchLabels": shared}, *(each for each in above if each is not None)]


def has_keys(node: Object, among: list[Rule]) -> bool:
    return all(rule.key in labels_of(node) for rule in among)


def follows(rule: Rule, pod: Object, node: Object) -> bool:
    """Tell if the node is one that the pod could have, as far as the constraint's policies ask."""
    wanted = pod["spec"]["nodeSelector"] or {}
    if (
        rule.constraint.get("nodeAffinityPolicy") != "Ignore"
        and not wanted.items() <= labels_of(node).items()
    ):
        return False
    afraid = DEDICATED in node["spec"].get("taints", ()) and not pod["spec"]["tolerations"]
    return not (rule.constraint.get("nodeTaintsPolicy") == "Honor" and afraid)


def count(rule: Rule, objects: list[Object], nodes: list[Object]) -> int:
    """Count the pods on these nodes that the constraint means and that are to stay."""
    if all(map(is_empty, rule.selectors)):
        return 0
    names = {node["metadata"]["name"] for node in nodes}
    return sum(
        rule.means(other)
        for other, node in counted(objects)
        if node["metadata"]["name"] in names
        and other["metadata"]["namespace"] == "default"
        and "deletionTimestamp" not in other["metadata"]
    )


def define_refusal(pod: Object, node: Object, objects: list[Object], among: list[Rule]) -> str | None:
    for rule in among:
        if rule.key not in labels_of(node):
            return LACKING
        domains: dict[str, list[Object]] = {}
        for other in of_kind(objects, "Node"):
            if has_keys(other, among) and follows(rule, pod, other):
                domains.setdefault(labels_of(other)[rule.key], []).append(other)
        enough = len(domains) >= rule.constraint.get("minDomains", 1)
        least = min((count(rule, objects, nodes) for nodes in domains.values()), default=0) if enough else 0
        here = count(rule, objects, domains.get(labels_of(node)[rule.key], []))
        if here + rule.means(pod) - least > rule.constraint["maxSkew"]:
            return SKEWED
    return None


def define_scores(
    pod: Object, feasible: list[Object], objects: list[Object], among: list[Rule], *, strict: bool
) -> list[int] | None:
    if not among:
        return None
    scored = [node for node in feasible if not strict or has_keys(node, among)]
    counting = [node for node in of_kind(objects, "Node") if not strict or has_keys(node, among)]
    costs = {
        node["metadata"]["name"]: floor(
            sum(_cost(rule, pod, node, objects, scored=scored, counting=counting) for rule in among) + 0.5
        )
        for node in scored
    }
    most, least = max(costs.values(), default=0), min(costs.values(), default=0)
    names = [node["metadata"]["name"] for node in feasible]
    return [
        (100 * (most + least - costs[name]) // most if most else 100) if name in costs else 0
        for name in names
    ]


def _cost(
    rule: Rule,
    pod: Object,
    node: Object,
    objects: list[Object],
    *,
    scored: list[Object],
    counting: list[Object],
) -> float:
    if rule.key not in labels_of(node):
        return 0.0
    if rule.key == HOSTNAME:
        here, size = count(rule, objects, [node]), len(scored)
    else:
        value = labels_of(node)[rule.key]
        domain = [each for each in counting if labels_of(each).get(rule.key, "") == value]
        here = count(rule, objects, [each for each in domain if follows(rule, pod, each)])
        size = len({labels_of(each).get(rule.key, "") for each in scored})
    return here * log(size + 2) + float(rule.constraint["maxSkew"] - 1)


@given(dice, all_arguments)
@settings(max_examples=300)
def test_the_refusals_are_those_of_the_definition(drawn: Random, arguments: PodTopologySpreadArgs) -> None:
    pod = asking_pod(drawn)
    objects = [*crowd(drawn), *owners(drawn), pod]
    view = world(*objects)

    found = refused(view, filter_pod_topology_spread(asking(view), view, arguments))

    among = rules(pod, objects, arguments, "DoNotSchedule")
    expected = {
        node["metadata"]["name"]: [reason]
        for node in of_kind(objects, "Node")
        if (reason := define_refusal(pod, node, objects, among))
    }
    for reason in {reason for reasons in expected.values() for reason in reasons}:
        event(reason)
    assert found == expected


@given(dice, all_arguments)
@settings(max_examples=300)
def test_the_scores_are_those_of_the_definition(drawn: Random, arguments: PodTopologySpreadArgs) -> None:
    pod = asking_pod(drawn)
    objects = [*crowd(drawn), *owners(drawn), pod]
    nodes = of_kind(objects, "Node")
    chosen = drawn.sample(range(len(nodes)), drawn.randint(1, len(nodes)))
    view = world(*objects)

    found = score_pod_topology_spread(asking(view), view, np.array(chosen, np.int32), arguments)

    among = rules(pod, objects, arguments, "ScheduleAnyway")
    strict = bool(pod["spec"]["topologySpreadConstraints"]) or arguments.defaulting_type == "List"
    expected = define_scores(pod, [nodes[each] for each in chosen], objects, among, strict=strict)
    event("skipped" if expected is None else "uneven" if len(set(expected)) > 1 else "all equal")
    assert not isinstance(found, Rejected)
    assert (None if found is None else found.tolist()) == expected
