"""What webhooks do is learnt from the newest pod that is as it was created, and done to the next one."""

from typing import Any

import pytest

from reberth.forecast.replacement.next_pod import NextPod
from reberth.forecast.replacement.refusals import CANNOT_FORECAST
from reberth.values.quantity import nanos
from tests.support.builders import Object, container, owner
from tests.support.forecast.replicas import (
    DEFAULT_TOLERATIONS,
    HASH,
    LABELS,
    NAMESPACE,
    made_of,
    next_of,
    refused_of,
    replica,
    replica_owner,
    requests_in,
)

MAIN = container(cpu="1")
PROXY = container("proxy", cpu="50m")
PRIMED = container("primed", restartPolicy="Always")


def changed(**spec: Any) -> Object:
    """A pod that was resized in place, so that a template is made anew."""
    return replica("web-1", generation=2, **{"cpu": "3", **spec})


def test_what_a_webhook_added_is_added_again() -> None:
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    shown = replica(
        "web-2",
        containers=[container(cpu="2"), PROXY],
        initContainers=[PRIMED],
        labels={**LABELS, **HASH, "mesh": "on"},
        tolerations=[*DEFAULT_TOLERATIONS, {"key": "spot", "operator": "Exists"}],
        nodeSelector={"pool": "a"},
        affinity=affinity,
        schedulerName="other",
        overhead={"cpu": "5m"},
        volumes=[{"name": "scratch", "emptyDir": {}}],
    )
    found = made_of(replica_owner(containers=[MAIN]), changed(), shown)
    spec = found.template.spec
    assert requests_in(found) == {"cpu": "2"}
    assert requests_in(found, "proxy") == {"cpu": "50m"}
    assert [each.name for each in spec.init_containers or ()] == ["primed"]
    assert found.template.labels["mesh"] == "on"
    assert (spec.node_selector, spec.scheduler_name, spec.overhead) == ({"pool": "a"}, "other", {"cpu": "5m"})
    assert found.learnt == (
        "container proxy",
        "container primed",
        "cpu 2 of container main",
        "toleration of spot",
        "nodeSelector pool=a",
        "label mesh=on",
        "volume scratch",
        "affinity",
        "scheduler_name",
        "overhead",
    )


def test_a_changed_pod_shows_containers_but_no_requests() -> None:
    idle = container("idle")
    alone = changed(containers=[container(cpu="3"), idle])
    found = made_of(replica_owner(containers=[MAIN]), alone)
    assert [each.name for each in found.template.spec.containers or ()] == ["main", "idle"]
    assert requests_in(found) == {"cpu": "1"}


@pytest.mark.parametrize(
    ("asked", "shown", "reason"),
    [
        (
            {},
            {"generation": 2, "tolerations": [*DEFAULT_TOLERATIONS, {"key": "mine", "operator": "Exists"}]},
            "the pod was changed since its creation: whether it tolerated mine before is not known",
        ),
        (
            {"containers": [MAIN]},
            {"generation": 2, "containers": [MAIN, PROXY]},
            "the pod was changed since its creation: what container proxy asked for is not known",
        ),
        (
            {"containers": [MAIN, PROXY]},
            {"containers": [MAIN]},
            "the newest pod lacks container proxy of the template",
        ),
        (
            {"containers": [MAIN]},
            {"containers": [container()]},
            "the newest pod lacks the cpu of container main in the template",
        ),
        (
            {"tolerations": [{"key": "mine", "operator": "Exists"}]},
            {},
            "the newest pod lacks the toleration of mine",
        ),
        ({"nodeSelector": {"disk": "ssd"}}, {}, "the newest pod lacks nodeSelector disk=ssd"),
        (
            {},
            {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]},
            "the newest pod has a claim that its template does not have: volume data",
        ),
        (
            {},
            {"resources": {"requests": {"cpu": "1"}}},
            "the newest pod has requests as a whole that its template does not have",
        ),
    ],
)
def test_where_the_newest_pod_and_its_template_disagree_nothing_is_said(
    asked: Object, shown: Object, reason: str
) -> None:
    refused = refused_of(replica_owner(**asked), replica(**shown))
    assert (refused.rule, refused.reason) == (CANNOT_FORECAST, reason)


