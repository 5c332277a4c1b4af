"""The workload that a pod belongs to, and the name of its eviction history."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.pods.identity import (
    BARE_POD,
    DAEMON_SET_POD,
    MIRROR_POD,
    Signature,
    find_signature,
    group_of,
    name_history,
)
from reberth.records import ObjectMeta, OwnerReference, WorkloadIdentity

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def reference(
    kind: str, name: str, uid: str, api_version: str = "apps/v1", *, controls: bool | None = True
) -> OwnerReference:
    return OwnerReference(api_version, kind, name, uid, controller=controls)


def identity(kind: str, name: str, uid: str = "", api_version: str = "apps/v1") -> WorkloadIdentity:
    return WorkloadIdentity(api_version, kind, name, uid)


def pod(*owners: OwnerReference, **fields: dict[str, str]) -> ObjectMeta:
    return ObjectMeta(name="p", namespace="shop", owner_references=owners, **fields)


def owned(*owners: OwnerReference) -> ObjectMeta:
    return ObjectMeta(name="any", namespace="shop", owner_references=owners)


SET = reference("ReplicaSet", "web-5d4f", "rs")
JOB = reference("Job", "nightly-1", "job", "batch/v1")
HASHED = {"pod-template-hash": "5d4f"}


@pytest.mark.parametrize(
    ("meta", "owners", "root"),
    [
        (pod(SET), {"rs": owned(reference("Deployment", "web", "d"))}, identity("Deployment", "web", "d")),
        (pod(SET), {"rs": owned(reference("Rollout", "web", "r"))}, identity("Rollout", "web", "r")),
        (pod(SET), {"rs": owned()}, identity("ReplicaSet", "web-5d4f", "rs")),
        (pod(SET, labels=HASHED), {"rs": owned()}, identity("ReplicaSet", "web-5d4f", "rs")),
        (pod(SET, labels=HASHED), {}, identity("Deployment", "web")),
        (pod(SET, labels={"pod-template-hash": "other"}), {}, identity("ReplicaSet", "web-5d4f", "rs")),
        (pod(SET, labels={"pod-template-hash": ""}), {}, identity("ReplicaSet", "web-5d4f", "rs")),
        (pod(SET), {}, identity("ReplicaSet", "web-5d4f", "rs")),
        (
            pod(reference("ReplicaSet", "-5d4f", "rs"), labels=HASHED),
            {},
            identity("ReplicaSet", "-5d4f", "rs"),
        ),
        (
            pod(JOB),
            {"job": owned(reference("CronJob", "nightly", "c", "batch/v1"))},
            identity("CronJob", "nightly", "c", "batch/v1"),
        ),
        (pod(JOB, labels=HASHED), {}, identity("Job", "nightly-1", "job", "batch/v1")),
        (
            pod(reference("Job", "x-5d4f", "job", "batch/v1"), labels=HASHED),
            {},
            identity("Job", "x-5d4f", "job", "batch/v1"),
        ),
        (
            pod(reference("StatefulSet", "db", "s")),
            {"s": owned(reference("Postgres", "db", "p", "sql/v1"))},
            identity("StatefulSet", "db", "s"),
        ),
    ],
)
def test_the_root_is_one_step_above_a_replica_set_or_job(
    meta: ObjectMeta, owners: dict[str, ObjectMeta], root: WorkloadIdentity
) -> None:
    signature = find_signature(meta, owners)

    assert isinstance(signature, Signature)
    assert signature.root == root
    assert signature.namespace == "shop"


def test_the_controller_is_the_one_owner_that_controls() -> None:
    signature = find_signature(
        pod(reference("Thing", "t", "u", controls=False), reference("Other", "o", "v", controls=None), SET),
        {},
    )

    assert isinstance(signature, Signature)
    assert signature.controller == identity("ReplicaSet", "web-5d4f", "rs")


@pytest.mark.parametrize(
    ("meta", "refused"),
    [
        (pod(), BARE_POD),
        (ObjectMeta(name="p"), BARE_POD),
        (pod(reference("Thing", "t", "u", controls=None)), BARE_POD),
        (pod(reference("DaemonSet", "log", "u")), DAEMON_SET_POD),
        (pod(reference("DaemonSet", "log", "u", "apps.kruise.io/v1alpha1")), DAEMON_SET_POD),
        (pod(reference("Node", "n1", "u", "v1")), MIRROR_POD),
        (pod(reference("Node", "n1", "u", "v1", controls=None)), MIRROR_POD),
        (pod(SET, annotations={"kubernetes.io/config.mirror": "hash"}), MIRROR_POD),
    ],
)
def test_pods_that_nothing_moves_have_no_signature(meta: ObjectMeta, refused: object) -> None:
    assert find_signature(meta, {}) == refused


def test_a_history_is_called_after_its_owner_and_a_digest() -> None:
    digest = hashlib.sha256(b"apps/Deployment/web").hexdigest()[:8]

    assert name_history(identity("Deployment", "web", "any")) == f"deployment-web-{digest}"


def test_a_long_name_is_cut() -> None:
    made = name_history(identity("Deployment", "x" * 250))

    assert made.startswith("deployment-" + "x" * (240 - len("deployment-")) + "-")
    assert len(made) == 240 + 1 + 8


def test_owners_of_different_groups_have_different_histories() -> None:
    here, there = (
        identity("StatefulSet", "db"),
        identity("StatefulSet", "db", api_version="apps.kruise.io/v1"),
    )

    assert name_history(here) != name_history(there)
    assert name_history(here) == name_history(identity("StatefulSet", "db", api_version="apps/v2"))


@pytest.mark.parametrize(("api_version", "group"), [("v1", ""), ("apps/v1", "apps"), ("a.b/v1alpha1", "a.b")])
def test_the_group_is_the_part_before_the_version(api_version: str, group: str) -> None:
    assert group_of(api_version) == group


names = st.text("abzAZ019.-_ü:", max_size=260).map(lambda name: name or "x")


@given(kind=st.text("abZ", min_size=1, max_size=63), name=names)
def test_every_history_has_a_name_that_kubernetes_takes(kind: str, name: str) -> None:
    made = name_history(identity(kind, name))

    assert SUBDOMAIN.fullmatch(made), made
    assert len(made) <= 240 + 1 + 8


@given(name=st.from_regex(SUBDOMAIN, fullmatch=True).filter(lambda name: len(name) < 200))
def test_a_name_that_kubernetes_takes_stays_as_it_is(name: str) -> None:
    assert name_history(identity("Deployment", name)).startswith(f"deployment-{name}-")


@given(first=names, second=names)
def test_two_names_never_share_a_history(first: str, second: str) -> None:
    same = name_history(identity("Deployment", first)) == name_history(identity("Deployment", second))

    assert same == (first == second)
