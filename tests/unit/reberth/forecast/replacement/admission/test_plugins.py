"""What the admission plugins make of the next pod, by objects that are read."""

import json
from typing import Any

import pytest

from reberth.forecast.replacement.refusals import CANNOT_BE_REPLACED, CANNOT_FORECAST
from reberth.values.refusal import Refused
from tests.support.builders import Object, container
from tests.support.forecast.replicas import (
    DEFAULT_TOLERATIONS,
    NAMESPACE,
    made_of,
    next_of,
    priority_class,
    refused_of,
    replica,
    replica_owner,
    requests_in,
)

REFUSED = "the API server would refuse the replacement"
ALLOWED = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"


def namespace(**annotations: str) -> Object:
    keys = {"selector": "node-selector", "given": "defaultTolerations", "allowed": "tolerationsWhitelist"}
    named = {f"scheduler.alpha.kubernetes.io/{keys[key]}": text for key, text in annotations.items()}
    meta = {"name": NAMESPACE, "uid": "ns", "annotations": named}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def runtime_class(name: str = "sandbox", **fields: Any) -> Object:
    meta = {"name": name, "uid": "rc"}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta, **fields}


def limit_range(kind: str = "Container", **item: Any) -> Object:
    meta = {"name": "limits", "namespace": NAMESPACE, "uid": "lr"}
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": meta,
        "spec": {"limits": [{"type": kind, **item}]},
    }


def account(name: str, where: str = NAMESPACE) -> Object:
    meta = {"name": name, "namespace": where, "uid": f"{where}-{name}"}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def limited(requests: Object | None = None, limits: Object | None = None, name: str = "main") -> Object:
    return {"name": name, "image": "img", "resources": {"requests": requests or {}, "limits": limits or {}}}


def test_todays_default_class_gives_the_priority() -> None:
    found = made_of(
        replica_owner(),
        replica(),
        priority_class("usual", 9, created="2026-11-10T00:00:00Z", globalDefault=True),
    )
    spec = found.template.spec
    assert (spec.priority_class_name, spec.priority) == ("usual", 9)


def test_a_class_that_a_webhook_gave_in_spite_of_the_default_is_given_again() -> None:
    classes = (priority_class("usual", 9, globalDefault=True), priority_class("chosen", 5))
    found = made_of(replica_owner(), replica(priorityClassName="chosen", priority=5), *classes)
    assert found.template.spec.priority == 5


def test_a_class_that_a_webhook_put_in_place_of_the_templates_is_given_again() -> None:
    classes = (priority_class("asked", 9), priority_class("given", 5))
    asked = {"priorityClassName": "asked"}
    shown = replica(priorityClassName="given", priority=5)
    found = made_of(replica_owner(**asked), shown, *classes)
    spec = found.template.spec
    assert (spec.priority_class_name, spec.priority) == ("given", 5)
    assert "priority_class_name" in found.learnt
    refused = refused_of(replica_owner(standalone=True, **asked), shown, *classes)
    assert refused.rule == CANNOT_FORECAST


def test_a_class_that_was_the_default_before_is_not_given_again() -> None:
    classes = (
        priority_class("usual", 9, created="2026-11-10T00:00:00Z", globalDefault=True),
        priority_class("former", 5),
    )
    found = made_of(replica_owner(), replica(priorityClassName="former", priority=5), *classes)
    assert found.template.spec.priority == 9


def test_a_missing_class_forbids_the_replacement() -> None:
    refused = refused_of(replica_owner(priorityClassName="gone"), replica(priorityClassName="gone"))
    assert (refused.rule, refused.reason) == (
        CANNOT_BE_REPLACED,
        "the API server would refuse the replacement: PriorityClass gone does not exist",
    )


def test_a_priority_that_contradicts_its_class_forbids_the_replacement() -> None:
    refused = refused_of(replica_owner(priority=7), replica(priority=7))
    assert refused.reason.endswith("its priority is 7, and its class has 0")


def test_a_runtime_class_gives_overhead_node_selector_and_tolerations() -> None:
    scheduling = {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    }
    sandbox = runtime_class(overhead={"podFixed": {"cpu": "50m"}}, scheduling=scheduling)
    shown = replica(runtimeClassName="sandbox", overhead={"cpu": "10m"})
    spec = made_of(replica_owner(runtimeClassName="sandbox"), shown, sandbox).template.spec
    assert spec.overhead == {"cpu": "50m"}
    assert spec.node_selector == {"sandbox": "yes"}
    assert "sandbox" in {each.key for each in spec.tolerations or ()}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ((runtime_class("other"),), "RuntimeClass sandbox does not exist"),
        (
            (runtime_class(scheduling={"nodeSelector": {"disk": "ssd"}}),),
            "its nodeSelector contradicts that of RuntimeClass sandbox",
        ),
    ],
)
def test_a_runtime_class_may_forbid_the_replacement(objects: tuple[Object, ...], reason: str) -> None:
    spec = {"runtimeClassName": "sandbox", "nodeSelector": {"disk": "hdd"}}
    assert refused_of(replica_owner(**spec), replica(**spec), *objects).reason.endswith(reason)