def test_nothing_is_learnt_from_a_template_that_may_have_been_edited() -> None:
    objects = (replica_owner(containers=[MAIN], standalone=True), replica(containers=[MAIN, PROXY]))
    assert refused_of(*objects).reason == (
        "the newest pod differs from the template, which anybody may have edited since: container proxy"
    )
    controller = replica_owner("ReplicationController", containers=[MAIN])
    assert refused_of(controller, replica(kind="ReplicationController", containers=[MAIN, PROXY]))


@pytest.mark.parametrize(
    ("kind", "above", "labels"),
    [
        ("ReplicaSet", None, {"rollouts-pod-template-hash": "5d8f7c"}),
        ("ReplicaSet", owner("Rollout", "web", api_version="argoproj.io/v1alpha1"), {}),
        ("ReplicaSet", owner("Deployment", "web"), {}),
        (
            "ReplicationController",
            owner("DeploymentConfig", "web", api_version="apps.openshift.io/v1"),
            {},
        ),
    ],
)
def test_a_template_that_another_object_makes_anew_is_not_edited(
    kind: str, above: Object | None, labels: Object
) -> None:
    made = replica_owner(kind, containers=[MAIN], labels={**LABELS, **labels})
    made["metadata"] |= {"labels": {**LABELS, **labels}, "ownerReferences": [above] if above else []}
    shown = replica(kind=kind, containers=[MAIN, PROXY], labels={**LABELS, **labels})
    assert made_of(made, shown).learnt == ("container proxy",)


def test_what_an_unknown_owner_makes_may_be_edited() -> None:
    made = replica_owner(containers=[MAIN], standalone=True)
    made["metadata"]["ownerReferences"] = [owner("Rollout", "web", api_version="example.com/v1")]
    assert refused_of(made, replica(containers=[MAIN, PROXY])).rule == CANNOT_FORECAST


def test_with_a_runtime_class_more_tolerations_have_no_single_cause() -> None:
    sandbox = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "s", "uid": "s"}}
    more = [*DEFAULT_TOLERATIONS, {"key": "spot", "operator": "Exists"}]
    asked = {"runtimeClassName": "s"}
    refused = refused_of(replica_owner(**asked), replica(tolerations=more), sandbox)
    assert refused.reason == "a toleration of the newest pod may be a webhook's or of an earlier RuntimeClass"
    refused = refused_of(replica_owner(**asked), replica(nodeSelector={"pool": "a"}), sandbox)
    assert (
        refused.reason
        == "nodeSelector pool of the newest pod may be a webhook's or of an earlier RuntimeClass"
    )


def test_a_pod_behind_a_gate_shows_that_the_next_one_waits_too() -> None:
    waiting = replica("web-2", schedulingGates=[{"name": "example.com/wait"}])
    del waiting["spec"]["nodeName"]
    refused = refused_of(replica_owner(), replica(created="2026-10-01T00:00:00Z"), waiting)
    assert refused.reason == "the replacement would wait for its scheduling gates: example.com/wait"


def autoscaler(mode: str | None = None, policy: Object | None = None, target: str = "200m") -> Object:
    policies = {"resourcePolicy": {"containerPolicies": [{"containerName": "*", **policy}]}} if policy else {}
    recommended = [{"containerName": "main", "target": {"cpu": target, "memory": "1Gi"}}]
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "vpa", "namespace": "shop", "uid": "vpa"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
            **({"updatePolicy": {"updateMode": mode}} if mode else {}),
            **policies,
        },
        "status": {"recommendation": {"containerRecommendations": recommended}},
    }


SCALED = {"vpaUpdates": "Pod resources updated by vpa"}


@pytest.mark.parametrize(
    ("mode", "policy", "cpu", "memory"),
    [
        (None, None, "200m", "1Gi"),
        ("Initial", {"minAllowed": {"cpu": "300m"}}, "300m", "1Gi"),
        ("Recreate", {"maxAllowed": {"cpu": "150m"}}, "150m", "1Gi"),
        ("InPlaceOrRecreate", {"controlledResources": ["memory"]}, "1", "1Gi"),
        ("Off", None, "1", None),
        ("Initial", {"mode": "Off"}, "1", None),
    ],
)
def test_a_vertical_autoscaler_gives_what_it_recommends(
    mode: str | None, policy: Object | None, cpu: str, memory: str | None
) -> None:
    shown = replica(cpu="1", annotations=SCALED)
    found = made_of(replica_owner(cpu="1"), shown, autoscaler(mode, policy))
    assert requests_in(found) == {"cpu": cpu, **({"memory": memory} if memory else {})}


