"""Responses of the API server: objects, pages, watch lines, and every kind of error."""

import json
from typing import Any

import msgspec
import pytest

from reberth.cluster.cache import BOOKMARK
from reberth.protocol import response
from reberth.protocol.nesting import DEEPEST
from reberth.protocol.response import BadObject, Reader, WatchEvent
from reberth.records import ControllerRevision, ObjectMeta, PartialObject, Pod, Record
from reberth.values import errors

POD = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"}}
BAD = {"metadata": {"name": "b", "namespace": "n", "resourceVersion": "6"}, "spec": {"containers": "none"}}


def status(code: int, reason: str = "", message: str = "no", **details: object) -> bytes:
    body = {"kind": "Status", "message": message, "reason": reason, "code": code, "details": details}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.ApiError),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerFault),
        (504, "Timeout", errors.ServerFault),
    ],
)
def test_each_code_is_an_error_of_its_own(code: int, reason: str, kind: type[errors.ApiError]) -> None:
    error = response.failure("get /x", code, status(code, reason))
    assert type(error) is kind
    assert (error.status, error.reason, str(error)) == (code, reason, "get /x: no")


def test_causes_and_the_time_to_wait_are_kept() -> None:
    cause = {"reason": "DisruptionBudget", "message": "needs 2", "field": "f"}
    error = response.failure("evict", 429, status(429, causes=[cause], retryAfterSeconds=10))
    assert error.causes == (("DisruptionBudget", "needs 2", "f"),)
    assert error.has_cause("DisruptionBudget")
    assert not error.has_cause("Other")
    assert error.retry_after == 10
    assert response.failure("evict", 429, b"", retry_after="3").retry_after == 3
    assert response.failure("evict", 429, b"", retry_after="Wed, 21 Oct").retry_after is None


def test_an_eviction_denied_by_a_webhook_or_budget_is_decided() -> None:
    cause = {"reason": "DisruptionBudget"}
    texts = [b"Too many requests", status(429, message='admission webhook "w" denied the request: no')]
    found = [response.failure("evict", 429, text) for text in (*texts, status(429, causes=[cause]))]
    assert [isinstance(one, errors.TooManyRequests) and one.is_decided for one in found] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"Too many requests, please try again later.\n", "Too many requests, please try again later."),
        (b"", "code 502"),
        (b'{"kind": 5}', '{"kind": 5}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"x" * 5000, "x" * 300),
    ],
)
def test_a_body_that_is_not_a_status_is_quoted_shortened(body: bytes, text: str) -> None:
    assert response.failure("get /x", 502, body).message == text


def test_one_bad_object_spoils_nothing_else_of_a_page() -> None:
    body = json.dumps({"metadata": {"resourceVersion": "9", "continue": "c"}, "items": [POD, BAD]}).encode()
    page = Reader(Pod).read_page("list", body)
    _, bad = page.found
    assert [pod.metadata.name for pod in page.objects] == ["a"]
    assert isinstance(bad, BadObject)
    assert (bad.namespace, bad.name, bad.resource_version) == ("n", "b", "6")
    assert "$.spec.containers" in bad.reason
    assert (page.resource_version, page.continues) == ("9", "c")


@pytest.mark.parametrize("items", [[], None])
def test_a_page_may_be_empty_and_the_last(items: list[object] | None) -> None:
    page = Reader(Pod).read_page("list", json.dumps({"metadata": {}, "items": items}).encode())
    assert (list(page.found), page.continues) == ([], "")


def test_an_object_without_readable_metadata_is_reported_without_a_name() -> None:
    page = Reader(Pod).read_page("list", b'{"items": [{"metadata": 7}, 3]}')
    assert [(bad.namespace, bad.name) for bad in page.found if isinstance(bad, BadObject)] == [("", "")] * 2


def test_a_page_without_objects_has_a_version() -> None:
    page = Reader(Pod).read_page("list", b'{"metadata": {"resourceVersion": "9"}}')
    assert (list(page.found), page.resource_version) == ([], "9")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"items": 5}', b"{}", b'{"metadata": {"continue": "c"}}']
)
def test_a_body_that_is_no_list_is_a_fault(body: bytes) -> None:
    with pytest.raises(errors.Unreadable, match="list /x"):
        Reader(Pod).read_page("list /x", body)


def test_an_object_is_read_or_named_as_unreadable() -> None:
    assert Reader(Pod).read("get", json.dumps(POD).encode()).metadata.uid == "u"
    with pytest.raises(errors.Unreadable, match="get /x: .*containers"):
        Reader(Pod).read("get /x", json.dumps(BAD).encode())


def test_lines_of_a_watch_are_events() -> None:
    line = Reader(Pod).read_line("watch", json.dumps({"type": "ADDED", "object": POD}).encode())
    assert isinstance(line, WatchEvent)
    assert (line.type, line.object.metadata.name) == ("ADDED", "a")


def test_a_bookmark_of_a_kind_with_data_of_any_form_is_read() -> None:
    empty = {"metadata": {"resourceVersion": "7", "creationTimestamp": None}, "data": None, "revision": 0}
    line = Reader(ControllerRevision).read_line(
        "watch", json.dumps({"type": BOOKMARK, "object": empty}).encode()
    )
    assert isinstance(line, WatchEvent)
    assert line.object.metadata.resource_version == "7"


def test_a_bad_object_in_a_watch_is_no_end_of_it() -> None:
    line = Reader(Pod).read_line("watch", json.dumps({"type": "ADDED", "object": BAD}).encode())
    assert isinstance(line, BadObject)
    assert line.name == "b"


