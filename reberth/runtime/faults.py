"""Defects of ours that one object meets: they are counted and named, and everything else goes on.

Who writes an object that makes us stumble must not stop us for everybody, and must not fill the log either.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reberth.runtime import metrics
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError
from reberth.values.refusal import describe_fault

_HOUR = 3600.0
_NAMED = 10
"""Objects of a namespace that are named in the log within an hour; the others are only counted."""
_NAMESPACES = 1_000
"""Namespaces that are told apart; the objects of any others are named as if they were of one."""

LEFT_OUT = "object left out by a fault"
"""The event in the log."""

log = Log(__name__)


class FaultLog:
    """Counts faults by place, and names the first objects of each namespace in an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._named: dict[str, int] = {}

    def note(self, place: str, subject: str, reason: str, *, error: Exception | None = None) -> None:
        """Note a fault about an object, `namespace/name` or `name`; the error adds its traceback."""
        metrics.FAULTS.labels(place).inc()
        if self._may_name(subject.rpartition("/")[0]):
            log.error("object left out by a fault", raised=error, place=place, subject=subject, reason=reason)

    def _may_name(self, namespace: str) -> bool:
        if self._clock() - self._since >= _HOUR:
            self._since, self._named = self._clock(), {}
        if namespace not in self._named and len(self._named) >= _NAMESPACES:
            namespace = "/"  # no namespace has this name
        count = self._named.get(namespace, 0)
        self._named[namespace] = min(count + 1, _NAMED)
        return count < _NAMED


FAULTS = FaultLog()


@contextmanager
def handling(place: str, subject: str) -> Iterator[None]:
    """Handle one object: a defect of ours that it meets is noted and ends the handling of this one only.

    Errors that Reberth expects are the caller's.
    """
    try:
        yield
    except ReberthError:
        raise
    except Exception as error:  # noqa: BLE001 - it is about this object alone, and is logged
        FAULTS.note(place, subject, describe_fault(error), error=error)
