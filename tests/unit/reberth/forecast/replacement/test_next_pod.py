"""The next pod: the template's, through admission; shared with its siblings wherever nothing differs."""

import gc
import weakref
from dataclasses import replace

import pytest

from reberth.forecast.replacement import next_pod
from reberth.forecast.replacement.origin import Origin
from reberth.forecast.replacement.refusals import CANNOT_FORECAST
from reberth.values.refusal import Refused
from tests.support.builders import Object, container, pod
from tests.support.forecast.replicas import (
    NAMESPACE,
    look,
    made_of,
    next_of,
    refused_of,
    replica,
    replica_owner,
    requests_in,
)


def test_a_pod_that_nothing_changed_is_replaced_by_one_of_its_own_template() -> None:
    snapshot = look(replica_owner(cpu="1"), replica(cpu="1"))
    (row,) = snapshot.pods.rows
    found = next_pod.find_next(snapshot, row)
    assert not isinstance(found, Refused)
    assert found.template is row.template
    assert (found.claims, found.learnt) == (None, ())


@pytest.mark.parametrize(("asked", "resized"), [("2", "1"), ("1", "2")])
def test_after_an_in_place_resize_the_replacement_asks_for_what_the_template_has(
    asked: str, resized: str
) -> None:
    found = made_of(replica_owner(cpu=asked), replica(cpu=resized, generation=2))
    assert requests_in(found) == {"cpu": asked}


def test_resized_pods_share_the_template_of_one_that_is_as_it_was_created() -> None:
    snapshot = look(
        replica_owner(cpu="2"), replica("web-1", cpu="1", generation=2), replica("web-2", cpu="2")
    )
    changed, whole = snapshot.pods.rows
    found = next_pod.find_next(snapshot, changed)
    assert not isinstance(found, Refused)
    assert found.template is whole.template


def test_an_answer_is_found_once_and_does_not_keep_its_template_alive() -> None:
    snapshot = look(replica_owner(cpu="2"), replica(cpu="1", generation=2))
    (row,) = snapshot.pods.rows
    first, second = next_pod.find_next(snapshot, row), next_pod.find_next(snapshot, row)
    assert not isinstance(first, Refused)
    assert not isinstance(second, Refused)
    assert first.template is second.template
    kept = weakref.ref(row.template)
    del row, snapshot
    gc.collect()
    assert kept() is None


def test_answers_of_former_revisions_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = look(replica_owner(cpu="2"), replica(cpu="1", generation=2))
    (row,) = snapshot.pods.rows
    origin, made = next_pod.find_origin(snapshot, row), []
    assert isinstance(origin, Origin)
    for revision in ("1", "2", "3", "2"):
        monkeypatch.setattr(next_pod, "find_origin", lambda *_, kept=revision: origin._replace(revision=kept))
        found = next_pod.find_next(replace(snapshot), row)
        assert not isinstance(found, Refused)
        made.append(weakref.ref(found.template))
    del found
    gc.collect()
    assert [each() is not None for each in made] == [False, True, True, True]
    assert made[1]() is made[3]()


def test_an_answer_is_found_anew_when_a_limit_range_comes() -> None:
    objects = (replica_owner(), replica())
    snapshot = look(*objects)
    before = next_pod.find_next(snapshot, snapshot.pods.rows[0])
    ranged = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": NAMESPACE},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "300m"}}]},
    }
    after = made_of(*objects, ranged)
    assert not isinstance(before, Refused)
    assert requests_in(before) == {}
    assert requests_in(after) == {"cpu": "300m"}


def test_objects_without_generations_and_templates_are_taken_as_they_are() -> None:
    """They were written by hand."""
    owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    snapshot = look(pod("web-1", namespace=NAMESPACE, node="n", cpu="1", owned_by=owned))
    (row,) = snapshot.pods.rows
    found = next_pod.find_next(snapshot, row)
    assert not isinstance(found, Refused)
    assert found.template is row.template


def test_without_its_owner_nothing_is_known_of_a_pod() -> None:
    refused = refused_of(replica())
    assert refused == Refused(
        CANNOT_FORECAST, "ReplicaSet web is not in the cache, so its template is not known"
    )


def test_an_owner_that_wants_no_pods_keeps_no_template() -> None:
    owner = replica_owner(owner_spec={"replicas": 0}, status={"replicas": 0})
    assert refused_of(owner, replica()).reason == "ReplicaSet web has no template: it wants no pods"


def test_a_template_that_is_too_large_is_not_kept() -> None:
    many = [container(f"c-{number}", image="x" * 200) for number in range(100)]
    refused = refused_of(replica_owner(containers=many), replica(containers=many))
    assert refused.reason == "the template of ReplicaSet web is too large to be kept"


def test_a_template_with_scheduling_gates_makes_a_pod_that_waits() -> None:
    refused = refused_of(replica_owner(schedulingGates=[{"name": "example.com/wait"}]), replica())
    assert (refused.rule, refused.reason) == (
        CANNOT_FORECAST,
        "the replacement would wait for its scheduling gates: example.com/wait",
    )


def clone(name: str, cpu: str, generation: int, *, uid: str = "c") -> Object:
    made = replica(name, cpu=cpu, generation=generation)
    reference = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web", "uid": uid}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


def test_of_a_kind_that_is_not_read_a_pod_as_created_shows_the_next_one() -> None:
    assert requests_in(made_of(clone("web-1", "1", 2), clone("web-2", "2", 1))) == {"cpu": "2"}


def test_of_a_kind_that_is_not_read_pods_updated_in_place_are_copied() -> None:
    pods = (clone("web-1", "1", 2), clone("web-2", "1", 3), clone("other-1", "2", 2, uid="another"))
    assert requests_in(made_of(*pods)) == {"cpu": "1"}


def test_of_a_kind_that_is_not_read_pods_of_several_sizes_show_nothing() -> None:
    assert refused_of(clone("web-1", "1", 2), clone("web-2", "2", 2)).reason == (
        "the template of CloneSet web is not read, none of its pods is as it was created, "
        "and they differ in their requests"
    )


def test_an_amount_that_cannot_be_read_is_a_reason() -> None:
    found = next_of(replica_owner(cpu="much"), replica(cpu="1"))
    assert isinstance(found, Refused)
    assert found.reason.startswith("an amount cannot be read: invalid quantity 'much'")


def test_host_ports_and_requests_are_filled_in_as_for_a_pod() -> None:
    limited = container("main", ports=[{"containerPort": 80}])
    limited["resources"] = {"limits": {"cpu": "1"}}
    (port,) = (
        made_of(replica_owner(containers=[limited], hostNetwork=True), replica()).template.spec.containers
        or ()
    )[0].ports or ()
    assert port.host_port == 80