def test_an_error_event_is_raised_as_its_status() -> None:
    line = b'{"type":"ERROR","object":' + status(410, "Expired", "too old") + b"}"
    with pytest.raises(errors.Gone, match="watch: too old"):
        Reader(Pod).read_line("watch", line)
    with pytest.raises(errors.ServerFault):
        Reader(Pod).read_line("watch", b'{"type":"ERROR","object":7}')


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","obj',
        b'{"type":"ADDED","object":{"spec":{"containers":"none"',
        b'{"type":5,"object":{}}',
        b'{"type":"\xff","object":{}}',
        b"[]",
    ],
)
def test_what_is_no_event_is_a_fault(line: bytes) -> None:
    with pytest.raises(errors.Unreadable, match="a line of the watch"):
        Reader(Pod).read_line("watch", line)


class Kept(Record, frozen=True):
    """A record that keeps a part of the object as it is."""

    metadata: ObjectMeta
    spec: dict[str, msgspec.Raw] | None = None


NO_TEXT = json.dumps(POD).encode().replace(b'"u"', b'"\xff"')
DEEP = b'{"metadata": {"name": "d"}, "unknown": %b}' % (b"[" * 100_000 + b"]" * 100_000)


def test_an_object_that_is_not_utf_8_fails_alone() -> None:
    reader, good = Reader(Pod), json.dumps(POD).encode()
    page = reader.read_page("list", b'{"items": [%b, %b]}' % (NO_TEXT, good))
    line = reader.read_line("watch", b'{"type": "ADDED", "object": %b}' % NO_TEXT)
    bad, read = page.found
    assert isinstance(read, Pod)
    for each in (bad, line, reader.read_object(NO_TEXT)):
        assert isinstance(each, BadObject)
        assert (each.namespace, each.name, each.resource_version) == ("n", "a", "5")
        assert "utf-8" in each.reason
    with pytest.raises(errors.Unreadable, match="get /x: .*utf-8"):
        reader.read("get /x", NO_TEXT)


def test_half_an_object_that_is_not_utf_8_is_not_read() -> None:
    with pytest.raises(msgspec.DecodeError):
        Reader(Pod).read_object(NO_TEXT[:-1])


@pytest.mark.parametrize(
    "text", [b'{"metadata": {"continue": "\xff"}, "items": []}', b'{"items": [%b' % DEEP, b"[" * 2**23]
)
def test_a_page_that_cannot_be_read_is_a_fault(text: bytes) -> None:
    with pytest.raises(errors.Unreadable, match="list /x"):
        Reader(Pod).read_page("list /x", text)


@pytest.mark.parametrize("text", [b'{"message": "\xff"}', b'{"details": %b}' % DEEP])
def test_a_refusal_that_cannot_be_read_is_the_one_of_its_code(text: bytes) -> None:
    assert type(response.failure("get /x", 409, text)) is errors.Conflict
    line = b'{"type":"ERROR","object":%b}' % text
    with pytest.raises(errors.ServerFault):
        Reader(Pod).read_line("watch", line)


def read_everywhere(reader: Reader[Any], text: bytes) -> list[Any]:
    page = reader.read_page("list", b'{"items": [%b, {"metadata": {"name": "next"}}]}' % text)
    bad, good = page.found
    assert good.metadata.name == "next"
    return [bad, reader.read_object(text), reader.read_line("watch", b'{"type":"ADDED","object":%b}' % text)]


def test_a_deep_part_that_nobody_reads_does_not_matter() -> None:
    reader = Reader(PartialObject)
    listed, read, event = read_everywhere(reader, DEEP)
    for each in (listed, read, event.object, reader.read("get /x", DEEP)):
        assert each.metadata.name == "d"


@pytest.mark.parametrize("levels", [DEEPEST, DEEPEST + 1, 300, 5_000, 100_000])
def test_an_object_of_which_parts_are_kept_fails_alone_if_it_is_nested_too_deeply(levels: int) -> None:
    parts = b"[" * (levels - 2) + b"]" * (levels - 2)
    for text in (
        b'{"metadata": {"name": "d"}, "spec": {"a": %b}}' % parts,
        b'{"spec": {"a": %b}, "metadata": {"name": "d"}}' % parts,
    ):
        found = read_everywhere(Reader(Kept), text)
        if levels == DEEPEST:
            assert not any(isinstance(each, BadObject) for each in found)
        else:
            assert found == [BadObject("", "d", "is nested more than 128 levels deep")] * 3
            with pytest.raises(errors.Unreadable, match="get /x: .*is nested more than 128"):
                Reader(Kept).read("get /x", text)


def test_half_an_object_that_is_nested_too_deeply_is_not_read() -> None:
    with pytest.raises(msgspec.DecodeError):
        Reader(Kept).read_object(DEEP[:-50_000])


def test_a_line_that_is_nothing_but_depth_is_a_fault() -> None:
    for line in (b"[" * 100_000, b"[" * 2**23):
        with pytest.raises(errors.Unreadable, match="a line of the watch"):
            Reader(Pod).read_line("watch", line)


def test_only_the_marked_bookmark_ends_a_list() -> None:
    assert response.ends_the_list(ObjectMeta(annotations={"k8s.io/initial-events-end": "true"}))
    assert not response.ends_the_list(ObjectMeta(annotations={"k8s.io/initial-events-end": "no"}))
    assert not response.ends_the_list(ObjectMeta())
