from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.work_index import WorkIndex
from federation.objects.cache import NotifyingCache, OnChange
from federation.objects.names import Key, binding_of
from federation.objects.resources import BINDINGS, TEMPLATES, WORKS
from federation.objects.template import ResourceTemplate, read_template
from federation.propagation.works import write_work
from reberth.client.events import EventRecorder
from reberth.cluster.cache import ADDED, BOOKMARK, DELETED, MODIFIED
from reberth.cluster.kinds import NODE
from reberth.records import Node, ObjectMeta
from tests.support.federation.objects import NOW, WEB, claimed_binding, template, work

KIND = TEMPLATES[0].kind
KEY = Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", "web-deployment")


def one(name: str, version: int, **more: Any) -> ResourceTemplate:
    return ResourceTemplate(ObjectMeta(name, "default", uid=name, resource_version=str(version), **more))


def cache() -> tuple[NotifyingCache, list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []
    made = NotifyingCache(
        lambda _, record: heard.append((record.metadata.name, record.metadata.resource_version)),
        version=(1, 36),
    )
    return made, heard


def test_each_change_is_notified_once() -> None:
    made, heard = cache()
    made.apply(KIND, ADDED, one("a", 1))
    made.apply(KIND, ADDED, one("a", 1))
    made.apply(KIND, MODIFIED, one("a", 2))
    made.apply(KIND, DELETED, one("a", 3))
    assert heard == [("a", "1"), ("a", "2"), ("a", "3")]


def note_apart() -> tuple[NotifyingCache, list[str], list[str]]:
    """Make a cache, and lists of the versions that it tells as changes and as mere reports."""
    changes: list[str] = []
    reports: list[str] = []

    def note(into: list[str]) -> OnChange:
        return lambda _, record: into.append(record.metadata.resource_version)

    return NotifyingCache(note(changes), on_status=note(reports), version=(1, 36)), changes, reports


def whole(version: int, *, generation: int = 0, spec: Any = None, status: Any = None) -> ResourceTemplate:
    meta = {"name": "a", "namespace": "default", "uid": "a", "generation": generation}
    body = {"metadata": {**meta, "resourceVersion": str(version)}, "spec": spec, "status": status}
    return read_template(msgspec.json.encode(body))


def test_a_template_of_which_only_the_status_is_new_wants_the_same() -> None:
    made, changes, reports = note_apart()
    made.apply(KIND, ADDED, whole(1))
    made.apply(KIND, MODIFIED, whole(2, status="ready"))
    made.apply(KIND, MODIFIED, whole(3, status="ready", spec="other"))
    assert (changes, reports) == (["1", "3"], ["2"])


def test_a_generation_that_stays_the_same_says_nothing_of_a_template() -> None:
    """The API server gives a PriorityClass the generation 1 for ever."""
    made, changes, reports = note_apart()
    made.apply(KIND, ADDED, whole(1, generation=1))
    made.apply(KIND, MODIFIED, whole(2, generation=1, spec="other"))
    assert (changes, reports) == (["1", "2"], [])


def test_an_object_of_ours_wants_the_same_while_its_generation_stays() -> None:
    made, changes, reports = note_apart()
    for version, generation in enumerate((1, 1, 2, 0, 0), start=1):
        one = claimed_binding()
        meta = replace(one.metadata, uid="u", resource_version=str(version), generation=generation)
        made.apply(BINDINGS.kind, ADDED if version == 1 else MODIFIED, replace(one, metadata=meta))
    assert (changes, reports) == (["1", "3", "4", "5"], ["2"])


@pytest.mark.parametrize(
    "change", [{"labels": {"k": "v"}}, {"annotations": {"k": "v"}}, {"deletion_timestamp": "now"}]
)
def test_marks_and_a_deletion_are_more_than_a_report(change: dict[str, Any]) -> None:
    made, changes, reports = note_apart()
    made.apply(KIND, ADDED, one("a", 1))
    made.apply(KIND, MODIFIED, one("a", 2, **change))
    made.apply(KIND, DELETED, one("a", 3, **change))
    assert (changes, reports) == (["1", "2", "3"], [])


def test_a_new_list_notifies_only_about_differences() -> None:
    made, heard = cache()
    made.replace(KIND, [one("a", 1), one("b", 2), one("c", 3)], "3")
    assert sorted(heard) == [("a", "1"), ("b", "2"), ("c", "3")]
    heard.clear()
    made.replace(KIND, [one("b", 2), one("c", 5), one("d", 6)], "6")
    assert sorted(heard) == [("a", "1"), ("c", "3"), ("c", "5"), ("d", "6")]


def test_every_annotation_is_kept() -> None:
    made, _ = cache()
    made.apply(KIND, ADDED, one("a", 1, annotations={"somebody.example/note": "x"}))
    kept = made.of(KIND).named("default", "a")
    assert kept is not None
    assert kept.metadata.annotations == {"somebody.example/note": "x"}


def test_nodes_are_cached_without_notifications() -> None:
    made, heard = cache()
    made.apply(NODE, ADDED, Node(ObjectMeta("n", uid="n", resource_version="1")))
    made.apply(NODE, BOOKMARK, Node(ObjectMeta(resource_version="2")))
    assert not heard
    assert len(made.of(NODE)) == 1


def test_works_of_a_binding_are_found_by_their_annotations() -> None:
    made = NotifyingCache(lambda _, record: index.on_change(WORKS, record), version=(1, 36))
    index = WorkIndex(Hub(cast("ObjectApi", None), made, cast("EventRecorder", None), lambda: NOW))
    held = work(write_work(WEB, claimed_binding(), template(), "m1", 1))
    assert index.of(KEY) == {}
    made.apply(WORKS.kind, ADDED, held)
    assert index.of(KEY) == {"m1": held}
    made.replace(WORKS.kind, [], "10")
    assert index.of(KEY) == {}


def test_a_work_that_names_no_binding_belongs_to_none() -> None:
    assert binding_of(ObjectMeta("w"), "v") is None
    whole = {"clusterresourcebinding.karmada.io/name": "role"}
    assert binding_of(ObjectMeta("w", annotations=whole), "v") == Key(
        "v", "ClusterResourceBinding", "", "role"
    )
