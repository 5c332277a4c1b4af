"""State that a workload keeps when it is evicted from a cluster."""

from typing import Any

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.api.paths import read_path
from federation.failover.eviction_tasks import make_task
from federation.failover.state_preservation import PRESERVED, labels_for_copy, read_state
from federation.propagation.works import plan_works
from tests.support.federation.objects import WEB, claimed_binding, given, template, work

STATUS = {
    "replicas": 2,
    "healthy": True,
    "share": 0.5,
    "phase": "Running",
    "parts": [{"a.b": "x"}],
    "note": "no label!",
}


def rules(**paths: str) -> dict[str, Any]:
    said = {"rules": [{"aliasLabelName": name, "jsonPath": path} for name, path in paths.items()]}
    return {"cluster": {"purgeMode": "Directly", "statePreservation": said}}


def bound(failover: dict[str, Any], status: Any = STATUS, **more: Any) -> ResourceBinding:
    made = claimed_binding(**{"clusters": given(m1=2), "failover": failover, **more})
    copies = [{"clusterName": "m1", "applied": True, "status": status}]
    wire = msgspec.to_builtins(made) | {"status": {"aggregatedStatus": copies}}
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


def read(one: ResourceBinding, name: str = "m1") -> Any:
    cluster = one.spec.failover.cluster if one.spec.failover else None
    return read_state(one, name, cluster.state_preservation if cluster else None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("{.replicas}", "2"),
        ("{ .replicas }", "2"),
        (".healthy", "true"),
        ("{.share}", "0.5"),
        ("{.phase}", "Running"),
        ("{.parts[0]['a.b']}", "x"),
        ("{.parts[1]['a.b']}", None),
        ("{.parts['a']}", None),
        ("{.replicas.more}", None),
        ("{.parts}", None),
        ("{.note}", None),
        ("{.gone}", None),
        ("{.parts[*]}", None),
        ("{}", None),
    ],
)
def test_a_value_is_read_where_its_path_leads(path: str, expected: str | None) -> None:
    assert read(bound(rules(a=path))).get("a") == expected


def test_a_json_path_to_many_values_is_unsupported() -> None:
    assert read_path("{.parts[*].a}") is None
    assert read_path("{.parts[?(@.a==1)]}") is None
    assert read_path(f"{{.parts[{'9' * 4301}]}}") is None
    assert read_path(f"{{.parts[{'9' * 10}]}}") is None
    assert read_path("{" + ".a" * 512 + "}") is None


def test_where_nothing_is_known_or_wanted_nothing_is_taken() -> None:
    assert read(bound({})) == {}
    assert read(bound({"cluster": {}})) == {}
    assert read(bound(rules(a="{.replicas}"), status=None)) == {}
    assert read(bound(rules(a="{.replicas}")), "m2") == {}


def test_a_task_records_the_preserved_state_and_the_clusters_before_failover() -> None:
    task = make_task(bound(rules(a="{.replicas}")), "m1", reason="R", message="")
    assert task is not None
    assert (task.preserved_label_state, task.clusters_before_failover) == ({"a": "2"}, ("m1",))
    bare = make_task(bound(rules(a="{.gone}")), "m1", reason="R", message="")
    assert bare is not None
    assert (bare.preserved_label_state, bare.clusters_before_failover) == (None, None)


def left(**more: Any) -> ResourceBinding:
    """A binding that was driven from m1 to m2."""
    task = {"fromCluster": "m1", "purgeMode": "Directly", "preservedLabelState": {"a": "2"}}
    return claimed_binding(
        clusters=more.pop("clusters", given(m2=2)),
        gracefulEvictionTasks=[{**task, "clustersBeforeFailover": ["m1"], **more}],
    )


def test_the_substitute_gets_the_preserved_state_as_labels_and_keeps_it() -> None:
    made = plan_works(WEB, left(), template(), {}).create["m2"]
    labels = made["spec"]["workload"]["manifests"][0]["metadata"]["labels"]
    assert labels["a"] == "2"
    assert made["metadata"]["annotations"][PRESERVED] == '{"a":"2"}'
    later = claimed_binding(clusters=given(m2=2))
    assert not plan_works(WEB, later, template(), {"m2": work(made)}).change


@pytest.mark.parametrize(
    "other",
    [
        left(purgeMode="Gracefully"),
        left(clusters=given(m2=1, m3=1)),
        left(clustersBeforeFailover=["m1", "m2"]),
        left(preservedLabelState=None),
        claimed_binding(clusters=given(m2=2)),
    ],
    ids=["both are there", "it is one of two", "it was there before", "there is none", "nobody left"],
)
def test_others_get_nothing(other: ResourceBinding) -> None:
    assert labels_for_copy(other, "m2", None) == {}
    made = plan_works(WEB, other, template(), {}).create["m2"]
    assert PRESERVED not in made["metadata"]["annotations"]


@pytest.mark.parametrize("text", ["odd", '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}"], ids=["odd", "deep"])
def test_an_unreadable_state_annotation_is_ignored(text: str) -> None:
    made = plan_works(WEB, left(), template(), {}).create["m2"]
    made["metadata"]["annotations"][PRESERVED] = text
    assert labels_for_copy(left(), "m2", work(made)) == {}
