"""VolumeBinding: whether each node can reach, bind or provision the volumes of a pod."""

from typing import Any

import pytest

from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.plugin_args import VolumeBindingArgs
from reberth.forecast.state.verdict import FITS, FilterVerdict, Refusal, Rejected, Unforeseeable
from reberth.forecast.state.view import View
from reberth.forecast.volumes.binding import filter_volume_binding
from tests.support.builders import Object, node, owner, pod
from tests.support.forecast.volumes import (
    HOSTNAME,
    ZONE,
    claim,
    claimed,
    csi_driver,
    csi_node,
    ephemeral,
    near,
    owned,
    pool,
    storage_class,
    topology,
    volume,
)
from tests.support.forecast.worlds import asking, next_of, refused, world

FAR = "node(s) didn't match PersistentVolume's node affinity"
LACKS = "node(s) didn't find available persistent volumes to bind"
FULL = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
BY_HAND = "kubernetes.io/no-provisioner"
SELECTED = "volume.kubernetes.io/selected-node"
NODES = [node("n1", labels={ZONE: "a", HOSTNAME: "h1"}), node("n2", labels={ZONE: "b", HOSTNAME: "h2"})]
STATIC = storage_class(provisioner=BY_HAND)


def ask(view: View, asked: IncomingPod | None = None) -> FilterVerdict:
    return filter_volume_binding(asked or asking(view), view, VolumeBindingArgs())


def judge(*objects: Object, claims: tuple[str, ...] = ("c",)) -> dict[str, list[str]]:
    """The reasons by node for a pod with these claims; what volumes refuse, they refuse for good."""
    view = world(*NODES, *objects, pod("asking", volumes=claimed(*claims)))
    verdict = ask(view)
    assert all(refusal.final for refusal in verdict if type(refusal) is Refusal)
    return refused(view, verdict)


def either(*selectors: Object) -> Object:
    return {"nodeSelectorTerms": [term for each in selectors for term in each["nodeSelectorTerms"]]}


def by_name(operator: str, name: str) -> Object:
    return {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}
        ]
    }


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        (
            [claim("c", volume="v", phase="Lost")],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        ([claim("c", deleted="2026-11-18T09:15:31Z")], 'persistentvolumeclaim "c" is being deleted'),
        ([claim("c", storage_class=None)], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("c")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("c"), storage_class(mode="Immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        ([claim("c", volumeName="v"), STATIC], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("c"), storage_class(mode=None)],
            'running PreFilter plugin "VolumeBinding": VolumeBindingMode not set for StorageClass "wait"',
        ),
    ],
)
def test_a_pod_with_claims_that_are_not_ready_is_rejected(objects: list[Object], reason: str) -> None:
    view = world(*NODES, *objects, pod("asking", volumes=claimed("c")))
    assert ask(view) == Rejected(reason)


def test_a_pod_without_claims_fits() -> None:
    view = world(*NODES, pod("asking"), pod("other", volumes=[{"name": "x", "emptyDir": {}}]))
    assert ask(view) is FITS
    assert ask(view, asking(view, "other")) is FITS


@pytest.mark.parametrize(
    ("affinity", "far"),
    [
        (None, ""),
        (near(ZONE, "a"), "n2"),
        (near(ZONE, "a", "b"), ""),
        (near(ZONE, "c"), "n1 n2"),
        (near(HOSTNAME, "h2"), "n1"),
        (near(HOSTNAME, "h1", operator="NotIn"), "n1"),
        (near("rack", operator="DoesNotExist"), ""),
        ({"nodeSelectorTerms": []}, "n1 n2"),
        ({"nodeSelectorTerms": [{}]}, "n1 n2"),
        (either(near(ZONE, "a"), near(ZONE, "a")), "n2"),
        (either(near(ZONE, "a"), near(HOSTNAME, "h2")), ""),
        (by_name("In", "n1"), "n1 n2"),
        (by_name("NotIn", "n1"), ""),
        (either(by_name("In", "n1"), near(ZONE, "b")), "n1"),
        (near(ZONE, "a", operator="Like"), "n1 n2"),
    ],
)
def test_a_node_must_be_able_to_reach_a_bound_volume(affinity: Object | None, far: str) -> None:
    found = judge(claim("c", volume="v"), volume("v", near=affinity))
    assert found == {name: [FAR] for name in far.split()}