def test_of_runtime_classes_that_were_not_read_the_newest_pod_tells() -> None:
    spot = {"key": "sandbox", "operator": "Exists"}
    given = {"nodeSelector": {"sandbox": "yes"}, "overhead": {"cpu": "10m"}}
    whole = replica(cpu="1", runtimeClassName="sandbox", tolerations=[*DEFAULT_TOLERATIONS, spot], **given)
    spec = made_of(replica_owner(runtimeClassName="sandbox", cpu="1"), whole).template.spec
    assert (spec.node_selector, spec.overhead) == ({"sandbox": "yes"}, {"cpu": "10m"})
    assert "sandbox" in {each.key for each in spec.tolerations or ()}


def test_a_missing_service_account_forbids_the_replacement_unless_none_was_read() -> None:
    objects = (replica_owner(serviceAccountName="web"), replica(serviceAccountName="web"))
    assert not isinstance(next_of(*objects), Refused)
    assert not isinstance(next_of(*objects, account("web")), Refused)
    assert refused_of(*objects, account("web", "elsewhere")).reason.endswith(
        "ServiceAccount web does not exist"
    )


def test_a_namespace_gives_its_node_selector_and_its_tolerations() -> None:
    given = json.dumps([{"key": "team", "operator": "Exists"}])
    tolerations = [*DEFAULT_TOLERATIONS, {"key": "team", "operator": "Exists"}]
    shown = replica(nodeSelector={"pool": "a"}, tolerations=tolerations)
    spec = made_of(replica_owner(), shown, namespace(selector="pool=a", given=given)).template.spec
    assert spec.node_selector == {"pool": "a"}
    assert "team" in {each.key for each in spec.tolerations or ()}


@pytest.mark.parametrize(
    ("changed", "is_known"),
    [
        ("2026-10-31T23:58:59Z", True),
        ("2026-10-31T23:59:30Z", False),
        ("2026-11-02T00:00:00Z", False),
    ],
)
def test_a_pod_that_may_be_older_than_the_annotation_shows_nothing(changed: str, *, is_known: bool) -> None:
    annotated = namespace(selector="pool=a")
    field = {"f:scheduler.alpha.kubernetes.io/node-selector": {}}
    entry = {"manager": "m", "fieldsV1": {"f:metadata": {"f:annotations": field}}, "time": changed}
    annotated["metadata"]["managedFields"] = [entry]
    found = next_of(replica_owner(), replica(), annotated)
    assert isinstance(found, Refused) is not is_known
    if isinstance(found, Refused):
        assert found.rule == CANNOT_FORECAST
    else:
        assert found.template.spec.node_selector is None


@pytest.mark.parametrize(
    "annotations",
    [
        {"selector": "pool=a"},
        {"selector": "disk=ssd"},
        {"given": '[{"key": "team", "operator": "Exists"}]'},
        {"allowed": '[{"key": "team", "operator": "Exists"}]'},
    ],
)
def test_what_the_newest_pod_ignores_a_namespace_asks_of_nobody(annotations: dict[str, str]) -> None:
    """Whether the plugins that read these annotations are on, nobody can see but by the pods."""
    spec = {"nodeSelector": {"disk": "hdd"}}
    found = made_of(replica_owner(**spec), replica(**spec), namespace(**annotations)).template.spec
    assert found.node_selector == {"disk": "hdd"}
    assert len(found.tolerations or ()) == len(DEFAULT_TOLERATIONS)


TEAM = {"key": "team", "operator": "Exists"}


@pytest.mark.parametrize(
    ("annotations", "template", "shown", "rule", "reason"),
    [
        (
            {"selector": "disk=ssd"},
            {"nodeSelector": {"disk": "hdd"}},
            {"nodeSelector": {"disk": "ssd"}},
            CANNOT_BE_REPLACED,
            f"{REFUSED}: its nodeSelector contradicts that of its namespace",
        ),
        (
            {"allowed": json.dumps([TEAM, *DEFAULT_TOLERATIONS])},
            {"tolerations": [{"key": "spot", "operator": "Exists"}]},
            {"tolerations": [TEAM, *DEFAULT_TOLERATIONS]},
            CANNOT_BE_REPLACED,
            f"{REFUSED}: the namespace's annotation {ALLOWED} forbids a toleration",
        ),
        (
            {"given": "nonsense"},
            {},
            {},
            CANNOT_FORECAST,
            "the namespace's annotation scheduler.alpha.kubernetes.io/defaultTolerations cannot be read",
        ),
    ],
)
def test_what_a_namespace_asks_of_its_pods_may_forbid_the_replacement(
    annotations: dict[str, str], template: Object, shown: Object, rule: str, reason: str
) -> None:
    refused = refused_of(replica_owner(**template), replica(**shown), namespace(**annotations))
    assert (refused.rule, refused.reason) == (rule, reason)


