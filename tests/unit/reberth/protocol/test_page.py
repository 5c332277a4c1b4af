"""A page that is read while it arrives brings what it brings as a whole, however it is cut into pieces."""

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from reberth.protocol.page import PartialPage
from reberth.protocol.response import LARGEST_OBJECT, BadObject, Reader
from reberth.records import ObjectMeta, Pod, Record
from reberth.values.errors import Unreadable


class Kept(Record, frozen=True):
    """A record that keeps a part of the object as it is."""

    metadata: ObjectMeta
    spec: Raw = Raw()


READER = Reader(Pod)
META = {"resourceVersion": "12", "continue": "abc", "remainingItemCount": 3}

# What looks like the border of two objects, or of a list, inside of one.
TRAPS = (
    "},{",
    '},{"metadata"',
    '"items":[{"',
    ']}"\\',
    "ä€😀",
)
names = st.one_of(st.text(max_size=5), st.sampled_from(TRAPS))
nested = st.sampled_from(
    [
        [{"metadata": {"name": "inner"}}, {"metadata": {"name": "other"}}],
        {"items": [{"metadata": {}}, {"metadata": {}}]},
        [[{"a": 1}, {"metadata": 2}], []],
        [{"metadata": {"name": "x" * (number % 7)}} for number in range(60)],
    ]
)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    uid, annotations = draw(names), draw(st.dictionaries(names, names, max_size=2))
    meta = {"name": draw(names), "namespace": "shop", "uid": uid, "annotations": annotations}
    spec = {"containers": draw(st.sampled_from([[{"name": "c"}], [], "none", 7]))}
    return {"metadata": meta, "unknown": draw(nested), "spec": spec}


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Pages as the API server writes those of its own kinds, and those of custom resources."""
    items = draw(st.lists(pods(), max_size=6))
    if draw(st.booleans()):
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": META, "items": items}
    else:
        items = [{"apiVersion": "v1", "kind": "Pod", **each} for each in items]
        body = {"apiVersion": "v1", "items": items, "kind": "PodList", "metadata": META}
    ascii_only = draw(st.booleans())
    tight = draw(st.booleans())
    text = json.dumps(body, separators=(",", ":") if tight else None, ensure_ascii=ascii_only)
    return text.encode() + b"\n"


def read(pieces: list[bytes]) -> tuple[list[Pod | BadObject], str, str]:
    page = PartialPage("list pods", READER)

    def list_found() -> Iterator[Pod | BadObject]:
        for piece in pieces:
            yield from page.feed(piece)
        yield from page.end()

    found = list(list_found())
    return found, page.resource_version, page.continues


def cut(body: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({0, len(body), *(place % len(body) for place in places)})
    return [body[start:end] for start, end in pairwise(ends)]


@given(bodies(), st.lists(st.integers(0, 10_000), max_size=12))
def test_the_pieces_bring_what_the_whole_page_brings(body: bytes, places: list[int]) -> None:
    whole = READER.read_page("list pods", body)
    assert read(cut(body, places)) == (list(whole.found), whole.resource_version, whole.continues)


@given(bodies())
def test_pieces_of_one_byte_bring_it_too(body: bytes) -> None:
    whole = READER.read_page("list pods", body)
    assert read([body[place : place + 1] for place in range(len(body))])[0] == list(whole.found)


@given(bodies(), st.integers(1, 10_000))
def test_a_page_that_is_cut_off_is_an_error(body: bytes, place: int) -> None:
    short = body[: place % (len(body) - 2)]
    with pytest.raises(Unreadable):
        read([short])


def test_what_is_no_list_is_an_error() -> None:
    for body in (b"{}", b'{"kind":"Status","metadata":{}}'):
        with pytest.raises(Unreadable, match="not a list"):
            read([body])


def write(count: int) -> bytes:
    items = [{"metadata": {"name": f"p-{number}", "uid": "u" * 5_000}} for number in range(count)]
    body = {"kind": "PodList", "apiVersion": "v1", "metadata": META, "items": items}
    return json.dumps(body, separators=(",", ":")).encode()


def test_objects_come_before_the_page_has_ended_and_nothing_of_them_is_kept() -> None:
    body, page = write(100), PartialPage("list pods", READER)
    seen, longest = [], 0
    for start in range(0, len(body), 1_000):
        seen.append(len(list(page.feed(body[start : start + 1_000]))))
        longest = max(longest, len(page._text))
        if start:
            assert (page.resource_version, page.continues) == ("12", "abc")
    assert (sum(seen), max(seen)) == (99, 1)
    assert longest < 8_000
    assert len(list(page.end())) == 1


def test_an_object_that_is_not_utf_8_fails_alone() -> None:
    body = write(5).replace(b'"name":"p-2"', b'"name":"p-2","namespace":"\xff"')
    body = body.replace(b'"name":"p-4"', b'"name":"p-4","namespace":"\xff"')
    for size in (100, len(body)):
        found = read([body[start : start + size] for start in range(0, len(body), size)])[0]
        assert [isinstance(each, BadObject) for each in found] == [False, False, True, False, True]


@pytest.mark.parametrize("place", [0, 2, 4])
def test_an_object_that_is_nested_too_deeply_fails_alone(place: int) -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    body = write(5).replace(b'"name":"p-%d"' % place, b'"name":"p-%d","unknown":%b' % (place, deep))
    for size in (50_000, len(body)):
        page = PartialPage("list pods", Reader(Kept))
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        found = [each for piece in pieces for each in page.feed(piece)] + list(page.end())
        assert [isinstance(each, BadObject) for each in found] == [at == place for at in range(5)]
        assert found[place].name == f"p-{place}"


def read_full_of_borders(inner: int) -> float:
    """Read a page with two objects that are full of what looks like the border of two; give what it costs."""
    parts = [{"metadata": {"name": "x"}} for _ in range(inner)]
    items = [{"metadata": {"name": f"p-{number}"}, "spec": parts} for number in range(2)]
    body = json.dumps({"metadata": META, "items": items}, separators=(",", ":")).encode()
    pieces = [body[start : start + 2**16] for start in range(0, len(body), 2**16)]
    page, begin = PartialPage("list pods", Reader(Kept)), time.thread_time()
    found = [each for piece in pieces for each in page.feed(piece)] + list(page.end())
    spent = time.thread_time() - begin
    assert [each.metadata.name for each in found if isinstance(each, Kept)] == ["p-0", "p-1"]
    return spent


def test_an_object_full_of_borders_costs_no_more_than_its_length() -> None:
    def ratio() -> float:
        least = (min(read_full_of_borders(inner) for _ in range(3)) for inner in (12_000, 3_000))
        return next(least) / next(least)

    assert min(ratio() for _ in range(3)) <= 4 * 2  # of the square it would be sixteen


def feed_without_end(begin: bytes) -> int:
    """Feed pieces until the page refuses them; give how many bytes it has taken, at most twice its limit."""
    page, piece = PartialPage("list pods", READER), b"x" * 2**16
    list(page.feed(begin))
    for count in range(2 * LARGEST_OBJECT // len(piece)):
        try:
            list(page.feed(piece))
        except Unreadable:
            return count * len(piece)
    raise AssertionError("a page that never ends was held in memory")


@pytest.mark.parametrize("before", [0, 3])
def test_an_object_that_never_ends_is_an_error(before: int) -> None:
    begin = write(before + 1)[: -len('"}}]}')]
    assert LARGEST_OBJECT * 0.9 <= feed_without_end(begin) <= LARGEST_OBJECT + 2**16


def test_a_page_of_another_form_that_never_ends_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reberth.protocol.page.LARGEST_PAGE", LARGEST_OBJECT)
    taken = feed_without_end(b'{"items": [{"metadata": {"name": "')
    assert LARGEST_OBJECT * 0.9 <= taken <= LARGEST_OBJECT + 2**16


def test_a_page_of_another_form_costs_no_more_than_its_length() -> None:
    def spend(count: int) -> float:
        page, piece = PartialPage("list pods", READER), b"x" * 2**16
        begin = time.thread_time()
        for _ in range(count):
            list(page.feed(piece))
        return time.thread_time() - begin

    assert min(spend(800) for _ in range(3)) <= 1.0  # to look for its beginning in each would take 20 s


def test_an_object_may_be_as_large_as_etcd_takes_it() -> None:
    body = write(3).replace(b'"p-1"', b'"p-1","namespace":"%b"' % (b"n" * 1_500_000))
    found = read([body[start : start + 2**16] for start in range(0, len(body), 2**16)])[0]
    assert [isinstance(each, Pod) for each in found] == [True] * 3
