"""PodTopologySpread: kube-scheduler's own scores and reasons."""

from typing import Any

import pytest

from reberth.cluster.columns import Ints
from reberth.forecast.plugins.topology_spread import filter_pod_topology_spread, score_pod_topology_spread
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import PodTopologySpreadArgs
from reberth.forecast.state.verdict import FITS, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.records import TopologySpreadConstraint
from tests.support.builders import node, owner, pod
from tests.support.forecast.worlds import asking, everywhere, next_of, place_of, refused, world

Object = dict[str, Any]

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SKEWED = ["node(s) didn't match pod topology spread constraints"]
LACKING = ["node(s) didn't match pod topology spread constraints (missing required label)"]
WEB = {"app": "web"}
PLAIN = PodTopologySpreadArgs()

NODES = (node("a0", zone="a"), node("a1", zone="a"), node("b0", zone="b"), node("c0"))


def spread(key: str = ZONE, *, skew: int = 1, hard: bool = True, **fields: Any) -> Object:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        "labelSelector": {"matchLabels": WEB},
        **fields,
    }


def web(
    name: str = "asking", *constraints: Object, labels: dict[str, str] | None = None, **fields: Any
) -> Object:
    return pod(name, labels=WEB | (labels or {}), topologySpreadConstraints=list(constraints), **fields)


def webs(**counts: int) -> list[Object]:
    """So many pods on each node."""
    return [web(f"web-{name}-{n}", node=name) for name, count in counts.items() for n in range(count)]


def above(kind: str, api_version: str, selector: Any, name: str = "web") -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"selector": selector}}


def service(selector: Any, name: str = "web") -> Object:
    return above("Service", "v1", selector, name)


def refusals(
    view: View, asked: IncomingPod | None = None, arguments: PodTopologySpreadArgs = PLAIN
) -> dict[str, list[str]]:
    return refused(view, filter_pod_topology_spread(asked or asking(view), view, arguments))


def scores(
    view: View, asked: IncomingPod | None = None, arguments: PodTopologySpreadArgs = PLAIN
) -> list[int] | None:
    found: Ints | Rejected | None = score_pod_topology_spread(
        asked or asking(view), view, everywhere(view), arguments
    )
    assert not isinstance(found, Rejected)
    return None if found is None else found.tolist()


def test_default_spreading_gives_the_known_numbers() -> None:
    view = world(*NODES, *webs(a0=2, b0=1), service(WEB), web())
    assert scores(view) == [15, 46, 46, 100]
    assert filter_pod_topology_spread(asking(view), view, PLAIN) == FITS


def test_a_pod_that_nothing_selects_is_not_spread_by_default() -> None:
    unselected = [service({"app": "db"}), service(WEB | {"tier": "front"}, "front"), service(None, "bare")]
    assert scores(world(*NODES, *webs(a0=2), *unselected, web())) is None


@pytest.mark.parametrize(
    ("kind", "api_version", "selector", "counts"),
    [
        ("ReplicaSet", "apps/v1", {"matchLabels": WEB}, True),
        ("StatefulSet", "apps/v1", {"matchLabels": WEB}, True),
        ("ReplicationController", "v1", WEB, True),
        ("ReplicaSet", "apps/v1beta2", {"matchLabels": WEB}, False),
        ("Job", "batch/v1", {"matchLabels": WEB}, False),
        ("ReplicaSet", "apps/v1", None, False),
        ("ReplicationController", "v1", None, False),
        ("ReplicaSet", "apps/v1", {"matchExpressions": [{"key": "app", "operator": "Near"}]}, False),
    ],
)
def test_a_controller_that_counts_spreads_its_pods(
    kind: str,
    api_version: str,
    selector: Any,
    counts: bool,  # noqa: FBT001 - a column of the table
) -> None:
    owned = web(owned_by=owner(kind, "web", api_version=api_version))
    view = world(*NODES, *webs(a0=2, b0=1), above(kind, api_version, selector), owned)
    assert scores(view) == ([15, 46, 46, 100] if counts else None)


def test_the_controller_may_be_unknown() -> None:
    assert scores(world(*NODES, web(owned_by=owner("ReplicaSet", "web")))) is None


def test_the_pods_of_all_services_and_of_the_owner_are_counted_together() -> None:
    of_both = web("both", node="a0", labels={"tier": "front", "hash": "1"})
    older = web("older", node="b0", labels={"tier": "front", "hash": "0"})
    owned = web(labels={"tier": "front", "hash": "1"}, owned_by=owner("ReplicaSet", "web"))
    behind = [service(WEB), service({"tier": "front"}, "front")]
    replicas = above("ReplicaSet", "apps/v1", {"matchLabels": {"hash": "1"}})
    view = world(*NODES[:3], of_both, older, *webs(b0=3), *behind, replicas, owned)
    assert scores(view) == [66, 88, 100]


