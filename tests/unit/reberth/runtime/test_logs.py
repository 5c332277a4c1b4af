import json
import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.runtime import logs
from reberth.runtime.logs import ConsoleLines, JsonLines, Log, LogSettings
from tests.support.repository import ROOT

T0 = 1_700_000_000.25


def record(**attributes: object) -> logging.LogRecord:
    return logging.makeLogRecord(
        {"name": "reberth.x", "levelname": "INFO", "msg": "pod evicted", "created": T0, **attributes}
    )


def as_json(**attributes: object) -> dict[str, Any]:
    line = JsonLines().format(record(**attributes))
    assert len(line.splitlines()) == 1
    read: dict[str, Any] = json.loads(line)
    return read


def as_console(**attributes: object) -> str:
    return ConsoleLines().format(record(**attributes))


def fail() -> None:
    raise ValueError("token=abc\nnext")


def failing() -> BaseException:
    with pytest.raises(ValueError, match="abc") as caught:
        fail()
    return caught.value


def exc_info(error: BaseException) -> tuple[type[BaseException], BaseException, Any]:
    return type(error), error, error.__traceback__


def test_json_holds_the_event_and_its_fields() -> None:
    assert as_json(fields={"pod": "shop/web", "moves": 3, "name": "x", "token": "abc"}) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "reberth.x",
        "event": "pod evicted",
        "pod": "shop/web",
        "moves": 3,
        "name": "x",
        "token": "[redacted]",
    }


def test_the_console_shows_the_same_for_the_eye() -> None:
    shown = as_console(fields={"pod": "shop/web", "reason": "too full", "none": None, "list": [1, "ä"]})
    head, fields = shown.split(" pod=")
    assert head == "2023-11-14T22:13:20.250Z info    reberth.x: pod evicted"
    assert fields == 'shop/web reason="too full" none=null list=[1, "ä"]'


def test_a_field_never_hides_a_built_in_field_of_the_line() -> None:
    line = as_json(fields={"time": 1, "event": 2, "traceback": 3})
    assert line["event"] == "pod evicted"
    assert (line["time_"], line["event_"], line["traceback_"]) == (1, 2, 3)


def test_a_failure_is_one_line_in_json() -> None:
    line = as_json(exc_info=exc_info(failing()))
    assert line["failure"] == "ValueError: token=[redacted]\nnext"
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert "abc" not in str(line)


def test_a_failure_on_the_console_has_its_traceback_below() -> None:
    lines = as_console(exc_info=exc_info(failing())).split("\n")
    assert lines[0].endswith(r'failure="ValueError: token=[redacted]\nnext"')
    assert lines[1] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in lines[1:])


def test_no_failure_is_no_failure() -> None:
    assert "failure" not in as_json(exc_info=(None, None, None))


@pytest.mark.parametrize("style", [as_json, as_console])
def test_logs_of_other_packages_have_the_same_shape(style: Callable[..., object]) -> None:
    assert "took 3 s" in str(style(msg="took %d s", args=(3,)))
    assert "took %d s ('x',)" in str(style(msg="took %d s", args=("x",)))


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_the_line(event: str, name: str, value: str) -> None:
    fields = {name: value}
    assert as_json(msg=event, fields=fields)
    assert as_console(msg=event, fields=fields).isprintable()


def test_colour_and_newlines_do_not_reach_the_terminal() -> None:
    assert as_console(msg="a\nb\x1b[31m\u2028").endswith(r"a\nb\x1b[31m\u2028")


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "log"


def lines_after(settings: LogSettings, file: Path, work: Callable[[], None]) -> list[str]:
    with file.open("wb") as out:
        logs.setup(settings, out=out.fileno())
        work()
    return file.read_text().splitlines()


def say_each_level() -> None:
    log = Log("reberth.y")
    log.debug("d", n=1)
    log.info("i", n=2)
    log.warning("w", n=3)
    log.error("e", n=4)
    try:
        fail()
    except ValueError:
        log.exception("x", n=5)


@pytest.mark.usefixtures("logging_restored")
def test_a_log_line_has_its_level_and_fields(log_file: Path) -> None:
    said = [json.loads(line) for line in lines_after(LogSettings(level="debug"), log_file, say_each_level)]
    assert [(line["level"], line["event"], line["n"]) for line in said] == [
        ("debug", "d", 1), ("info", "i", 2), ("warning", "w", 3), ("error", "e", 4), ("error", "x", 5),
    ]  # fmt: skip
    assert said[-1]["failure"] == "ValueError: token=[redacted]\nnext"
    assert {line["logger"] for line in said} == {"reberth.y"}


@pytest.mark.usefixtures("logging_restored")
def test_lines_below_the_level_are_not_logged(log_file: Path) -> None:
    assert len(lines_after(LogSettings(level="warning"), log_file, say_each_level)) == 3


@pytest.mark.usefixtures("logging_restored")
def test_the_console_style_is_an_option(log_file: Path) -> None:
    (line,) = lines_after(LogSettings(style="console"), log_file, lambda: Log("z").info("hello", a=1))
    assert line.endswith("info    z: hello a=1")


@pytest.mark.usefixtures("logging_restored")
def test_a_terminal_gets_the_console_by_itself() -> None:
    main, terminal = os.openpty()
    logs.setup(LogSettings(), out=terminal)
    Log("z").info("hello")
    assert os.read(main, 1000).decode().endswith("info    z: hello\r\n")
    os.close(main)
    os.close(terminal)


@pytest.mark.usefixtures("logging_restored")
def test_a_warning_of_python_is_a_line_too(log_file: Path) -> None:
    def warn() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            logging.captureWarnings(capture=True)
            warnings.warn("old\nways", stacklevel=1)

    (line,) = lines_after(LogSettings(), log_file, warn)
    assert json.loads(line)["logger"] == "py.warnings"


PROGRAM = """
from reberth.runtime import logs
from tests.support.repository import ROOT
logs.setup(logs.LogSettings(style="json"))
for _ in range(1000):
    logs.Log("a").info("x" * 100)
print("still here")
"""


def test_a_process_survives_a_full_disk_and_reports_it_on_the_other_stream() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            stderr=full,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0
    assert done.stdout == b"reberth: dropping log lines: No space left on device\nstill here\n"
