import gc
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.tables import NamespaceRows, Rows, Table, identify
from reberth.records import ObjectMeta, PartialObject


def thing(name: str, *, namespace: str = "ns", uid: str = "", version: int = 1) -> PartialObject:
    return PartialObject(ObjectMeta(name, namespace, uid or name, resource_version=str(version)))


def table_of(*things: PartialObject) -> Table[PartialObject]:
    table = Table(identify)
    for each in things:
        table.put(identify(each), each)
    return table


def names(rows: Rows[PartialObject]) -> list[tuple[str, str]]:
    return [(row.metadata.namespace, row.metadata.name) for row in rows]


@given(st.permutations([(namespace, name) for namespace in "ab-" for name in ("x", "y", "x-1")]))
def test_rows_are_sorted_for_any_insertion_order(order: list[tuple[str, str]]) -> None:
    table = table_of(*(thing(name, namespace=namespace, uid=namespace + name) for namespace, name in order))
    assert names(table.rows()) == sorted(order)


def test_rows_stay_sorted_when_some_come_later() -> None:
    table = table_of(thing("b"), thing("d"))
    table.rows()
    for name in ("a", "c", "e"):
        table.put(identify(thing(name)), thing(name))
    assert [name for _, name in names(table.rows())] == list("abcde")


changes = st.lists(
    st.tuples(
        st.booleans(), st.sampled_from("ab"), st.sampled_from("wxyz"), st.sampled_from("12345"), st.booleans()
    )
)


@given(changes)
def test_rows_are_those_of_a_table_that_was_never_looked_at(
    changes: list[tuple[bool, str, str, str, bool]],
) -> None:
    table, fresh = table_of(), table_of()
    for comes, namespace, name, uid, look in changes:
        each = thing(name, namespace=namespace, uid=uid)
        for changed in (table, fresh):
            if comes:
                changed.put(identify(each), each)
            else:
                changed.remove(uid)
        if look:
            table.rows()
    assert names(table.rows()) == names(fresh.rows()) == sorted(names(fresh.rows()))
    assert [len({row.metadata.namespace for row in part.rows}) for part in table.rows().parts] == [1] * len(
        {namespace for namespace, _ in names(fresh.rows())}
    )


def test_a_namespace_in_which_nothing_happens_keeps_its_part() -> None:
    table = table_of(thing("a"), thing("b", namespace="other"))
    before = table.rows().parts
    table.put(identify(thing("c")), thing("c"))
    after = table.rows().parts
    assert (after[0] is before[0], after[1] is before[1]) == (False, True)


def test_a_part_is_read_once() -> None:
    asked: list[int] = []

    def count(rows: tuple[PartialObject, ...]) -> int:
        asked.append(len(rows))
        return len(rows)

    (part,) = table_of(thing("a"), thing("b")).rows().parts
    assert (part.read(count), part.read(count), asked) == (2, 2, [2])


def test_rows_do_not_change_with_the_table() -> None:
    table = table_of(thing("a"))
    rows = table.rows()
    table.put(identify(thing("b")), thing("b"))
    table.remove("a")
    assert names(rows) == [("ns", "a")]
    assert names(table.rows()) == [("ns", "b")]


def test_rows_are_made_once_while_nothing_changes() -> None:
    table = table_of(thing("a"))
    assert table.rows() is table.rows()


def test_rows_find_by_uid_by_name_and_by_namespace() -> None:
    one, two, other = thing("a", uid="1"), thing("b", uid="2"), thing("a", namespace="other", uid="3")
    rows = table_of(two, other, one).rows()
    assert len(rows) == 3
    assert (rows.by_uid("1"), rows.by_uid("9")) == (one, None)
    assert (rows.named("other", "a"), rows.named("ns", "z"), rows.named("z", "a")) == (other, None, None)
    assert (list(rows.within("ns")), list(rows.within("z"))) == ([one, two], [])


def test_a_name_has_one_object() -> None:
    table = table_of(thing("a", uid="old"), thing("a", uid="new"))
    assert table.by_uid("old") is None
    assert len(table) == 1