def test_a_replication_controllers_selector_overrides_those_of_services() -> None:
    other = pod(
        "asking", labels={"app": "db"}, owned_by=owner("ReplicationController", "web", api_version="v1")
    )
    behind = [service({"app": "db"}), above("ReplicationController", "v1", WEB)]
    assert scores(world(*NODES, *webs(a0=2, b0=1), *behind, other)) == [15, 46, 46, 100]


def test_default_constraints_of_the_profile_replace_the_system_defaults() -> None:
    listed = PodTopologySpreadArgs(
        default_constraints=(
            TopologySpreadConstraint(1, ZONE, "DoNotSchedule"),
            TopologySpreadConstraint(1, HOSTNAME, "ScheduleAnyway"),
        ),
        defaulting_type="List",
    )
    view = world(*NODES, *webs(a0=2, b0=1), service(WEB), web())
    assert refusals(view, arguments=listed) == {"a0": SKEWED, "a1": SKEWED, "c0": LACKING}
    assert scores(view, arguments=listed) == [0, 100, 50, 100]
    own = world(*NODES, *webs(a0=2, b0=1), service(WEB), web("asking", spread(skew=2)))
    assert refusals(own, arguments=listed) == {"c0": LACKING}
    assert scores(own, arguments=listed) is None


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (spread(), {"a0": SKEWED, "a1": SKEWED, "c0": LACKING}),
        (spread(skew=2), {"c0": LACKING}),
        (spread(HOSTNAME), {"a0": SKEWED, "a1": SKEWED, "b0": SKEWED}),
        (spread(HOSTNAME, skew=2), {}),
        (spread(minDomains=2), {"a0": SKEWED, "a1": SKEWED, "c0": LACKING}),
        (spread(skew=2, minDomains=3), {"a0": SKEWED, "a1": SKEWED, "c0": LACKING}),
        (spread(minDomains=3), {"a0": SKEWED, "a1": SKEWED, "b0": SKEWED, "c0": LACKING}),
        (spread(labelSelector={"matchLabels": {"app": "db"}}), {"c0": LACKING}),
        (spread(labelSelector={}), {"c0": LACKING}),
        (spread(labelSelector=None), {"c0": LACKING}),
        (spread("rack"), dict.fromkeys(["a0", "a1", "b0", "c0"], LACKING)),
        (spread(hard=False), {}),
    ],
)
def test_do_not_schedule_refuses_domains_above_max_skew(
    constraint: Object, expected: dict[str, list[str]]
) -> None:
    assert refusals(world(*NODES, *webs(a0=1, a1=1, b0=1), web("asking", constraint))) == expected


def test_a_node_is_refused_by_the_first_constraint_and_only_a_missing_label_is_final() -> None:
    view = world(*NODES, *webs(c0=1), web("asking", spread(HOSTNAME), spread()))
    verdict = filter_pod_topology_spread(asking(view), view, PLAIN)
    assert not isinstance(verdict, Rejected | Unforeseeable)
    assert [(each.reason, each.nodes.tolist(), each.final) for each in verdict] == [
        (LACKING[0], [False, False, False, True], True)
    ]
    view = world(*NODES, *webs(a0=1), web("asking", spread(HOSTNAME), spread()))
    assert refusals(view) == {"a0": SKEWED, "a1": SKEWED, "c0": LACKING}


def test_do_not_schedule_distinguishes_missing_from_empty_labels() -> None:
    view = world(node("e0", labels={ZONE: ""}), *NODES[2:], *webs(e0=1), web("asking", spread()))
    assert refusals(view) == {"e0": SKEWED, "c0": LACKING}


def test_only_nodes_with_all_the_labels_are_domains() -> None:
    view = world(
        node("a0", zone="a"),
        node("a1", zone="a"),
        node("c0"),
        *webs(a0=1, a1=1),
        web("asking", spread(HOSTNAME), spread(skew=5)),
    )
    assert refusals(view) == {"c0": LACKING}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, {}),
        ({"nodeAffinityPolicy": "Ignore"}, {"a0": SKEWED}),
        ({"nodeTaintsPolicy": "Ignore"}, {}),
        ({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}, {}),
    ],
)
def test_policies_say_which_nodes_are_domains(policies: Object, expected: dict[str, list[str]]) -> None:
    dear = {"key": "dear", "effect": "NoExecute"}
    empty = node("b0", zone="b", labels={"pool": "other"}, taints=[dear])
    asked = web("asking", spread(**policies))
    asked["spec"]["nodeSelector"] = {"pool": "mine"}
    full = node("a0", zone="a", labels={"pool": "mine"})
    assert refusals(world(full, empty, *webs(a0=1), asked)) == expected