def test_a_server_without_default_tolerations_gives_none() -> None:
    found = made_of(replica_owner(), replica(tolerations=[]))
    assert not found.template.spec.tolerations


def test_a_limit_range_that_changed_gives_todays_requests() -> None:
    noted = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container main"}
    shown = replica(cpu="100m", memory="1Gi", annotations=noted)
    found = made_of(replica_owner(), shown, limit_range(defaultRequest={"cpu": "200m"}))
    assert (requests_in(found), found.learnt) == ({"cpu": "200m"}, ())


def test_limits_of_a_limit_range_are_counted() -> None:
    found = made_of(replica_owner(cpu="1"), replica(cpu="1"), limit_range(default={"cpu": "2"}))
    assert found.limits == {"cpu": 2 * 10**9}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"min": {"cpu": "2"}}, "minimum cpu usage per Container is 2"),
        ({"min": {"memory": "1Gi"}}, "minimum memory usage per Container is 1Gi"),
        ({"max": {"cpu": "500m"}}, "maximum cpu usage per Container is 500m"),
        ({"maxLimitRequestRatio": {"cpu": "1"}}, "cpu max limit to request ratio per Container is 1"),
        ({"kind": "Pod", "max": {"cpu": "3"}}, "maximum cpu usage per Pod is 3"),
        ({"kind": "Pod", "min": {"cpu": "3"}}, "minimum cpu usage per Pod is 3"),
    ],
)
def test_a_limit_range_may_forbid_the_replacement(item: Object, reason: str) -> None:
    one = [limited({"cpu": "1"}, {"cpu": "2"}), limited({"cpu": "1"}, {"cpu": "2"}, "other")]
    first = [limited({"cpu": "1"}, {"cpu": "2"}, "first") | {"restartPolicy": "Always"}]
    spec = {"containers": one, "initContainers": [*first, limited({"cpu": "1"}, {"cpu": "1"}, "second")]}
    kind = item.pop("kind", "Container")
    if kind == "Pod" and "min" in item:
        spec = {"containers": one}
    found = refused_of(replica_owner(**spec), replica(**spec), limit_range(kind, **item))
    assert found.rule == CANNOT_BE_REPLACED
    assert found.reason.endswith(f"LimitRange limits: {reason}")


def test_what_a_limit_range_allows_is_created() -> None:
    spec = {"containers": [limited({"cpu": "1"}, {"cpu": "2"})]}
    allowed = limit_range(min={"cpu": "1"}, max={"cpu": "2"}, maxLimitRequestRatio={"cpu": "2"})
    assert not isinstance(next_of(replica_owner(**spec), replica(**spec), allowed), Refused)


def test_a_default_limit_below_the_request_forbids_the_replacement() -> None:
    refused = refused_of(replica_owner(cpu="2"), replica(cpu="2"), limit_range(default={"cpu": "1"}))
    assert refused.reason.endswith("container main requests more cpu than its limit of 1")


def test_requests_of_the_whole_pod_are_filled_in() -> None:
    whole = {"limits": {"cpu": "4", "memory": "1Gi"}}
    spec = {"containers": [container(cpu="1")]}
    shown = replica(**spec, resources={"requests": {"cpu": "1", "memory": "1Gi"}, **whole})
    found = made_of(replica_owner(**spec, resources=whole), shown)
    assert found.template.spec.resources
    assert found.template.spec.resources.requests == {"cpu": "1", "memory": "1Gi"}


def test_limit_ranges_that_contradict_each_other_may_give_either() -> None:
    ranges = [limit_range(defaultRequest={"cpu": "1"}), limit_range(defaultRequest={"cpu": "2"})]
    ranges[1]["metadata"] = {**ranges[1]["metadata"], "name": "more", "uid": "more"}
    assert refused_of(replica_owner(), replica(), *ranges).reason == (
        "LimitRanges of the namespace give different requests of cpu"
    )
    assert not isinstance(next_of(replica_owner(cpu="1"), replica(cpu="1"), *ranges), Refused)


@pytest.mark.parametrize(
    ("changed", "annotation", "is_allowed"),
    [
        ("2026-10-01T00:00:00Z", "", True),
        ("2026-10-01T00:00:00Z", "LimitRanger plugin set: cpu request for container main", True),
        ("2026-10-01T00:00:00Z", "LimitRanger plugin set: cpu limit for container main", False),
        ("2026-11-02T00:00:00Z", "", False),
        (None, "", False),
    ],
)
def test_limits_that_the_newest_pod_must_have_had_are_given_again(
    changed: str | None, annotation: str, *, is_allowed: bool
) -> None:
    """By a webhook: pods are cached without limits. A LimitRange that gave them may be gone."""
    ranged = limit_range("Pod", max={"cpu": "3"})
    ranged["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:spec": {}}, "time": changed}]
    shown = replica(cpu="1", annotations={"kubernetes.io/limit-ranger": annotation} if annotation else {})
    found = next_of(replica_owner(cpu="1"), shown, ranged)
    assert isinstance(found, Refused) is not is_allowed
