"""All errors, as a tree of exceptions.

A refusal is not an exception but a value with a reason (`refusal`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from reberth.values.text_limits import cut

_FAULTS_SHOWN = 20
_CAUSES_READ = 64


class ReberthError(Exception):
    """Any error that Reberth expects and explains; everything else is a bug."""


class ConfigurationError(ReberthError):
    """Invalid input of the operator; the message names it and gives the reason."""


class FieldFault(NamedTuple):
    """An error in a file. Line 0: the line is unknown. No field: the file as a whole."""

    message: str
    field: str = ""
    line: int = 0

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        place = f"{self.field} ({line})" if self.field and line else self.field or line
        return f"{place}: {self.message}" if place else self.message


class SettingsError(ConfigurationError):
    """An invalid settings file: one line that names the file and every invalid field."""

    def __init__(self, source: str, faults: Sequence[FieldFault]) -> None:
        super().__init__(source, faults)
        self.source = source
        self.faults = tuple(faults)

    def __str__(self) -> str:
        shown = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        more = len(self.faults) - len(shown)
        return f"{self.source}: {'; '.join(shown)}" + (f"; and {more} more" if more else "")


class ServingError(ConfigurationError):
    """A server cannot start at all, or not with this address, port, certificate or key; or a client."""


# The API server puts these words before the message of an admission webhook that denied a request.
_DENIED = "denied the request"


class ApiError(ReberthError):
    """The API server did not carry out the request, or the outcome is unknown.

    `causes` are (reason, message, field) of the Status body; `retry_after` is in seconds.
    """

    def __init__(
        self,
        request: str,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        causes: Sequence[tuple[str, str, str]] = (),
        retry_after: float | None = None,
    ) -> None:
        self.request = request
        # Whoever answered chose the length: a condition with a longer message would be refused as a whole.
        self.message = cut(message)
        self.status = status
        self.reason = cut(reason)
        self.causes = tuple((cut(why), cut(text), cut(field)) for why, text, field in causes[:_CAUSES_READ])
        super().__init__(f"{request}: {self.message}")
        self.retry_after = retry_after

    def has_cause(self, reason: str) -> bool:
        return any(cause == reason for cause, _, _ in self.causes)


class BadRequest(ApiError):
    """400: the request itself is invalid."""


class Unauthorized(ApiError):
    """401: the server does not know the client; its token may have expired."""


class Forbidden(ApiError):
    """403: the client does not have permission."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class ImpossibleName(NotFound):
    """No object can have this name, so that the server is not asked for it."""


class Conflict(ApiError):
    """409: a precondition failed, or another client wrote in between."""


class AlreadyExists(Conflict):
    """409: an object with that name exists already."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old."""


class Invalid(ApiError):
    """422: the object is invalid; the causes name the fields."""


class TooManyRequests(ApiError):
    """429: a budget or a webhook refuses, or the overloaded server has rejected the request unprocessed."""

    @property
    def is_decided(self) -> bool:
        """Whether this is a decision: a budget is among the causes, or the message names a webhook."""
        return bool(self.causes) or _DENIED in self.message


class ServerFault(ApiError):
    """5xx: the server failed; the request may or may not have been carried out."""


class Unreachable(ApiError):
    """No connection: the request was not sent."""


class Untrusted(Unreachable):
    """No connection: the server's certificate cannot be verified, or TLS failed otherwise."""


class Unanswered(ApiError):
    """The request was sent but no complete answer came: it is unknown whether it was carried out."""


PASSING = (Unreachable, Unanswered, ServerFault, TooManyRequests)
"""A read that ends so may be carried out when it is sent again."""


class Unreadable(ApiError):
    """The response does not follow the API."""


@contextmanager
def taken_apart() -> Iterator[None]:
    """Raise only the first of the errors that a task group raises together.

    If one of them is a bug, the whole group is raised unchanged.
    """
    try:
        yield
    except BaseExceptionGroup as several:
        faults, others = several.split(ReberthError)
        if faults is None or others is not None:
            raise
        raise _find_first(faults) from several


def _find_first(several: BaseExceptionGroup[ReberthError]) -> ReberthError:
    one = several.exceptions[0]
    return _find_first(one) if isinstance(one, BaseExceptionGroup) else one
