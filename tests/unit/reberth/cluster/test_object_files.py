import json
import re
from typing import Any

import pytest
import yaml

from reberth.cluster.kinds import BUDGET, DEPLOYMENT, NAMESPACE, VOLUME
from reberth.cluster.object_files import LoadedObjects, TextError, load_objects
from tests.support.builders import Object, deployment, node, pdb, pod

NOW = 1_800_000_000.0


def read(objects: Any) -> LoadedObjects:
    return load_objects(objects, now=NOW, version=(1, 36))


def faults_of(objects: Any) -> list[str]:
    return [str(fault) for fault in read(objects).faults]


def listed(*items: object, kind: str = "List", api_version: str = "v1") -> Object:
    return {
        "kind": kind,
        "apiVersion": api_version,
        "metadata": {"resourceVersion": ""},
        "items": list(items),
    }


CLUSTER = listed(node("n1"), pod("web-1", node="n1", cpu="1"), pdb("web"), deployment("web"))


@pytest.mark.parametrize(
    "objects",
    [
        json.dumps(CLUSTER).encode(),
        json.dumps(CLUSTER, indent=4).encode(),
        json.dumps(CLUSTER["items"]).encode(),
        "".join(map(json.dumps, CLUSTER["items"])).encode(),
        yaml.safe_dump(CLUSTER).encode(),
        yaml.safe_dump_all(CLUSTER["items"]).encode(),
        CLUSTER,
        CLUSTER["items"],
        [listed(*CLUSTER["items"][:2]), listed(*CLUSTER["items"][2:])],
        [listed(CLUSTER)],
    ],
)
def test_every_form_of_the_same_objects_gives_the_same_snapshot(objects: Any) -> None:
    snapshot, faults, _ = read(objects)
    assert faults == ()
    assert (snapshot.now, snapshot.nodes.names) == (NOW, ("n1",))
    assert [row.name for row in snapshot.pods.rows] == ["web-1"]
    assert snapshot.sums.requested.main[0].tolist() == [1000]
    assert snapshot.of(BUDGET).named("default", "web")
    assert snapshot.of(DEPLOYMENT).named("default", "web")


def test_the_items_of_a_typed_list_need_no_kind() -> None:
    bare = {key: part for key, part in pod("web-1").items() if key not in ("kind", "apiVersion")}
    snapshot, faults, _ = read(listed(bare, kind="PodList"))
    assert (len(snapshot.pods.rows), faults) == (1, ())
    budget = {key: part for key, part in pdb("web").items() if key not in ("kind", "apiVersion")}
    assert read(listed(budget, kind="PodDisruptionBudgetList", api_version="policy/v1")).snapshot.of(BUDGET)


@pytest.mark.parametrize(
    "strange",
    [
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}, "data": {"a": "b"}},
        {"kind": "Pod", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {"name": "x"}, "spec": 7},
        {"kind": "AllowList", "apiVersion": "a.example.com/v1", "spec": {"addresses": []}},
        {"kind": "ConfigMapList", "apiVersion": "v1", "items": [{"data": {}}]},
        listed(),
    ],
)
def test_kinds_outside_the_snapshot_are_skipped(strange: Object) -> None:
    snapshot, faults, _ = read([strange, pod("web-1")])
    assert (len(snapshot.pods.rows), faults) == (1, ())


def test_an_empty_text_is_an_empty_cluster() -> None:
    assert read(b"").snapshot.pods.rows == ()


def test_empty_documents_are_passed_over() -> None:
    text = "---\n" + yaml.safe_dump(pod("web-1")) + "---\n"
    snapshot, faults, _ = read(text.encode())
    assert (len(snapshot.pods.rows), faults) == (1, ())


def test_fields_set_by_the_api_server_may_be_missing_in_a_file() -> None:
    text = b"""
kind: Pod
apiVersion: v1
metadata: {name: web-1}
---
kind: PersistentVolume
apiVersion: v1
metadata: {name: pv-1}
---
kind: Namespace
apiVersion: v1
metadata: {name: default, namespace: odd}
"""
    snapshot, faults, _ = read(text)
    assert faults == ()
    (row,) = snapshot.pods.rows
    assert (row.namespace, row.name, row.phase) == ("default", "web-1", "Pending")
    assert row.uid
    assert snapshot.of(VOLUME).named("", "pv-1")
    assert snapshot.of(NAMESPACE).named("", "default")


