"""Progress of a command on stderr: at once on a terminal, elsewhere only if the command takes long.

A thread writes it, because most of the work does not yield to an event loop.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple, TextIO

_CLEAR = "\r\x1b[K"


class Delays(NamedTuple):
    """Seconds until the first message, and between two messages."""

    first: float
    next: float


ON_TERMINAL, ELSEWHERE = Delays(0.0, 0.5), Delays(2.0, 10.0)


@contextmanager
def show_progress(
    say: Callable[[], str], stream: TextIO | None = None, *, elsewhere: Delays = ELSEWHERE
) -> Iterator[None]:
    """Write what `say` returns, again and again until the work is done."""
    to, done = stream or sys.stderr, Event()
    tell, pauses = (_tell_in_place, ON_TERMINAL) if to.isatty() else (_tell_in_lines, elsewhere)
    teller = Thread(target=tell, args=(say, to, pauses, done), daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _tell_in_place(say: Callable[[], str], to: TextIO, pauses: Delays, done: Event) -> None:
    """Overwrite the last message; in the end remove it."""
    pause = pauses.first
    while not done.wait(pause):
        to.write(f"{_CLEAR}rescheduler: {say()}")
        to.flush()
        pause = pauses.next
    to.write(_CLEAR)
    to.flush()


def _tell_in_lines(say: Callable[[], str], to: TextIO, pauses: Delays, done: Event) -> None:
    pause = pauses.first
    while not done.wait(pause):
        to.write(f"rescheduler: {say()}\n")
        to.flush()
        pause = pauses.next
