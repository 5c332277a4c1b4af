"""Any annotation: no entry is lost, the size stays bounded, equal entries have equal text."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reberth.memory.notes import Note, Notes, add_note, render_notes, sweep_notes
from reberth.values.refusal import Refused
from tests.support.memory.notes import added, annotation, foreign, moves, note, readable
from tests.support.memory.objects import NOW

lives = st.integers(1, 7200).map(float)
ids = st.sampled_from([f"m{n}" for n in range(40)])
ours = st.builds(lambda move, at, life: note(move, at=NOW + at, life=life), ids, st.integers(0, 3600), lives)
junk = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
found = st.lists(
    st.one_of(
        junk,
        st.builds(
            lambda uid, at: foreign(uid, at=NOW + at), st.text("ab", max_size=2), st.integers(-9999, 9999)
        ),
        ours.map(lambda one: json.loads(one.text)),
    ),
    max_size=8,
)


@given(entries=found, members=st.dictionaries(st.text("xyz", min_size=1, max_size=2), junk, max_size=2))
def test_nothing_is_lost_by_reading_and_writing(entries: list[Any], members: dict[str, Any]) -> None:
    rendered = render_notes(readable(annotation(*entries, **members)))
    written = json.loads(rendered) if rendered else {"preferAvoidPods": []}

    as_text = [json.dumps(entry, sort_keys=True) for entry in written.pop("preferAvoidPods")]
    assert sorted(as_text) == sorted(json.dumps(entry, sort_keys=True) for entry in entries)
    assert written == members
    assert render_notes(readable(rendered)) == rendered


@given(entries=found, new=st.lists(ours, max_size=40), open_moves=st.sets(ids))
def test_adding_is_bounded_and_idempotent_and_loses_nothing_that_must_stay(
    entries: list[Any], new: list[Note], open_moves: set[str]
) -> None:
    notes = start = readable(annotation(*entries))
    for one in new:
        after = add_note(notes, one, now=NOW, open_moves=open_moves, most=10)
        if isinstance(after, Refused):
            assert len(open_moves & set(moves(notes))) >= 10
            continue
        assert add_note(after, one, now=NOW, open_moves=open_moves, most=10) == after
        assert open_moves & set(moves(sweep_notes(notes, now=NOW))) <= set(moves(after))
        assert (after.kept, after.foreign, after.members) == (start.kept, start.foreign, start.members)
        assert len(after.ours) <= max(10, len(start.ours))
        notes = after


@given(new=st.lists(ours, max_size=10, unique_by=lambda one: one.mark and one.mark.id), data=st.data())
def test_the_same_entries_have_the_same_text(new: list[Note], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(new))

    assert render_notes(added(Notes(), *new)) == render_notes(added(Notes(), *shuffled))
