"""What a program does when nobody reads its output any more, as in `... | head`."""

import os
import select
import sys
from collections.abc import Callable
from functools import wraps

# What a shell gives for a program that SIGPIPE ended.
READER_GONE = 128 + 13


def ending_with_reader(main: Callable[[], int]) -> Callable[[], int]:
    """Let a program end quietly if the reader of its output has gone, as other programs do.

    SIGPIPE itself stays ignored: it would also end a daemon whose connection is closed by the other side.
    """

    @wraps(main)
    def run() -> int:
        try:
            try:
                return main()
            finally:
                if sys.stdout:  # None if the program was started without it
                    sys.stdout.flush()
        except BrokenPipeError:
            if not _is_reader_gone():
                raise
            # Python flushes once more at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return READER_GONE

    return run


def _is_reader_gone() -> bool:
    """Tell whether it was this pipe that broke, and not a connection."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    return any(state & select.POLLERR for _, state in output.poll(0))
