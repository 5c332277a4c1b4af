import ast
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from reberth.cluster.pods.interning import (
    KEPT_ANNOTATIONS,
    NODE_NOTE,
    PodOwnFields,
    join_pairs,
    join_spec,
    keep_known,
    keep_of_node,
    keep_one,
    split_pod,
)
from reberth.cluster.pods.requests import Version, count_bound_requests
from reberth.memory.notes import ANNOTATION
from reberth.records import Pod, PodSpec
from tests.support.builders import Object, owner, pod
from tests.support.cluster.strategies import pinned_to, pod_record, pods
from tests.support.repository import ROOT, parse_source


def without_idle_volumes(spec: PodSpec) -> PodSpec:
    """Leave out the volumes that the scheduler does not look at, found by what they say."""
    kept = [
        volume
        for volume in spec.volumes or ()
        if volume.persistent_volume_claim or volume.ephemeral is not None or volume.empty_dir is not None
    ]
    return replace(spec, volumes=tuple(kept) or None)


def replica(name: str, **fields: Any) -> Pod:
    fields = {"owned_by": owner("ReplicaSet", "web"), "labels": {"app": "web"}} | fields
    return pod_record(pod(name, **fields))


@given(pods())
def test_no_label_of_a_pod_is_lost(built: Object) -> None:
    common, own = split_pod(pod_record(built))
    assert join_pairs(common.metadata.labels, own.labels) == built["metadata"].get("labels", {})


@given(pods())
def test_no_known_annotation_of_a_pod_is_lost(built: Object) -> None:
    common, own = split_pod(pod_record(built))
    given_ = built["metadata"].get("annotations", {})
    known = {key: text for key, text in given_.items() if "unknown" not in key}
    assert join_pairs(common.metadata.annotations, own.annotations) == known


@given(pods())
def test_the_spec_of_a_pod_comes_back_as_it_was(built: Object) -> None:
    record = pod_record(built)
    common, own = split_pod(record)
    assert join_spec(common.spec, own, node=record.spec.node_name) == without_idle_volumes(record.spec)


@pytest.mark.parametrize("version", [(1, 35), (1, 36), (1, 37)])
def test_the_shared_part_of_a_pod_has_the_same_requests(version: Version) -> None:
    @given(pods())
    def check(built: Object) -> None:
        record = pod_record(built)
        assert count_bound_requests(split_pod(record)[0], version=version) == count_bound_requests(
            record, version=version
        )

    check()


RESIZED = {"requests": {"cpu": "2"}}


def actually(cpu: str) -> Object:
    """Write the status of a pod that runs with so much."""
    return {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}


TOKEN = {"projected": {"sources": []}}

ALIKE: list[tuple[str, Pod, Pod]] = [
    ("their names", replica("web-1"), replica("web-2")),
    ("their nodes", replica("web-1", node="n1"), replica("web-2", node="n2")),
    (
        "their token volumes",
        replica("web-1", volumes=[{"name": "kube-api-access-aaaaa", **TOKEN}]),
        replica("web-2", volumes=[{"name": "kube-api-access-bbbbb", **TOKEN}]),
    ),
    (
        "their claims",
        replica("db-0", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]),
        replica("db-1", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}]),
    ),
    (
        "the zones of their nodes",
        replica("web-1", labels={"app": "web", "topology.kubernetes.io/zone": "a"}),
        replica("web-2", labels={"app": "web", "topology.kubernetes.io/zone": "b"}),
    ),
    (
        "their numbers",
        replica("db-0", labels={"app": "db", "apps.kubernetes.io/pod-index": "0"}),
        replica("db-1", labels={"app": "db", "apps.kubernetes.io/pod-index": "1"}),
    ),
    (
        "what their deletion costs",
        replica("web-1", annotations={"controller.kubernetes.io/pod-deletion-cost": "7"}),
        replica("web-2"),
    ),
    (
        "annotations that nobody reads",
        replica("web-1", annotations={"a.example.com/b": "c"}),
        replica("web-2"),
    ),
    (
        "the nodes that a DaemonSet made them for",
        replica("agent-1", owned_by=owner("DaemonSet", "agent"), affinity=pinned_to("n1")),
        replica("agent-2", owned_by=owner("DaemonSet", "agent"), affinity=pinned_to("n2")),
    ),
    (
        "a status that repeats the spec",
        replica(
            "web-1",
            cpu="1",
            status=actually(cpu="1"),
        ),
        replica("web-2", cpu="1"),
    ),
]