def test_a_missing_volume_rejects_nodes_that_pass_the_claims_before_it() -> None:
    objects = [claim("c", volume="v"), claim("d", volume="gone"), volume("v", near=near(ZONE, "a"))]
    assert judge(*objects, claims=("c", "d")) == {"n1": [GONE], "n2": [FAR]}
    assert judge(*objects, claims=("d", "c")) == {"n1": [GONE], "n2": [GONE]}


@pytest.mark.parametrize(
    ("source", "migrated", "expected"),
    [
        ({"gcePersistentDisk": {"pdName": "d"}}, None, {"n2": [FAR]}),
        ({"gcePersistentDisk": {"pdName": "d"}}, "kubernetes.io/gce-pd", {"n1": [FAR], "n2": [FAR]}),
        ({"gcePersistentDisk": {"pdName": "d"}}, "kubernetes.io/cinder", {"n2": [FAR]}),
        ({"azureDisk": {"diskURI": "d"}}, "kubernetes.io/azure-disk", {"n2": [FAR]}),
        ({}, "kubernetes.io/gce-pd", {"n2": [FAR]}),
    ],
)
def test_a_migrated_node_needs_the_label_of_the_csi_driver(
    source: Object, migrated: str | None, expected: dict[str, list[str]]
) -> None:
    old = volume("v", near=near(ZONE, "a"), **source)
    assert judge(claim("c", volume="v"), old, csi_node("n1", migrated=migrated)) == expected


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": "999Mi"},
        {"volumeMode": "Block"},
        {"volumeAttributesClassName": "gold"},
        {"storage_class": "other"},
        {"access": ("ReadOnlyMany",)},
        {"phase": "Released"},
        {"deleted": "2026-11-18T09:15:31Z"},
        {"claimRef": owned("other")},
        {"claimRef": owned("c", "another-uid")},
        {"claimRef": owned("c", namespace="far")},
        {"annotations": {"volume.beta.kubernetes.io/storage-class": "other"}},
        {"near": near(ZONE, "c")},
    ],
    ids=str,
)
def test_a_free_volume_must_match_the_claim(wrong: dict[str, Any]) -> None:
    assert judge(claim("c"), STATIC, volume("v")) == {}
    assert judge(claim("c"), STATIC, volume("v", **wrong)) == {"n1": [LACKS], "n2": [LACKS]}


@pytest.mark.parametrize(
    "asked",
    [
        {"selector": {"matchLabels": {"tier": "fast"}}},
        {"volumeAttributesClassName": "gold"},
        {"volumeMode": "Block"},
        {"access": ("ReadWriteOnce", "ReadWriteMany")},
        {"size": "1.1Gi"},
    ],
    ids=str,
)
def test_a_claim_may_have_special_requirements(asked: dict[str, Any]) -> None:
    special = volume(
        "v",
        size="2Gi",
        access=("ReadWriteMany", "ReadWriteOnce"),
        labels={"tier": "fast"},
        **{key: asked[key] for key in ("volumeMode", "volumeAttributesClassName") if key in asked},
    )
    assert judge(claim("c", **asked), STATIC, special) == {}
    assert judge(claim("c", **asked), STATIC, volume("v")) == {"n1": [LACKS], "n2": [LACKS]}


def test_a_claim_without_a_size_matches_any_volume() -> None:
    assert judge(claim("c", size=None), STATIC, volume("v", size="1")) == {}


def test_a_reserved_volume_takes_precedence_over_free_ones() -> None:
    made = {"claimRef": owned("c"), "access": ("ReadOnlyMany",), "phase": "Pending"}
    assert judge(claim("c"), STATIC, volume("v", **made)) == {}
    far = volume("v", near=near(ZONE, "a"), **made)
    assert judge(claim("c"), STATIC, far, volume("free")) == {"n2": [LACKS]}
    small = volume("v", size="1Mi", **made)
    assert judge(claim("c"), STATIC, small, volume("free")) == {}
    other_class = volume("v", storage_class="other", **made)
    assert judge(claim("c"), STATIC, other_class) == {"n1": [LACKS], "n2": [LACKS]}


