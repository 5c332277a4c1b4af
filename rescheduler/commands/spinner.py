"""What a command tells on stderr while it is at work: at once on a terminal, elsewhere once that takes long.

A thread tells it, since most of the work is done without a pause.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import NamedTuple, TextIO

_CLEAR = "\r\x1b[K"


class Delays(NamedTuple):
    """Seconds until the first word and between two, on a terminal and elsewhere."""

    first: float
    next: float


ON_TERMINAL, ELSEWHERE = Delays(0.0, 0.5), Delays(2.0, 10.0)


@contextmanager
def show_progress(
    say: Callable[[], str], stream: TextIO | None = None, *, elsewhere: Delays = ELSEWHERE
) -> Iterator[None]:
    """Tell what is said of the work, again and again until it is done."""
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
    """Write over what was told before; in the end nothing of it is left."""
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
