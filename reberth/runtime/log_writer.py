"""Log lines that never block the process: written at once or dropped, and drops are counted.

Nothing is buffered, so a full disk leaves no pending output that fails later. If the reader of the pipe is
stuck, the writer waits once, briefly; from then on it drops lines until the pipe accepts one again.
"""

import errno
import logging
import os
import select
from contextlib import suppress

from reberth.runtime import metrics

_CAUSES = {
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EPIPE: "closed",
    errno.EBADF: "closed",
    errno.EAGAIN: "stalled",
}
_PATIENCE_MS = 50  # long enough for a slow reader, short enough for a call of the scheduler


class LineWriter(logging.Handler):
    """Writes each record as one line to a file descriptor; reports the first of several drops on another."""

    def __init__(self, out: int, other: int) -> None:
        super().__init__()
        self._out = out
        self._other = other
        self._dropped = 0
        self._torn = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self.format(record))
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not stop the code that logs it
            metrics.LOGS_DROPPED.labels("unprintable").inc()

    def _write(self, line: str) -> None:
        try:
            self._send(line)
        except OSError as error:
            self._drop(error)
        else:
            if self._dropped:
                self._log_dropped()

    def _send(self, line: str) -> None:
        rest = (b"\n" if self._torn else b"") + _encoded(line)
        whole = len(rest)
        try:
            while rest:
                rest = rest[_send_some(self._out, rest, 0 if self._dropped else _PATIENCE_MS) :]
        finally:
            self._torn = self._torn if len(rest) == whole else bool(rest)

    def _drop(self, error: OSError) -> None:
        metrics.LOGS_DROPPED.labels(_CAUSES.get(error.errno or 0, metrics.OTHER)).inc()
        self._dropped += 1
        if self._dropped == 1:
            with suppress(OSError):
                _send_some(self._other, _encoded(f"reberth: dropping log lines: {error.strerror}"), 0)

    def _log_dropped(self) -> None:
        lost, self._dropped = self._dropped, 0
        said = {
            "name": __name__,
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "log lines dropped",
        }
        self._write(self.format(logging.makeLogRecord({**said, "fields": {"lines": lost}})))


def _encoded(line: str) -> bytes:
    return line.encode(errors="backslashreplace") + b"\n"


def _send_some(out: int, data: bytes, patience_ms: int) -> int:
    """Write as much as fits without waiting: a pipe that is ready accepts PIPE_BUF bytes."""
    ready = select.poll()
    ready.register(out, select.POLLOUT)
    if not ready.poll(patience_ms):
        raise BlockingIOError(errno.EAGAIN, "the reader is blocked")
    return os.write(out, data[: select.PIPE_BUF])