def test_two_claims_of_a_pod_need_two_volumes_and_the_smaller_claim_chooses_first() -> None:
    claims = [claim("c", size="2Gi"), claim("d", size="1Gi"), STATIC]
    here = near(ZONE, "a")
    found = judge(*claims, volume("v", size="2Gi"), volume("w", size="1Gi", near=here), claims=("c", "d"))
    assert found == {"n2": [LACKS]}
    found = judge(*claims, volume("v", size="3Gi"), volume("w", size="2Gi"), claims=("c", "d"))
    assert found == {}


def test_a_claim_named_twice_needs_two_volumes() -> None:
    objects = [claim("c"), STATIC, volume("v", claimRef=owned("c"))]
    assert judge(*objects, claims=("c", "c")) == {"n1": [LACKS], "n2": [LACKS]}
    assert judge(*objects, volume("w"), claims=("c", "c")) == {}


@pytest.mark.parametrize(
    ("allowed", "lacking"),
    [
        ((), ""),
        ((topology(ZONE, "a"),), "n2"),
        ((topology(ZONE, "a", "b"),), ""),
        ((topology(ZONE, "a"), topology(HOSTNAME, "h2")), ""),
        (({"matchLabelExpressions": []},), "n1 n2"),
        ((topology("no key!", "a"),), "n1 n2"),
    ],
)
def test_a_volume_is_provisioned_where_allowed_topologies_match(
    allowed: tuple[Object, ...], lacking: str
) -> None:
    found = judge(claim("c"), storage_class(allowed=allowed))
    assert found == {name: [LACKS] for name in lacking.split()}


def test_a_class_without_a_provisioner_provisions_nothing() -> None:
    assert judge(claim("c"), storage_class(provisioner="")) == {"n1": [LACKS], "n2": [LACKS]}


@pytest.mark.parametrize(
    ("pools", "full"),
    [
        ([], "n1 n2"),
        ([pool("p", "1Gi", near={})], ""),
        ([pool("p", "1Gi", near=None)], "n1 n2"),
        ([pool("p", "1Gi", near={"matchLabels": {ZONE: "a"}})], "n2"),
        ([pool("p", "1Gi", near={"matchLabels": {HOSTNAME: "h2"}})], "n1"),
        ([pool("p", "1023Mi", near={})], "n1 n2"),
        ([pool("p", "9Gi", largest="1023Mi", near={})], "n1 n2"),
        ([pool("p", "1Mi", largest="1Gi", near={})], ""),
        ([pool("p", None, largest="1Gi", near={})], ""),
        ([pool("p", None, near={})], "n1 n2"),
        ([pool("p", "1Gi", near={}, storage_class="other")], "n1 n2"),
        ([pool("p", "1Gi", near={"matchExpressions": [{"key": ZONE, "operator": "Like"}]})], "n1 n2"),
        ([pool("p", "1Mi", near={}), pool("q", "1Gi", near={"matchLabels": {ZONE: "b"}})], "n1"),
    ],
)
def test_a_volume_needs_capacity_if_the_driver_reports_it(pools: list[Object], full: str) -> None:
    objects = [claim("c"), storage_class(), *pools]
    assert judge(*objects, csi_driver(storageCapacity=True)) == {name: [FULL] for name in full.split()}
    assert judge(*objects, csi_driver(storageCapacity=False)) == {}
    assert judge(*objects) == {}


def test_a_claim_without_a_size_needs_no_capacity() -> None:
    assert judge(claim("c", size=None), storage_class(), csi_driver(storageCapacity=True)) == {}


def test_the_reason_is_that_of_the_first_claim_that_fails() -> None:
    objects = [
        claim("c", size="1Gi"),
        claim("d", size="2Gi", storage_class="picky"),
        storage_class(),
        storage_class("picky", allowed=(topology(ZONE, "a"),)),
        csi_driver(storageCapacity=True),
        pool("p", "1Gi", near={"matchLabels": {ZONE: "a"}}),
    ]
    assert judge(*objects, claims=("c", "d")) == {"n1": [FULL], "n2": [FULL]}
    enough = pool("q", "9Gi", near={"matchLabels": {ZONE: "b"}})
    assert judge(*objects, enough, claims=("c", "d")) == {"n1": [FULL], "n2": [LACKS]}