def test_a_tainted_domain_counts_for_a_pod_that_tolerates_the_taint() -> None:
    dear = {"key": "dear", "effect": "NoSchedule"}
    asked = web("asking", spread(nodeTaintsPolicy="Honor"), tolerations=[{"operator": "Exists"}])
    view = world(node("a0", zone="a"), node("b0", zone="b", taints=[dear]), *webs(a0=1), asked)
    assert refusals(view) == {"a0": SKEWED}


@pytest.mark.parametrize(
    ("keys", "expected"), [(["hash"], {}), (["hash", "absent"], {}), ([], {"a0": SKEWED, "a1": SKEWED})]
)
def test_match_label_keys_count_the_pods_own_kind(keys: list[str], expected: dict[str, list[str]]) -> None:
    older = web("older", node="a0", labels={"hash": "0"})
    asked = web("asking", spread(matchLabelKeys=keys), labels={"hash": "1"})
    assert refusals(world(*NODES[:3], older, asked)) == expected


def test_labels_that_each_pod_has_of_its_own_are_asked_pod_by_pod() -> None:
    index = "apps.kubernetes.io/pod-index"
    first = spread(labelSelector={"matchLabels": {index: "0"}})
    stateful = [web("web-0", node="a0", labels={index: "0"}), web("web-1", node="b0", labels={index: "1"})]
    view = world(*NODES[:3], *stateful, web("asking", first, labels={index: "0"}), web("other", first))
    assert refusals(view) == {"a0": SKEWED, "a1": SKEWED}
    assert refusals(view, asking(view, "other")) == {}


def test_leaving_finished_and_foreign_pods_do_not_count() -> None:
    leaving = web("leaving", node="a0", deleted="2026-11-18T09:15:31Z")
    finished = web("finished", node="a0", phase="Succeeded")
    foreign = web("foreign", node="a0", namespace="shop")
    view = world(*NODES[:3], leaving, finished, foreign, web("asking", spread()))
    assert refusals(view) == {}
    soft = world(*NODES[:3], leaving, finished, foreign, web("asking", spread(hard=False)))
    assert scores(soft) == [100, 100, 100]


def test_the_next_pod_is_pulled_back_to_where_the_old_one_leaves() -> None:
    old = web("old", spread(), node="a0")
    view = world(*NODES[:3], old, *webs(b0=1))
    place = place_of(view, "old")
    asked = next_of(view, "old")
    assert refusals(view, asked) == {}
    assert refusals(view.with_terminating(place), asked) == {"b0": SKEWED}
    assert refusals(view.without(place), asked) == {"b0": SKEWED}
    assert refusals(view.with_pod_on(place, view.nodes.index["b0"]), asked) == {"b0": SKEWED}
    assert refusals(view.with_terminating(place).with_pod_on(place_of(view, "web-b0-0"), 0), asked) == {
        "a0": SKEWED,
        "a1": SKEWED,
    }


def test_soft_constraints_ignore_nodes_that_lack_a_label() -> None:
    view = world(*NODES, *webs(a0=1), web("asking", spread(hard=False), spread(HOSTNAME, hard=False)))
    assert scores(view) == [0, 66, 100, 0]
    view = world(
        *NODES,
        *webs(a0=2, b0=1),
        web("asking", spread(HOSTNAME, hard=False), spread(hard=False, labelSelector=None)),
    )
    assert scores(view) == [0, 100, 33, 0]
    nowhere = world(*NODES, web("asking", spread("rack", hard=False)))
    assert scores(nowhere) == [0, 0, 0, 0]


def test_by_default_a_missing_zone_is_one_more_zone_and_the_same_as_an_empty_one() -> None:
    unnamed = [node("e0", labels={ZONE: ""}), node("c0")]
    view = world(*unnamed, *webs(c0=3), service(WEB), web())
    assert scores(view) == [100, 66]


def test_a_malformed_selector_rejects_the_pod() -> None:
    malformed = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    view = world(*NODES, web("asking", spread(labelSelector=malformed)))
    rejected = filter_pod_topology_spread(asking(view), view, PLAIN)
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith(
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: '
        "obtaining pod's hard topology spread constraints: operator 'Near'"
    )
    assert scores(view) is None
    view = world(*NODES, web("asking", spread(labelSelector=malformed, hard=False)))
    assert filter_pod_topology_spread(asking(view), view, PLAIN) == FITS
    assert isinstance(score_pod_topology_spread(asking(view), view, everywhere(view), PLAIN), Rejected)


def test_without_nodes_nothing_is_refused_or_scored() -> None:
    assert refusals(world(web("asking", spread()))) == {}
    assert scores(world(web("asking", spread(hard=False)))) == []
