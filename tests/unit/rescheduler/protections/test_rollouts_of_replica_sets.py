"""Rollouts of Argo and of other owners of ReplicaSets: their own state tells, else ReplicaSets or pods."""

from typing import Any

import pytest

from reberth.values.refusal import Refused
from rescheduler.protections import ProtectionSettings, find_automation, refuse_protected
from tests.support.builders import meta, owner
from tests.support.rescheduler.guardrails import Object, context_of, place_of, replica, workload

ARGO = owner("Rollout", "web", api_version="argoproj.io/v1alpha1")
OTHER = owner("Fleet", "web", api_version="example.com/v1")
CLONES = owner("CloneSet", "web", api_version="apps.kruise.io/v1alpha1")
DEPLOYMENT = owner("Deployment", "web")
DIVIDED = "has pods in more than one ReplicaSet"
CANARY = {"currentPodHash": "new", "stableRS": "old", "observedGeneration": "1"}
ROLLS = "CloneSet web has a rollout in progress"
STABLE = {"currentPodHash": "old", "stableRS": "old", "observedGeneration": "1"}


def replica_sets(above: Object | None, old: int = 2, new: int = 1, **status: Any) -> list[Object]:
    """Two ReplicaSets with so many replicas, and two pods of the old one."""
    own = {"ownerReferences": [above]} if above else {}
    sets = [
        workload(
            "ReplicaSet", name, spec={"replicas": count}, status=status if name == "web-new" else {}, **own
        )
        for name, count in (("web-old", old), ("web-new", new))
    ]
    return [*(replica(name, owned_by=owner("ReplicaSet", "web-old")) for name in ("web-1", "web-2")), *sets]


def argo(status: Object, **fields: Any) -> Object:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": meta(
            "web", "default", uid=ARGO["uid"], generation=1, annotations=fields.pop("annotations", None)
        ),
        "spec": {"replicas": 3, **fields},
        "status": status,
    }


def ask(*objects: Object, **settings: Any) -> Refused | None:
    context = context_of(*objects, protections=ProtectionSettings(**settings))
    return refuse_protected(place_of(context), context)


def reason(*objects: Object, **settings: Any) -> str | None:
    refused = ask(*objects, **settings)
    assert refused is None or refused.rule == "Rollout"
    return refused.reason if refused else None


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({**CANARY, "phase": "Paused", "currentStepIndex": 2}, " (Paused, step 2)"),
        ({**CANARY, "phase": "Progressing"}, " (Progressing)"),
        ({**CANARY, "phase": "Degraded", "currentStepIndex": 0}, " (Degraded, step 0)"),
        ({**STABLE, "observedGeneration": "0"}, ""),
        (CANARY, ""),
    ],
)
@pytest.mark.parametrize("new", [0, 1])
def test_an_argo_rollout_between_two_revisions_is_kept(status: Object, said: str, new: int) -> None:
    found = reason(*replica_sets(ARGO, new=new), argo(status))
    assert found == f"Rollout web has a rollout in progress{said}"


@pytest.mark.parametrize(
    "status",
    [
        STABLE,
        {**STABLE, "phase": "Progressing"},
        {**STABLE, "observedGeneration": "7d5f9c"},
        {**STABLE, "currentStepIndex": 5},
    ],
)
@pytest.mark.parametrize("new", [0, 1])
def test_a_finished_argo_rollout_is_moved_whatever_is_left_of_the_old_one(status: Object, new: int) -> None:
    assert reason(*replica_sets(ARGO, new=new), argo(status)) is None


@pytest.mark.parametrize(
    "status",
    [
        {**CANARY, "abort": True},
        {"observedGeneration": "1", "currentPodHash": "new"},
        {"observedGeneration": "1", "stableRS": "old"},
        {},
    ],
)
def test_without_the_hashes_or_after_an_abort_the_replica_sets_tell(status: Object) -> None:
    assert reason(*replica_sets(ARGO), argo(status)) == "Rollout web has a rollout in progress"
    assert reason(*replica_sets(ARGO, new=0), argo(status)) is None