def test_a_claim_with_a_selected_node_fits_only_that_node() -> None:
    promised = claim("c", annotations={SELECTED: "n2"})
    full = [storage_class(), csi_driver(storageCapacity=True)]
    assert judge(promised, storage_class()) == {"n1": [LACKS]}
    assert judge(promised, *full) == {"n1": [LACKS], "n2": [FULL]}
    assert judge(promised, STATIC, volume("v")) == {"n1": [LACKS], "n2": [LACKS]}
    unknown = claim("c", annotations={SELECTED: "gone"})
    assert judge(unknown, storage_class()) == {"n1": [LACKS], "n2": [LACKS]}


def test_a_node_may_be_refused_for_several_reasons() -> None:
    objects = [
        claim("b", volume="far"),
        volume("far", near=near(ZONE, "a"), phase="Bound", claimRef=owned("b")),
        claim("c"),
        storage_class(),
        csi_driver(storageCapacity=True),
        claim("d", volume="gone"),
    ]
    assert judge(*objects, claims=("b", "c")) == {"n1": [FULL], "n2": [FAR, FULL]}
    assert judge(*objects, claims=("b", "c", "d")) == {"n1": [FULL, GONE], "n2": [FAR, FULL]}


def test_a_waiting_pod_needs_the_claim_of_its_ephemeral_volume() -> None:
    asked = pod("asking", uid="me", volumes=ephemeral("e"))
    made = claim("asking-e", volume="v", owned_by=owner("Pod", "asking", uid="me"))
    strange = claim("asking-e", volume="v", owned_by=owner("Pod", "asking", uid="another"))
    unowned = claim(
        "asking-e", volume="v", owned_by={**owner("Pod", "asking", uid="me"), "controller": False}
    )
    assert ask(world(*NODES, asked, made, volume("v"))) == FITS
    assert ask(world(*NODES, asked)) == Rejected(
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "asking-e"'
    )
    not_owner = Rejected("PVC default/asking-e was not created for pod default/asking (pod is not owner)")
    assert ask(world(*NODES, asked, strange)) == not_owner
    assert ask(world(*NODES, asked, unowned)) == not_owner


def test_the_next_pod_gets_an_ephemeral_volume_where_its_class_would_make_one() -> None:
    spec = {"storageClassName": "wait", "resources": {"requests": {"storage": "5Gi"}}}
    view = world(
        *NODES,
        storage_class(),
        csi_driver(storageCapacity=True),
        pool("p", "5Gi", near={"matchLabels": {ZONE: "b"}}),
        pool("q", "4Gi", near={}),
        claim("there-e", volume="v"),
        pod("there", node="n1", volumes=ephemeral("e", **spec)),
    )
    assert refused(view, ask(view, next_of(view, "there"))) == {"n1": [FULL]}


@pytest.mark.parametrize("name", [None, "", "now", "unknown"])
def test_the_next_pods_ephemeral_volume_is_unforeseeable_unless_it_waits_for_the_pod(
    name: str | None,
) -> None:
    view = world(
        *NODES,
        storage_class("now", mode="Immediate"),
        pod("there", node="n1", volumes=ephemeral("e", storageClassName=name)),
        pod("plain", node="n1", volumes=[{"name": "e", "ephemeral": {}}]),
    )
    for asked in (next_of(view, "there"), next_of(view, "plain")):
        verdict = ask(view, asked)
        assert isinstance(verdict, Unforeseeable)
        assert asked.name in verdict.reason


@pytest.mark.parametrize(
    "objects",
    [
        [claim("c", size="much"), STATIC],
        [claim("c"), STATIC, volume("v", size="much")],
        [claim("c", selector={"matchLabels": {"no key!": "x"}}), STATIC],
        [claim("c"), storage_class(), csi_driver(storageCapacity=True), pool("p", "much", near={})],
    ],
)
def test_malformed_storage_is_named(objects: list[Object]) -> None:
    view = world(*NODES, *objects, pod("asking", volumes=claimed("c")))
    verdict = ask(view)
    assert isinstance(verdict, Unforeseeable)
    assert "'much'" in verdict.reason or "'no key!'" in verdict.reason
