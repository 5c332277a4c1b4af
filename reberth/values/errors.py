"""What can go wrong, as a tree to catch by.

"No" is a value with a reason and never stands here; these are faults.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

_FAULTS_SHOWN = 20


class ReberthError(Exception):
    """Any fault that Reberth has a name for."""


class ConfigurationError(ReberthError):
    """What the operator gave cannot be used; the message names the thing and says why."""


class FieldFault(NamedTuple):
    """One thing that is wrong in a file; line 0 is an unknown line, no field is the file as a whole."""

    message: str
    field: str = ""
    line: int = 0

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line else ""
        place = f"{self.field} ({line})" if self.field and line else self.field or line
        return f"{place}: {self.message}" if place else self.message


class SettingsError(ConfigurationError):
    """A settings file that cannot be used: one line that names the file and every field at fault."""

    def __init__(self, source: str, faults: Sequence[FieldFault]) -> None:
        super().__init__(source, faults)
        self.source = source
        self.faults = tuple(faults)

    def __str__(self) -> str:
        shown = [str(fault) for fault in self.faults[:_FAULTS_SHOWN]]
        more = len(self.faults) - len(shown)
        return f"{self.source}: {'; '.join(shown)}" + (f"; and {more} more" if more else "")


class ServingError(ConfigurationError):
    """The server cannot start, or not with this address, port, certificate or key."""


# So the API server begins the words of an admission webhook.
_DENIED = "denied the request"


class ApiError(ReberthError):
    """The API server did not do what it was asked for, or nobody knows whether it did.

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
        super().__init__(f"{request}: {message}")
        self.request = request
        self.message = message
        self.status = status
        self.reason = reason
        self.causes = tuple(causes)
        self.retry_after = retry_after

    def has_cause(self, reason: str) -> bool:
        return any(cause == reason for cause, _, _ in self.causes)


class BadRequest(ApiError):
    """400: the request itself is wrong."""


class Unauthorized(ApiError):
    """401: the server does not know who asks; the token may have expired."""


class Forbidden(ApiError):
    """403: who asks may not do this."""


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: a precondition failed, or somebody wrote in between."""


class AlreadyExists(Conflict):
    """409: an object of that name is there."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old."""


class Invalid(ApiError):
    """422: the object is not valid; the causes name the fields."""


class TooManyRequests(ApiError):
    """429: a budget or a webhook refuses, or the server has too much to do: then nobody has looked at it."""

    @property
    def is_decided(self) -> bool:
        """A budget stands in the causes; a webhook may give none, but the server says who has denied it."""
        return bool(self.causes) or _DENIED in self.message


class ServerFault(ApiError):
    """5xx: the server failed; the request may or may not have been carried out."""


class Unreachable(ApiError):
    """No connection: the request was not sent."""


class Unanswered(ApiError):
    """The request was sent and no whole answer came: nobody knows whether it was carried out."""


class Unreadable(ApiError):
    """The answer is not what the API promises."""


@contextmanager
def taken_apart() -> Iterator[None]:
    """Raise of faults that come together the first one alone, by whatever tasks it has passed.

    Where any is among them that Reberth has no name for, they are raised as they came.
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
