"""Responses of the API server: from bytes to records, or to an error with the server's own reason."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from reberth import records
from reberth.protocol.nesting import DEEP, Decoder, ShallowDecoder, flatten, keeps_parts
from reberth.records import ListMeta, ObjectMeta, PartialObject, Record, Status
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.text_limits import LONGEST_TEXT, UNREADABLE

T = TypeVar("T", bound=Record)
D = TypeVar("D")

_BY_STATUS: dict[int, type[ApiError]] = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Gone,
    422: errors.Invalid,
    429: errors.TooManyRequests,
}
LARGEST_OBJECT = 2**22
"""Bytes; more than twice the largest object that etcd takes (1.5 MiB). A larger one is a broken stream."""
LARGEST_PAGE = 2**26
"""Bytes of a page of a list, where it is read as a whole."""
_LONGEST_TEXT = 300
_ERROR_LINE = b'{"type":"ERROR"'
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

_status = msgspec.json.Decoder(Status)
_partial = msgspec.json.Decoder(PartialObject)


class _Page(Record, frozen=True):
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    metadata: ListMeta = ListMeta()


class _ErrorLine(Record, frozen=True):
    object: Status = Status()


class _AnyLine(Record, frozen=True):
    type: str = ""
    object: msgspec.Raw = msgspec.Raw(b"{}")


class WatchEvent(Record, Generic[T], frozen=True):
    """One event of a watch."""

    type: str
    object: T


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a list: its objects, and a BadObject for each object that cannot be read."""

    found: Iterable["T | BadObject"]
    resource_version: str
    continues: str

    @property
    def objects(self) -> list[T]:
        return [each for each in self.found if not isinstance(each, BadObject)]


class BadObject(msgspec.Struct, frozen=True):
    """An object that does not match its schema. It does not affect the other objects of the list or watch."""

    namespace: str
    name: str
    reason: str
    resource_version: str = ""


