"""The progress of a command, on a terminal and elsewhere."""

from io import StringIO
from threading import Event

import pytest

from rescheduler.commands.spinner import Delays, show_progress

AT_ONCE, NEVER = Delays(0.0, 0.0), Delays(3600.0, 3600.0)
LONG = 30.0


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def work_until_told(stream: StringIO, pauses: Delays) -> str:
    """Work until something was said twice; gives what stands on the stream in the end."""
    twice = Event()
    words = iter(("one to come", "none to come"))

    def say() -> str:
        word = next(words, None)
        if word is None:
            twice.set()
        return word or "none to come"

    with show_progress(say, stream, elsewhere=pauses):
        assert twice.wait(LONG)
    return stream.getvalue()


def test_long_work_is_reported_line_by_line() -> None:
    told = work_until_told(StringIO(), AT_ONCE).splitlines()
    assert told[:2] == ["rescheduler: one to come", "rescheduler: none to come"]


def test_short_work_is_not_reported() -> None:
    stream = StringIO()
    with show_progress(lambda: "never said", stream, elsewhere=NEVER):
        pass
    assert stream.getvalue() == ""


def test_on_a_terminal_progress_appears_at_once_and_nothing_stays() -> None:
    told = work_until_told(Terminal(), NEVER)
    assert told.startswith("\r\x1b[Krescheduler: one to come\r\x1b[Krescheduler: none to come")
    assert told.endswith("\r\x1b[K")
    assert "\n" not in told


def test_the_spinner_ends_with_the_work_even_if_that_fails() -> None:
    stream = Terminal()
    with pytest.raises(ZeroDivisionError), show_progress(lambda: "at work", stream):
        divmod(1, 0)
    assert stream.getvalue().endswith("\r\x1b[K")