def test_a_uid_has_one_name() -> None:
    table = table_of(thing("a", uid="u"), thing("b", uid="u"))
    assert table.named("ns", "a") is None
    assert names(table.rows()) == [("ns", "b")]


def test_an_object_may_take_the_name_and_another_the_uid_of_two_others() -> None:
    table = table_of(thing("a", uid="1"), thing("b", uid="2"), thing("c", uid="3"))
    table.rows()
    table.put(identify(thing("a", uid="2")), thing("a", uid="2"))
    assert names(table.rows()) == [("ns", "a"), ("ns", "c")]
    assert table.by_uid("1") is None


def test_removing_an_unknown_key_does_nothing() -> None:
    table = table_of(thing("a"))
    rows = table.rows()
    table.remove("b")
    assert table.rows() is rows


def test_a_namespace_goes_with_its_last_object() -> None:
    table = table_of(thing("a"), thing("a", namespace="z", uid="z"))
    table.remove("a")
    assert names(table.rows()) == [("z", "a")]


def test_a_table_becomes_another_at_once() -> None:
    table = table_of(thing("a"))
    table.rows()
    table.become(table_of(thing("c"), thing("b")))
    assert [name for _, name in names(table.rows())] == ["b", "c"]


def test_rows_are_found_by_their_namespace_and_by_uids_wherever_they_are() -> None:
    rows = table_of(thing("b"), thing("a"), thing("c", namespace="other", uid="u")).rows()
    assert [row.metadata.name for row in rows.within("ns")] == ["a", "b"]
    assert rows.within("nowhere") == ()
    assert (rows.named("ns", "b"), rows.named("other", "b"), rows.named("", "b")) == (rows.all[1], None, None)
    assert {rows.by_uid("u", near=near) for near in ("", "ns", "other")} == {rows.all[2]}
    assert rows.by_uid("gone", near="ns") is None


@given(changes, st.integers(0, 5))
def test_a_group_is_what_a_search_of_its_namespace_finds(
    changes: list[tuple[bool, str, str, str, bool]], begin: int
) -> None:
    """Objects move between groups with their version."""

    def group_of(each: PartialObject) -> str:
        return f"{each.metadata.namespace}/{int(each.metadata.resource_version) % 3}"

    table = Table(identify, group_of)
    groups = {}
    for number, (comes, namespace, name, uid, replaces) in enumerate(changes):
        if number == begin:
            groups = {
                f"{where}/{key}": table.group(where, f"{where}/{key}") for where in "ab" for key in range(3)
            }
        each = thing(name, namespace=namespace, uid=uid, version=number)
        if replaces and comes:
            table.become(table_of(each))
        elif comes:
            table.put(identify(each), each)
        else:
            table.remove(uid)
        for key, group in groups.items():
            assert table.group(group.namespace, key) is group
            expected = {
                row.metadata.uid: row for row in table.within(group.namespace) if group_of(row) == key
            }
            assert group.by_uid == expected


def test_a_group_that_nobody_holds_is_not_kept() -> None:
    table = Table(identify, lambda each: each.metadata.name[:1])
    table.put(identify(thing("web-1")), thing("web-1"))
    held = ref(table.group("ns", "w"))
    gc.collect()
    assert held() is None
    assert list(table.group("ns", "w").by_uid) == ["web-1"]


def test_rows_are_prepared_in_slices_between_which_the_table_may_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = table_of(*(thing(f"t{number}", namespace=f"ns-{number:05}") for number in range(6_000)))
    slices = table.prepare()
    next(slices)
    table.remove("t5999")
    table.put(identify(thing("new", namespace="ns-00000")), thing("new", namespace="ns-00000"))
    assert len(list(slices)) == 1
    made: list[str] = []
    make = NamespaceRows.__init__

    def count(part: NamespaceRows[Any], namespace: str, rows: tuple[Any, ...]) -> None:
        made.append(namespace)
        make(part, namespace, rows)

    monkeypatch.setattr(NamespaceRows, "__init__", count)
    rows = table.rows()
    assert made == ["ns-00000"]
    assert len(rows) == 6_000
    assert names(rows) == sorted(names(rows))
    assert list(table.prepare()) == []