UNLIKE: list[tuple[str, Pod, Pod]] = [
    ("their labels", replica("web-1"), replica("web-2", labels={"app": "other"})),
    ("their requests", replica("web-1", cpu="1"), replica("web-2", cpu="2")),
    ("their owners", replica("web-1"), replica("web-2", owned_by=owner("ReplicaSet", "other"))),
    ("their namespaces", replica("web-1"), replica("web-2", namespace="shop")),
    (
        "an in-place resize",
        replica("web-1", cpu="1", status={"containerStatuses": [{"name": "main", "resources": RESIZED}]}),
        replica("web-2", cpu="1"),
    ),
    (
        "an annotation that is read",
        replica("web-1", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        replica("web-2"),
    ),
    (
        "a node that somebody else than a DaemonSet pins",
        replica("web-1", affinity=pinned_to("n1")),
        replica("web-2", affinity=pinned_to("n2")),
    ),
]


@pytest.mark.parametrize(("what", "one", "other"), ALIKE, ids=[what for what, *_ in ALIKE])
def test_pods_share_their_common_part_although_they_differ_in(what: str, one: Pod, other: Pod) -> None:
    assert split_pod(one)[0] == split_pod(other)[0], what


@pytest.mark.parametrize(("what", "one", "other"), UNLIKE, ids=[what for what, *_ in UNLIKE])
def test_pods_do_not_share_a_common_part_when_they_differ_in(what: str, one: Pod, other: Pod) -> None:
    assert split_pod(one)[0] != split_pod(other)[0], what


def test_fields_of_a_single_pod_are_split_from_the_shared_part() -> None:
    record = replica(
        "agent-1",
        owned_by=owner("DaemonSet", "agent"),
        labels={"app": "web", "topology.kubernetes.io/zone": "a"},
        affinity=pinned_to("n1"),
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}],
    )
    assert split_pod(record)[1] == PodOwnFields((("topology.kubernetes.io/zone", "a"),), (), ("mine",), "n1")


def test_a_pod_without_anything_of_its_own_has_nothing() -> None:
    assert split_pod(replica("web-1"))[1] == PodOwnFields()


def test_unread_annotations_are_dropped() -> None:
    assert keep_known({"kubectl.kubernetes.io/last-applied-configuration": "{}"}) is None


def test_of_an_annotation_no_more_is_kept_than_is_read() -> None:
    kept = keep_known({"reberth.dev/automation": "x" * 2**18, "own": "y" * 2**18}, frozenset({"own"}))
    assert kept == {"reberth.dev/automation": "x" * 1025, "own": "y" * 1025}


def test_a_node_keeps_its_note_whole() -> None:
    others = {"unknown": "x", "delay-deletion.cluster-autoscaler.kubernetes.io/x": "true"}
    kept = keep_of_node({NODE_NOTE: "n" * 2**17, **others, "karpenter.sh/do-not-disrupt": "true"})
    assert kept == {NODE_NOTE: "n" * 2**17, "karpenter.sh/do-not-disrupt": "true"}
    assert keep_of_node({"unknown": "x"}) is None


READ = ("reberth", "extender", "rescheduler")
DOMAINS = (
    *("reberth.dev/", "autoscaling.cast.ai/", "cluster-autoscaler.kubernetes.io/", "karpenter.sh/"),
    *("descheduler.alpha.kubernetes.io/", "pv.kubernetes.io/", "scheduler.alpha.kubernetes.io/"),
    *("storage.alpha.kubernetes.io/", "volume.beta.kubernetes.io/", "volume.kubernetes.io/"),
)
# Labels, taints, versions and reporters, and the annotations of Leases and evictions.
NOT_MIRRORED = {
    *(f"karpenter.sh/{name}" for name in ("disrupted", "initialized", "nodepool", "unregistered")),
    *(
        f"reberth.dev/{name}"
        for name in ("certificates-from", "extender", "rescheduler", "v1alpha1", "v1alpha2")
    ),
    *(
        f"reberth.dev/{name}"
        for name in ("move", "move-answers", "move-request", "paused", "policy", "reason")
    ),
}


def test_every_annotation_that_the_code_names_is_kept() -> None:
    files = (file for program in READ for file in (ROOT / program).rglob("*.py"))
    texts = (each for file in files for each in ast.walk(parse_source(file.read_text())))
    named = {each.value for each in texts if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    keys = {text for text in named if text.startswith(DOMAINS) and not text.endswith("/") and " " not in text}
    assert keys - NOT_MIRRORED == {key for key in KEPT_ANNOTATIONS | {NODE_NOTE} if key.startswith(DOMAINS)}
    assert NODE_NOTE == ANNOTATION


def test_equal_values_become_one_object() -> None:
    first, second = (("a", str(number)) for number in (7, 7))
    assert first is not second
    assert keep_one(first) is keep_one(second)
