from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import product
from unittest.mock import Mock, patch

from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster import tables
from reberth.cluster.tables import Listeners, Rows, Table, identify
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
    """Objects move between groups with their version. Groups are first asked for at different times."""

    def group_of(each: PartialObject) -> str:
        return f"{each.metadata.namespace}/{int(each.metadata.resource_version) % 3}"

    table = Table(identify, group_of)
    for number, (comes, namespace, name, uid, replaces) in enumerate(changes):
        each = thing(name, namespace=namespace, uid=uid, version=number)
        if replaces and comes:
            table.become(table_of(each))
        elif comes:
            table.put(identify(each), each)
        else:
            table.remove(uid)
        for where, key in product("ab" if number >= begin else "", range(3)):
            group = f"{where}/{key}"
            expected = {row.metadata.uid: row for row in table.within(where) if group_of(row) == group}
            assert table.group(where, group) == expected


@given(changes)
def test_a_listener_is_called_for_an_object_or_a_group_and_for_no_other(
    changes: list[tuple[bool, str, str, str, bool]],
) -> None:
    def group_of(each: PartialObject) -> str:
        return each.metadata.name

    listeners = Listeners()
    table = Table(identify, group_of, listeners=listeners)
    for comes, namespace, name, uid, replaces in changes:
        heard: set[str] = set()
        before = {one.metadata.uid: one for place in "ab" for one in table.within(place)}
        with ExitStack() as stack:
            for key in "wxyz12345":
                stack.enter_context(listeners.hearing(key, partial(heard.add, key)))
            each = thing(name, namespace=namespace, uid=uid)
            if replaces and comes:
                table.become(table_of(each))
            elif comes:
                table.put(identify(each), each)
            else:
                table.remove(uid)
        after = {one.metadata.uid: one for place in "ab" for one in table.within(place)}
        touched = [
            one
            for known in (before, after)
            for key, one in known.items()
            if before.get(key) is not after.get(key)
        ]
        expected = {key for one in touched for key in (one.metadata.uid, group_of(one))}
        assert heard == (set("wxyz12345") if replaces and comes else expected)
    assert not listeners.by_key


def test_a_listener_that_has_left_is_not_called() -> None:
    calls: list[str] = []
    listeners = Listeners()
    with listeners.hearing("u", partial(calls.append, "first")):
        with listeners.hearing("u", partial(calls.append, "second")):
            listeners.tell("u")
        listeners.tell("u")
        listeners.tell_all()
    listeners.tell("u")
    assert calls == ["first", "second", "first", "first"]


def test_contents_are_sorted_by_their_reader() -> None:
    """A copy costs a tenth of the sorting, and the reader may be another thread."""
    table = table_of(*(thing(f"t{number % 7}-{number}") for number in range(100)))
    with patch.object(tables, "sorted", Mock(side_effect=sorted), create=True) as sort:
        rows = table.rows()
        assert [call.args for call in sort.call_args_list] == [(table._by_namespace,)]
        assert len(rows) == 100
        assert len(sort.call_args_list) == 2
    assert names(rows) == sorted(names(rows))


def test_two_threads_that_read_the_same_rows_find_the_same() -> None:
    for _ in range(20):
        table = table_of(*(thing(f"t{number % 7}-{number}") for number in range(2_000)))
        rows = table.rows()
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(names, [rows] * 4)) == [sorted(names(rows))] * 4
