"""Structured logs: an event in a few constant words, then its fields, on one line of JSON or of plain text.

The standard library's logging carries them, so the logs of other packages have the same format.
"""

import json
import logging
import math
import os
import re
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal

from reberth.config.settings import Section
from reberth.runtime.log_writer import LineWriter
from reberth.values.redaction import plain, redact
from reberth.values.table import printable

_BARE = re.compile(r"[\w./:@%+-]+")


class LogSettings(Section, frozen=True):
    """Log format and level; `auto` is text on a terminal, otherwise JSON."""

    style: Literal["auto", "json", "console"] = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Log:
    """The log of a module. Fields are keywords: `log.info("pod evicted", pod="shop/web-1", node="n1")`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **fields: object) -> None:
        self._logger.debug(event, extra={"fields": fields})

    def info(self, event: str, /, **fields: object) -> None:
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, /, **fields: object) -> None:
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, /, *, raised: Exception | None = None, **fields: object) -> None:
        """Log an error, with the traceback of an exception that was raised, if any."""
        self._logger.log(logging.ERROR, event, exc_info=raised, extra={"fields": fields})

    def exception(self, event: str, /, **fields: object) -> None:
        """Log an error with the traceback of the exception that is being handled."""
        self._logger.log(logging.ERROR, event, exc_info=True, extra={"fields": fields})


class SparseLog:
    """Warnings that strangers can cause at will: a few lines a minute, the others are counted."""

    def __init__(
        self, log: Log, *, lines: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._began = -math.inf
        self._written = 0
        self._left_out = 0

    def warning(self, event: str, /, **fields: object) -> None:
        """Log a line, or leave it out; the first line of the next minute tells how many were."""
        now = self._clock()
        if now >= self._began + self._seconds:
            self._began, self._written = now, 0
        self._written += 1
        if self._written > self._lines:
            self._left_out += 1
            return
        more, self._left_out = {"left_out": self._left_out} if self._left_out else {}, 0
        self._log.warning(event, **fields, **more)


def setup(settings: LogSettings, *, out: int = 2, other: int = 1) -> None:
    """Send all logs of the process to one file descriptor; report failures to write on the other."""
    console = settings.style == "console" or (settings.style == "auto" and os.isatty(out))
    writer = LineWriter(out, other)
    writer.setFormatter(ConsoleLines() if console else JsonLines())
    logging.basicConfig(level=settings.level.upper(), handlers=[writer], force=True)
    logging.captureWarnings(capture=True)


class JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({**_head(record), **_fields(record), **_failure(record)})


class ConsoleLines(logging.Formatter):
    """One line per event; the traceback of an exception follows it."""

    def format(self, record: logging.LogRecord) -> str:
        head, failure = _head(record), _failure(record)
        trace = failure.pop("traceback", "").splitlines()
        fields = [f"{name}={_shown(value)}" for name, value in {**_fields(record), **failure}.items()]
        line = [head["time"], f"{head['level']:<7}", f"{head['logger']}:", head["event"], *fields]
        return "\n".join(map(printable, [" ".join(line), *(f"  {step}" for step in trace)]))


def _head(record: logging.LogRecord) -> dict[str, str]:
    written = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return {
        "time": written.replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": redact(_message(record)),
    }


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # Arguments that do not fit their format are a bug of another package, and still worth logging.
        return f"{record.msg} {record.args}"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    """Give the fields; a field that collides with another key on the line gets an underscore."""
    taken = ("time", "level", "logger", "event", "failure", "traceback")
    fields: dict[str, object] = getattr(record, "fields", {})
    return {f"{name}_" if name in taken else name: plain(value, name) for name, value in fields.items()}


def _failure(record: logging.LogRecord) -> dict[str, str]:
    failure = record.exc_info[1] if record.exc_info else None
    if failure is None:
        return {}
    return {
        "failure": redact("".join(traceback.format_exception_only(failure)).strip()),
        "traceback": redact("".join(traceback.format_exception(failure)).strip()),
    }


def _shown(value: object) -> str:
    bare = isinstance(value, str) and _BARE.fullmatch(value)
    return str(value) if bare else json.dumps(value, ensure_ascii=False)