def test_of_two_objects_of_one_name_the_later_counts() -> None:
    snapshot, faults, _ = read(
        [pod("web-1", cpu="1", node="n1"), pod("web-1", cpu="2", node="n1"), node("n1")]
    )
    assert faults == ()
    assert snapshot.sums.requested.main[0].tolist() == [2000]


WRONG: list[tuple[object, str]] = [
    (
        {**pod("bad"), "spec": {"priority": "high"}},
        r"^Pod default/bad: spec.priority: Expected `int \| null`, got `str`$",
    ),
    (
        {**pod("bad"), "spec": {"containers": [{"ports": 7}]}},
        r"^Pod default/bad: spec.containers\[0\].ports: Expected",
    ),
    (
        pod("bad", cpu="much"),
        r"^Pod default/bad: spec.containers\[0\].resources.requests.cpu: .*invalid quantity",
    ),
    (pod("bad", created="now"), r"^Pod default/bad: metadata.creationTimestamp: invalid time 'now'"),
    (pod("bad", priority=2**31), r"^Pod default/bad: spec.priority: 2147483648 does not fit into 32 bits"),
    (node("bad", memory="lots"), r"^Node bad: status.allocatable.memory: .*invalid quantity"),
    ({**pod("bad"), "metadata": {}}, r"^Pod \(unnamed\): metadata.name: is missing"),
    ({**pod("bad"), "metadata": None}, r"^Pod \(unnamed\): metadata: Expected `object`, got `null`"),
    ({**pod("bad"), "metadata": {"name": 7}}, r"^Pod 7: metadata.name: Expected `str`, got `int`"),
    ({"kind": "Pod", "apiVersion": "v1"}, r"^Pod \(unnamed\): all of it: Object missing .* `metadata`"),
    ({"metadata": {"name": "bad", "namespace": "x"}}, r"^object x/bad: kind: is missing"),
    ({"kind": 7, "metadata": {"name": "bad"}}, r"^object bad: kind: Expected `str \| null`, got `int`"),
    ("a text", r"^object \(unnamed\): all of it: Expected `object`, got `str`"),
    ([7], r"^object \(unnamed\): all of it: Expected `object`, got `array`"),
    (
        {"kind": "List", "apiVersion": "v1", "items": 7},
        r"^List \(unnamed\): items: Expected `array`, got `int`",
    ),
]


@pytest.mark.parametrize(("wrong", "report"), WRONG)
def test_a_wrong_object_is_reported_and_the_rest_goes_on(wrong: object, report: str) -> None:
    snapshot, faults, _ = read([pod("good-1"), wrong, pod("good-2")])
    assert [row.name for row in snapshot.pods.rows] == ["good-1", "good-2"]
    (fault,) = faults
    assert re.search(report, str(fault)), str(fault)


def test_wrong_objects_within_a_list_are_reported_in_order() -> None:
    assert faults_of(listed(pod("a", cpu="x"), pod("b"), pod("c", cpu="y"))) == faults_of(
        [pod("a", cpu="x"), pod("c", cpu="y")]
    )


def test_two_objects_with_the_same_uid_are_a_fault() -> None:
    (fault,) = faults_of([pod("a", uid="same"), pod("b", uid="same"), pod("a", uid="same")])
    assert fault == "Pod default/b: metadata.uid: is also the uid of default/a"


def test_a_text_that_cannot_be_read_is_refused_as_a_whole() -> None:
    with pytest.raises(TextError, match="Expecting value"):
        read(b'{"kind": ')


@pytest.mark.parametrize(
    ("text", "is_useless"),
    [
        (b"", True),
        (b"hello", True),
        (b"[1, 2]", True),
        (b'{"kind": "List", "items": null}', True),
        (b'{"kind": "Pod", "apiVersion": "v1", "metadata": {}}', True),
        (b'{"kind": "List", "items": []}', False),
        (b'{"kind": "Tide", "apiVersion": "example.com/v1"}', False),
        (b'["hello", {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}]', False),
    ],
)
def test_a_text_in_which_nothing_is_sound_is_useless(text: bytes, *, is_useless: bool) -> None:
    assert read(text).is_useless is is_useless
