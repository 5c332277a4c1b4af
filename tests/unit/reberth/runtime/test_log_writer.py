import errno
import logging
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reberth.runtime.log_writer import LineWriter
from tests.support.metrics import read_metric


def lost(cause: str) -> float:
    return read_metric("reberth_logs_dropped_total", cause=cause)


def say(writer: LineWriter, text: str) -> None:
    writer.handle(logging.makeLogRecord({"msg": text}))


class Pipe:
    """A pipe whose reader can be looked into, stalled and closed."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self._open = {self.reader, self.writer}

    def read(self) -> str:
        chunks = []
        while select.select([self.reader], [], [], 0)[0]:
            chunks.append(os.read(self.reader, 2**20))
        return b"".join(chunks).decode()

    def close(self, *ends: int) -> None:
        for end in ends or tuple(self._open):
            self._open.remove(end)
            os.close(end)


@pytest.fixture
def out() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def other() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture
def full() -> Iterator[int]:
    device = os.open("/dev/full", os.O_WRONLY)
    yield device
    os.close(device)


def test_a_record_is_a_line(out: Pipe, other: Pipe) -> None:
    writer = LineWriter(out.writer, other.writer)
    say(writer, "one")
    say(writer, "zwei ü \ud800")
    assert out.read() == "one\nzwei ü \\ud800\n"
    assert other.read() == ""


def test_a_full_disk_is_counted_and_reported_once_on_the_other_stream(full: int, other: Pipe) -> None:
    before = lost("no_space")
    writer = LineWriter(full, other.writer)
    for _ in range(5):
        say(writer, "x")
    assert lost("no_space") == before + 5
    assert other.read() == "reberth: dropping log lines: No space left on device\n"


def test_logging_goes_on_when_there_is_space_again(full: int, out: Pipe, other: Pipe) -> None:
    disk = os.dup(full)
    writer = LineWriter(disk, other.writer)
    say(writer, "lost")
    say(writer, "lost too")
    os.dup2(out.writer, disk)
    say(writer, "written")
    say(writer, "and again")
    os.close(disk)
    assert out.read() == "written\nlog lines dropped\nand again\n"


def test_a_closed_pipe_is_counted_and_reported_once_on_the_other_stream(out: Pipe, other: Pipe) -> None:
    before = lost("closed")
    out.close(out.reader)
    writer = LineWriter(out.writer, other.writer)
    say(writer, "x")
    say(writer, "x")
    assert lost("closed") == before + 2
    assert other.read() == "reberth: dropping log lines: Broken pipe\n"


def test_a_closed_descriptor_is_counted(other: Pipe) -> None:
    before = lost("closed")
    gone = os.dup(other.writer)
    os.close(gone)
    say(LineWriter(gone, other.writer), "x")
    assert lost("closed") == before + 1


def test_no_stream_left_to_report_to_is_no_error(full: int) -> None:
    before = lost("no_space")
    say(LineWriter(full, full), "x")
    assert lost("no_space") == before + 1


def test_an_unread_pipe_blocks_once_and_briefly(out: Pipe, other: Pipe) -> None:
    before = lost("stalled")
    writer = LineWriter(out.writer, other.writer)
    started = time.monotonic()
    for _ in range(1000):
        say(writer, "x" * 999)
    assert time.monotonic() - started < 5
    assert lost("stalled") > before + 900
    assert other.read() == "reberth: dropping log lines: the reader is blocked\n"
    taken = out.read()
    say(writer, "after")
    lines = (taken + out.read()).splitlines()
    assert set(lines[:-3]) == {"x" * 999}
    assert lines[-2:] == ["after", "log lines dropped"]


def test_a_line_that_was_torn_does_not_spoil_the_next(out: Pipe, other: Pipe) -> None:
    writer = LineWriter(out.writer, other.writer)
    say(writer, "x" * 10**6)
    torn = out.read()
    say(writer, "whole")
    assert set(torn) == {"x"}
    assert 0 < len(torn) < 10**6
    assert out.read() == "\nwhole\nlog lines dropped\n"


def test_a_long_line_is_written_whole_to_a_file(tmp_path: Path, other: Pipe) -> None:
    with (tmp_path / "log").open("wb") as file:
        say(LineWriter(file.fileno(), other.writer), "x" * 10**6)
    assert (tmp_path / "log").read_text() == "x" * 10**6 + "\n"


def test_another_fault_is_counted_as_such(out: Pipe, other: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    before = lost("other")
    monkeypatch.setattr(os, "write", fail)
    say(LineWriter(out.writer, other.writer), "x")
    assert lost("other") == before + 1


def test_a_record_that_cannot_be_formatted_is_counted(out: Pipe, other: Pipe) -> None:
    before = lost("unprintable")
    writer = LineWriter(out.writer, other.writer)
    writer.handle(logging.makeLogRecord({"msg": "%d", "args": ("x",)}))
    assert lost("unprintable") == before + 1
    assert out.read() == ""
