"""Notes on a node: read, matched, added, bounded, removed, written."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.pods.identity import Signature
from reberth.memory.notes import (
    MOST_NOTES,
    NOTE_LOST,
    NOTE_UNREADABLE,
    NOTES_FULL,
    POOR_SERVICE_LIFE,
    Note,
    NoteIndex,
    Notes,
    add_note,
    compose_note,
    find_noted_controller,
    matches,
    next_expiry,
    read_notes,
    remove_move,
    render_notes,
    renew_note,
    sweep_notes,
)
from reberth.records import OpenMove, WorkloadIdentity
from reberth.values.timestamp import write_time
from tests.support.memory.notes import added, annotation, foreign, moves, note, readable
from tests.support.memory.objects import DEPLOYMENT, HOUR, MINUTE, NOW, REPLICA_SET, WEB, move
from tests.support.repository import DOCS

DOCUMENT = DOCS / "memory.md"
NEXT_SET = WorkloadIdentity("apps/v1", "ReplicaSet", "web-77aa", "uid-next-rs")
NEXT_WEB = Signature("shop", NEXT_SET, DEPLOYMENT)
UNMIRRORED = WorkloadIdentity("apps/v1", "Deployment", "web")


def test_a_note_has_the_form_that_kubernetes_and_the_contract_ask_for() -> None:
    text = render_notes(added(Notes(), note(for_service=True, strict=True)))

    assert json.loads(text or "") == {
        "preferAvoidPods": [
            {
                "podSignature": {
                    "podController": {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": "web-5d4f",
                        "uid": "uid-rs",
                        "controller": True,
                    }
                },
                "evictionTime": "2026-11-18T12:00:00Z",
                "reason": "rebalance",
                "reberth": {
                    "id": "m1",
                    "namespace": "shop",
                    "expiresAt": "2026-11-18T13:00:00Z",
                    "policy": "balance",
                    "strict": True,
                    "root": {
                        "apiVersion": "apps/v1",
                        "kind": "Deployment",
                        "name": "web",
                        "uid": "uid-deployment",
                    },
                },
            }
        ]
    }


def test_the_documented_note_is_read_and_matches_its_pods() -> None:
    _, _, rest = DOCUMENT.read_text().partition("```json\n")
    (noted,) = readable(rest.partition("```")[0]).ours
    mark = noted.mark

    assert mark is not None
    assert mark.root is not None
    controller = WorkloadIdentity("apps/v1", "ReplicaSet", "web-6d5f9c7b9", noted.controller_uid)
    rolled_out = WorkloadIdentity("apps/v1", "ReplicaSet", "web-77aa", "another")
    assert matches(noted, Signature("default", controller, mark.root))
    assert matches(noted, Signature("default", rolled_out, UNMIRRORED))
    assert noted.expires_at - noted.evicted_at == HOUR


def test_only_a_strict_note_of_ours_is_strict() -> None:
    (entry,) = readable(annotation(foreign())).foreign

    assert [one.strict for one in (note(strict=True), note(), entry)] == [True, False, False]


def test_a_note_for_the_template_has_no_root_and_is_not_strict() -> None:
    mark = json.loads(note().text)["reberth"]

    assert mark.keys() == {"id", "namespace", "expiresAt", "policy"}


def test_a_root_known_by_name_alone_is_not_written() -> None:
    unmirrored = Signature("shop", REPLICA_SET, UNMIRRORED)
    made = compose_note(unmirrored, "m1", policy="p", reason="r", now=NOW, for_service=True)

    assert "root" not in json.loads(made.text)["reberth"]


@pytest.mark.parametrize("text", [None, ""])
def test_no_annotation_and_an_empty_one_hold_nothing(text: str | None) -> None:
    assert readable(text) == Notes()
    assert render_notes(Notes()) is None


@pytest.mark.parametrize("text", ["{}", '{"preferAvoidPods":null}', '{"preferAvoidPods":[]}'])
def test_an_empty_list_holds_nothing(text: str) -> None:
    assert readable(text) == Notes()


@pytest.mark.parametrize(
    "text",
    [
        "{nope",
        "[1,2]",
        "null",
        " ",
        '{"preferAvoidPods":{}}',
        '{"preferAvoidPods":[}',
        '{"preferAvoidPods":[]} x',
        '{"preferAvoidPods":"' + "\ud800" + '"}',
        '{"a":' * 100_000,
    ],
    ids=["broken", "list", "null", "blank", "object", "half", "trailing", "surrogate", "deep"],
)
def test_an_unreadable_annotation_is_refused_as_a_whole(text: str) -> None:
    assert read_notes(text) == NOTE_UNREADABLE


@pytest.mark.parametrize(
    "entry",
    [
        1,
        None,
        [],
        {},
        {"podSignature": {}},
        {"podSignature": {"podController": {"uid": 5}}, "evictionTime": write_time(NOW)},
        foreign(evictionTime=None),
        foreign(evictionTime="yesterday"),
        foreign(reberth={"id": "m1"}),
        foreign(reberth={"id": "m1", "namespace": "shop", "expiresAt": "soon"}),
        foreign(reberth=7),
    ],
)
def test_a_malformed_entry_is_kept_and_matches_no_pod(entry: Any) -> None:
    text = annotation(entry, foreign("uid-other"))
    notes = readable(text)

    assert notes.ours == ()
    assert len(notes.foreign) == 1
    assert json.loads(render_notes(notes) or "") == json.loads(text)


def test_a_deeply_nested_entry_is_kept() -> None:
    text = '{"preferAvoidPods":[{"podSignature":' + "[" * 500 + "]" * 500 + "}]}"

    assert render_notes(readable(text)) == text


def test_foreign_entries_are_kept_byte_for_byte() -> None:
    controller = '{"podController":{"uid":"x","controller":true}}'
    strange = f'{{ "podSignature" : {controller}, "evictionTime":"2026-11-18T12:00:00.5Z", "n":1.50 }}'
    text = f'{{"other": {{ "a" : 1 }}, "preferAvoidPods": [ {strange} , "?" ]}}'

    rendered = render_notes(added(readable(text), note())) or ""

    assert strange in rendered
    assert '"?"' in rendered
    assert '"other":{ "a" : 1 }' in rendered


def test_fields_of_a_newer_version_in_our_entries_survive() -> None:
    newer = json.loads(note().text)
    newer["reberth"]["mood"] = "calm"

    rendered = render_notes(added(readable(annotation(newer)), note("m2"))) or ""

    assert json.loads(rendered)["preferAvoidPods"][0] == newer


@pytest.mark.parametrize(
    ("made", "pod", "expected"),
    [
        (note(), WEB, True),
        (note(), NEXT_WEB, False),
        (note(), Signature("shop", NEXT_SET, UNMIRRORED), False),
        (note(for_service=True), WEB, True),
        (note(for_service=True), NEXT_WEB, True),
        (note(for_service=True), Signature("shop", NEXT_SET, UNMIRRORED), True),
        (note(for_service=True), Signature("other", NEXT_SET, UNMIRRORED), False),
        (
            note(for_service=True),
            Signature("shop", NEXT_SET, WorkloadIdentity("apps/v1", "Deployment", "api")),
            False,
        ),
        (note(for_service=True), Signature("shop", NEXT_SET, NEXT_SET), False),
        (note(for_service=True), Signature("shop", REPLICA_SET, REPLICA_SET), True),
        (
            note(for_service=True),
            Signature("shop", NEXT_SET, WorkloadIdentity("apps/v1", "Deployment", "web", "uid-born-again")),
            False,
        ),
    ],
)
def test_a_note_matches_its_controller_or_every_generation_of_its_root(
    made: Note, pod: Signature, *, expected: bool
) -> None:
    index = NoteIndex()
    index.put("n1", Notes(ours=(made,)))

    assert matches(made, pod) == expected
    assert index.find(pod, NOW).notes == ({"n1": (made,)} if expected else {})


def test_a_foreign_entry_matches_by_uid() -> None:
    entry, other, nobody = readable(annotation(foreign(), foreign("uid-other"), foreign(""))).foreign

    assert matches(entry, WEB)
    assert not matches(other, WEB)
    assert not matches(nobody, Signature("shop", WorkloadIdentity(), WorkloadIdentity()))


@pytest.mark.parametrize(
    ("since", "holds"), [(0.0, True), (HOUR - 1, True), (HOUR, False), (-HOUR + 1, True), (-HOUR, False)]
)
def test_a_foreign_entry_holds_for_an_hour(since: float, *, holds: bool) -> None:
    (entry,) = readable(annotation(foreign())).foreign

    assert entry.holds(NOW + since) == holds


@pytest.mark.parametrize(
    ("fields", "life"), [({}, HOUR), ({"life": POOR_SERVICE_LIFE}, 24 * HOUR), ({"life": MINUTE}, MINUTE)]
)
def test_a_note_is_ignored_from_its_expiry_on(fields: dict[str, float], life: float) -> None:
    made = note(**fields)
    index = NoteIndex()
    index.put("n1", Notes(ours=(made,)))

    assert made.holds(NOW + life - 0.001)
    assert not made.holds(NOW + life)
    assert index.find(WEB, NOW + life - 0.001).notes == {"n1": (made,)}
    assert index.find(WEB, NOW + life).notes == {}


def test_the_next_expiry_is_that_of_any_note_that_has_not_expired() -> None:
    notes = added(
        readable(annotation(foreign(at=NOW - HOUR / 2))), note("m1", life=MINUTE), note("m2", life=2 * MINUTE)
    )

    assert next_expiry(notes, NOW) == NOW + MINUTE
    assert next_expiry(notes, NOW + MINUTE) == NOW + 2 * MINUTE
    assert next_expiry(notes, NOW + 2 * MINUTE) == NOW + HOUR / 2
    assert next_expiry(notes, NOW + HOUR) is None


def test_a_move_is_noted_once() -> None:
    once = added(Notes(), note())

    assert add_note(once, note(at=NOW + 5), now=NOW + 5, open_moves=()) == once


def test_removing_a_move_leaves_the_others() -> None:
    notes = added(readable(annotation(foreign())), note("m1"), note("m2"))

    left = remove_move(notes, move("m1"), "shop")

    assert moves(left) == ["m2"]
    assert left.foreign == notes.foreign
    assert remove_move(left, move("m1"), "shop") == left


@pytest.mark.parametrize(
    ("forged", "namespace"), [(move("m1"), "tenant"), (move("m1", controller_uid="uid-other"), "shop")]
)
def test_a_move_with_the_id_of_another_one_leaves_its_note(forged: OpenMove, namespace: str) -> None:
    notes = added(Notes(), note("m1"))
    assert remove_move(notes, forged, namespace) == notes
    assert renew_note(notes, forged, namespace, now=NOW) is NOTE_LOST


def test_the_last_removal_leaves_nothing_to_write() -> None:
    assert render_notes(remove_move(added(Notes(), note()), move("m1"), "shop")) is None


def test_expired_notes_of_ours_go_and_foreign_ones_stay() -> None:
    notes = added(readable(annotation(foreign(at=NOW - 9 * HOUR))), note("m1", life=MINUTE), note("m2"))

    left = sweep_notes(notes, now=NOW + MINUTE)

    assert moves(left) == ["m2"]
    assert left.foreign == notes.foreign
    assert moves(sweep_notes(notes, now=NOW, orphans=["m2", "m3"])) == ["m1"]


def test_the_controller_of_a_note_is_the_one_that_its_entry_names() -> None:
    (written,) = added(Notes(), note()).ours
    found = find_noted_controller(written)
    assert (found.kind, found.name, found.uid, found.controller) == (
        "ReplicaSet",
        WEB.controller.name,
        WEB.controller.uid,
        True,
    )


def full_node(**fields: Any) -> Notes:
    return added(Notes(), *(note(f"m{n:02}", at=NOW + n, **fields) for n in range(MOST_NOTES)), now=NOW)


def test_a_full_node_loses_its_oldest_note_that_no_open_move_holds() -> None:
    notes = added(full_node(), note("new", at=NOW + 99), now=NOW + 99, open_moves=("m00", "m01", "m03"))

    assert len(notes.ours) == MOST_NOTES == 32
    assert "m02" not in moves(notes)
    assert {"m00", "m01", "m03", "new"} <= set(moves(notes))


def test_expired_notes_go_before_living_ones_even_if_their_moves_are_open() -> None:
    notes = added(full_node(), note("brief", at=NOW, life=MINUTE), now=NOW, open_moves=())
    later = NOW + MINUTE

    after = added(notes, note("new", at=later), now=later, open_moves=("brief",))

    assert "brief" not in moves(after)
    assert "m01" in moves(after)


def test_open_moves_on_a_full_node_are_not_pushed_out() -> None:
    everything = tuple(f"m{n:02}" for n in range(MOST_NOTES))

    assert add_note(full_node(), note("new"), now=NOW, open_moves=everything) == NOTES_FULL


def test_foreign_entries_do_not_count() -> None:
    crowd = readable(annotation(*(foreign(f"uid-{n}") for n in range(100))))

    notes = added(crowd, *(note(f"m{n}") for n in range(MOST_NOTES)))

    assert len(notes.ours) == MOST_NOTES
    assert len(notes.kept) == len(notes.foreign) == 100


def test_adding_a_note_to_an_overfull_node_restores_the_bound() -> None:
    crowd = full_node()
    crowd = msgspec.structs.replace(crowd, ours=crowd.ours + added(Notes(), note("x"), note("y")).ours)

    assert len(added(crowd, note("new")).ours) == MOST_NOTES


def test_the_index_drops_notes_that_a_node_no_longer_holds() -> None:
    index = NoteIndex()
    index.put("n1", added(Notes(), note(for_service=True)))
    index.put("n2", added(Notes(), note("m2")))
    index.put("n1", Notes())
    index.drop("unknown")

    assert index.find(WEB, NOW).notes.keys() == {"n2"}
    index.drop("n2")
    assert index.find(WEB, NOW).notes == {}
    assert index._held == index._notes == {}


def test_the_index_knows_whether_any_note_is_strict() -> None:
    index = NoteIndex()
    index.put("n1", added(Notes(), note()))
    assert not index.has_strict
    index.put("n1", added(Notes(), note(strict=True)))
    index.put("n2", added(Notes(), note("m2", strict=True)))
    index.drop("n1")
    assert index.has_strict
    index.put("n2", added(Notes(), note("m2")))
    assert not index.has_strict


@given(st.lists(st.sampled_from([-HOUR, -1.0, 0.0, 1.0, MINUTE, HOUR]), min_size=2, max_size=6))
def test_earlier_lookups_do_not_change_later_ones(asked: list[float]) -> None:
    """A note that ends, and one of a stranger whose clock is ahead."""
    held = Notes(ours=(note(life=MINUTE),), foreign=readable(annotation(foreign(at=NOW + HOUR))).foreign)
    index = NoteIndex()
    index.put("n1", held)

    for since in asked:
        fresh = NoteIndex()
        fresh.put("n1", held)
        assert index.find(WEB, NOW + since).notes == fresh.find(WEB, NOW + since).notes


def test_a_note_that_comes_or_goes_is_found_at_once() -> None:
    index = NoteIndex()
    assert index.find(WEB, NOW).notes == {}
    index.put("n1", added(Notes(), note()))
    assert index.find(WEB, NOW).notes.keys() == {"n1"}
    index.drop("n1")
    assert index.find(WEB, NOW).notes == {}


def test_many_workloads_are_found_one_after_the_other() -> None:
    index = NoteIndex()
    index.put("n1", added(Notes(), note()))
    for number in range(200):
        other = WorkloadIdentity("apps/v1", "ReplicaSet", f"other-{number}", f"uid-{number}")
        assert index.find(Signature("shop", other, other), NOW).notes == {}
        assert index.find(WEB, NOW).notes.keys() == {"n1"}
    assert len(index._found) <= 64