def failure(request: str, status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """Build the error for an unsuccessful response. Proxies in between may not send a Status."""
    said = _read_status(body)
    details = said.details or records.StatusDetails()
    kind = _BY_STATUS.get(status, errors.ServerFault if status >= 500 else ApiError)
    if said.reason == "AlreadyExists":
        kind = errors.AlreadyExists
    return kind(
        request,
        said.message or body[:_LONGEST_TEXT].decode(errors="replace").strip() or f"code {status}",
        status=status,
        reason=said.reason or "",
        causes=[(c.reason or "", c.message or "", c.field or "") for c in details.causes or ()],
        retry_after=_seconds(retry_after, details.retry_after_seconds),
    )


def _read_status(body: bytes) -> Status:
    try:
        return _status.decode(body)
    except UNREADABLE:
        return Status()


def _seconds(header: str | None, said: int | None) -> float | None:
    if header and header.isascii() and header.isdigit():
        return float(header)
    return None if said is None else float(said)


class _Found(Generic[T]):
    """The objects of a page, decoded one at a time: five hundred at once cost half as much again."""

    def __init__(self, raws: Sequence[msgspec.Raw], decoder: Decoder[T]) -> None:
        self._raws = raws
        self._decoder = decoder

    def __iter__(self) -> Iterator[T | BadObject]:
        decode = self._decoder.decode
        for raw in self._raws:
            try:
                yield decode(raw)
            except UNREADABLE as error:
                yield _read_again(self._decoder, bytes(raw), error)


class Reader(Generic[T]):
    """Reads objects, pages and watch lines of one kind."""

    def __init__(
        self, kind: type[T], *, objects: Decoder[T] | None = None, lines: Decoder[WatchEvent[T]] | None = None
    ) -> None:
        self._object: Decoder[T] = objects or msgspec.json.Decoder(kind)
        self._line: Decoder[WatchEvent[T]] = lines or msgspec.json.Decoder(WatchEvent[kind])  # type: ignore[valid-type] # known only here
        if keeps_parts(msgspec.inspect.type_info(kind)):
            self._object, self._line = ShallowDecoder(self._object), ShallowDecoder(self._line, within=1)
        self._page = msgspec.json.Decoder(_Page)
        self._any = msgspec.json.Decoder(msgspec.Raw)
        self._any_line = msgspec.json.Decoder(_AnyLine)

    def read(self, request: str, body: bytes) -> T:
        try:
            return self._object.decode(body)
        except UNREADABLE as error:
            found = _read_again(self._object, body, error)
            if isinstance(found, BadObject):
                raise errors.Unreadable(request, found.reason) from error
            return found

    def read_object(self, body: bytes) -> T | BadObject:
        """Read an object of a list. Raises DecodeError if it is not complete."""
        try:
            return self._object.decode(body)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            _decode_flat(self._any, body)  # it may be cut off behind the fault
            return _read_again(self._object, body, error)

    def read_page(self, request: str, body: bytes) -> Page[T]:
        """Read a page. Raises Unreadable for what is no list: taken for the last page, it would end one."""
        page = self._decode_page(request, body)
        items, meta = page.items, page.metadata
        if items is msgspec.UNSET and not meta.resource_version:
            raise errors.Unreadable(request, "neither items nor a resourceVersion: not a list")
        found = _Found(items if isinstance(items, list) else (), self._object)
        return Page(found, meta.resource_version, meta.continue_ or "")

    def read_head(self, request: str, body: bytes) -> ListMeta:
        """Read what stands before the objects of a page; there may be no metadata yet."""
        return self._decode_page(request, body).metadata

    def _decode_page(self, request: str, body: bytes) -> _Page:
        try:
            return _decode_flat(self._page, body, within=2)
        except UNREADABLE as error:
            raise errors.Unreadable(request, str(error)) from error

    def read_line(self, request: str, line: bytes) -> WatchEvent[T] | BadObject:
        """Read an event of a watch. An event of type ERROR is raised as the error in its Status."""
        if line.startswith(_ERROR_LINE):
            raise _error_of(request, line)
        try:
            return self._line.decode(line)
        except RecursionError as error:
            return self._read_flat(request, line, error)
        except UNREADABLE as error:
            return _describe(self._read_part(request, line), error)

    def _read_flat(self, request: str, line: bytes, error: RecursionError) -> WatchEvent[T] | BadObject:
        try:
            return self.read_line(request, flatten(line, within=1))
        except RecursionError:
            raise errors.Unreadable(request, f"a line of the watch: {DEEP}") from error

    def _read_part(self, request: str, line: bytes) -> bytes:
        """Give the object of a line that cannot be read."""
        try:
            return bytes(self._any_line.decode(line).object)
        except UNREADABLE as error:
            raise errors.Unreadable(request, f"a line of the watch: {error}") from error


def _error_of(request: str, line: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(line, type=_ErrorLine).object
    except UNREADABLE:
        status = Status()
    return failure(request, status.code or 500, msgspec.json.encode(status))


def _read_again(decoder: Decoder[T], text: bytes, error: Exception) -> T | BadObject:
    """Read an object without what is nested too deeply, if that was the error."""
    try:
        return decoder.decode(flatten(text)) if isinstance(error, RecursionError) else _describe(text, error)
    except UNREADABLE as second:
        return _describe(text, second)


def _describe(text: bytes, error: Exception) -> BadObject:
    try:
        meta = _decode_flat(_partial, text.decode(errors="replace").encode()).metadata
    except UNREADABLE:
        meta = ObjectMeta()
    reason = DEEP if isinstance(error, RecursionError) else str(error)[:LONGEST_TEXT]
    return BadObject(meta.namespace, meta.name, reason, meta.resource_version)


def _decode_flat(decoder: Decoder[D], text: bytes, *, within: int = 0) -> D:
    """Decode a text; if it is nested too deeply for that, without what is."""
    try:
        return decoder.decode(text)
    except RecursionError:
        return decoder.decode(flatten(text, within=within))


def ends_the_list(meta: ObjectMeta) -> bool:
    """Whether this bookmark marks the end of the initial list of a streaming watch."""
    return (meta.annotations or {}).get(_INITIAL_EVENTS_END) == "true"