def test_limits_follow_what_a_vertical_autoscaler_gives() -> None:
    one = container()
    one["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    found = made_of(replica_owner(containers=[one]), replica(cpu="1", annotations=SCALED), autoscaler())
    assert found.limits == {"cpu": 400_000_000}


def test_a_pod_that_was_created_without_its_autoscaler_says_nothing() -> None:
    refused = refused_of(replica_owner(cpu="1"), replica(cpu="1"), autoscaler())
    assert refused.reason == (
        "a VerticalPodAutoscaler recommends another cpu for container main, "
        "and the newest pod was created without it"
    )


def test_what_an_autoscaler_gave_that_is_gone_is_not_given_again() -> None:
    found = made_of(replica_owner(cpu="1"), replica(cpu="200m", annotations=SCALED))
    assert (requests_in(found), found.learnt) == ({"cpu": "1"}, ())


def limited(requests: Object, limits: Object) -> Object:
    return {"name": "main", "image": "img", "resources": {"requests": requests, "limits": limits}}


def limit_range(kind: str = "Container", **item: Any) -> Object:
    meta = {"name": "limits", "namespace": NAMESPACE, "uid": "lr"}
    spec = {"limits": [{"type": kind, **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": spec}


@pytest.mark.parametrize(
    ("own", "item", "cpu", "limit"),
    [
        (({"cpu": "1"}, {"cpu": "2"}), {"max": {"cpu": "3"}}, "1500m", "3"),
        (({"cpu": "1"}, {"cpu": "1"}), {"max": {"cpu": "3"}}, "3", "3"),
        (({"cpu": "0"}, {"cpu": "1"}), {"max": {"cpu": "3"}}, "3", "3"),
        (({"cpu": "1"}, {"cpu": "2"}), {"min": {"cpu": "6"}}, "6", "12"),
        (({"cpu": "1"}, {"cpu": "2"}), {}, "4", "8"),
    ],
)
def test_a_vertical_autoscaler_stays_within_limit_ranges(
    own: tuple[Object, Object], item: Object, cpu: str, limit: str
) -> None:
    shown = replica(cpu="1", annotations=SCALED)
    found = made_of(
        replica_owner(containers=[limited(*own)]), shown, autoscaler(target="4"), limit_range(**item)
    )
    assert nanos(requests_in(found)["cpu"]) == nanos(cpu)
    assert found.limits == {"cpu": nanos(limit)}


def test_an_autoscaler_of_requests_alone_stays_below_the_limits_and_keeps_them() -> None:
    policy = {"controlledValues": "RequestsOnly"}
    owned = replica_owner(containers=[limited({"cpu": "1"}, {"cpu": "2"})])
    for target, cpu in (("1500m", "1500m"), ("4", "2")):
        found = made_of(owned, replica(cpu="1", annotations=SCALED), autoscaler(policy=policy, target=target))
        assert (requests_in(found)["cpu"], found.limits) == (cpu, {"cpu": nanos("2")})


@pytest.mark.parametrize("request_", ["1", "0"])
def test_of_a_webhook_that_changes_requests_the_limits_are_not_known(request_: str) -> None:
    owned = replica_owner(containers=[limited({"cpu": request_}, {"cpu": "2"})])
    ranged = limit_range(max={"cpu": "4"})
    found = made_of(owned, replica(cpu="3"), ranged)
    assert (requests_in(found), found.limits) == ({"cpu": "3"}, None)


def test_requests_of_a_whole_pod_are_compared_as_quantities() -> None:
    def whole(memory: str) -> Object:
        return {"resources": {"requests": {"cpu": "1", "memory": memory}}}

    assert isinstance(next_of(replica_owner(**whole("1000M")), replica(**whole("1G"))), NextPod)
    assert refused_of(replica_owner(**whole("1000M")), replica(**whole("2G"))).rule == CANNOT_FORECAST


def test_a_container_that_is_added_takes_its_host_ports_again() -> None:
    proxy = container("proxy", ports=[{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1"}])
    found = made_of(replica_owner(containers=[MAIN]), changed(containers=[container(cpu="3"), proxy]))
    (port,) = (found.template.spec.containers or ())[1].ports or ()
    assert (port.host_port, port.host_ip) == (8080, "127.0.0.1")