@pytest.mark.parametrize("above", [ARGO, OTHER, DEPLOYMENT])
def test_an_owner_that_is_not_cached_is_kept_while_two_of_its_replica_sets_have_pods(above: Object) -> None:
    kind = above["kind"]
    assert reason(*replica_sets(above)) == f"{kind} web {DIVIDED}"
    assert reason(*replica_sets(above, new=0)) is None
    assert reason(*replica_sets(above, new=0, replicas=1)) == f"{kind} web {DIVIDED}"
    assert reason(*replica_sets(above), rollouts=False) is None


def test_an_argo_rollout_that_was_written_by_hand_is_judged_by_its_replica_sets() -> None:
    written = argo(CANARY)
    del written["metadata"]["generation"]
    assert reason(*replica_sets(ARGO), written) == f"Rollout web {DIVIDED}"
    assert reason(*replica_sets(ARGO, new=0), written) is None


def test_the_status_of_a_deployment_takes_precedence() -> None:
    settled = workload("Deployment", spec={"replicas": 3}, status={"replicas": 3, "updatedReplicas": 3})
    assert reason(*replica_sets(DEPLOYMENT), settled) is None


def test_replica_sets_without_an_owner_are_no_rollout() -> None:
    assert reason(*replica_sets(None)) is None


def test_replica_sets_of_several_owners_are_no_rollout() -> None:
    one, other = (
        replica_sets(ARGO),
        workload("ReplicaSet", "api", spec={"replicas": 3}, ownerReferences=[OTHER]),
    )
    assert reason(*one[:-1], other) is None


def test_a_paused_argo_rollout_is_kept() -> None:
    paused = argo(STABLE, paused=True)
    assert ask(*replica_sets(ARGO), paused) == Refused("RolloutPaused", "Rollout web is paused")
    assert ask(*replica_sets(ARGO, new=0), paused, rollouts=False) is None


def test_the_annotation_of_an_argo_rollout_counts() -> None:
    off = argo(STABLE, annotations={"reberth.dev/automation": "off"})
    context = context_of(*replica_sets(ARGO), off)
    found = find_automation(context.template_of(place_of(context)), context)
    assert found is not None
    assert (found.value, found.where) == ("off", "workload")


@pytest.mark.parametrize(
    ("revisions", "said"),
    [
        (("a", "a"), None),
        (("a", "b"), "CloneSet web has pods of more than one revision"),
        ((None, "b"), None),
    ],
)
def test_a_kind_of_another_project_is_kept_while_its_pods_have_several_revisions(
    revisions: tuple[str | None, ...], said: str | None
) -> None:
    pods = [
        replica(f"web-{number}", owned_by=CLONES, labels={"controller-revision-hash": each} if each else {})
        for number, each in enumerate(revisions, start=1)
    ]
    for named in (("apps.kruise.io/CloneSet",), ()):
        assert reason(*pods, replacing_kinds=named) == said, "also where its objects are not read"
        assert reason(*pods, replacing_kinds=named, rollouts=False) is None


@pytest.mark.parametrize(
    ("generation", "status", "said"),
    [
        (2, {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "a"}, None),
        (2, {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b"}, ROLLS),
        (2, {"observedGeneration": 1, "currentRevision": "a", "updateRevision": "a"}, ROLLS),
        (2, None, ROLLS),
        (2, "odd", ROLLS),
        (None, {"currentRevision": "a", "updateRevision": "b"}, None),
    ],
)
def test_a_known_kind_of_another_project_is_kept_during_its_rollout(
    generation: int | None, status: Any, said: str | None
) -> None:
    """Before a pod has the new revision already, as for one that changes only pods that are deleted."""
    clones = {
        "apiVersion": CLONES["apiVersion"],
        "kind": "CloneSet",
        "metadata": meta(
            "web", "default", uid=CLONES["uid"], **({"generation": generation} if generation else {})
        ),
        "spec": {"template": {"spec": {"containers": [{"name": "main"}]}}},
        "status": status,
    }
    pods = [replica(f"web-{number}", owned_by=CLONES) for number in (1, 2)]
    assert reason(*pods, clones) == said
    assert reason(*pods, clones, rollouts=False) is None


def test_bare_pods_beside_a_rollout_are_of_no_rollout() -> None:
    context = context_of(replica("alone", owned_by=None), *replica_sets(ARGO))
    refused = refuse_protected(place_of(context, "alone"), context)
    assert refused is not None
    assert refused.rule == "BarePod"
