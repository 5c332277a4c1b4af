"""A program whose output nobody reads any more ends quietly."""

import os
import subprocess
import sys

import pytest

from reberth.cli.pipes import READER_GONE, ending_with_reader

PRINTING = """
import sys
from reberth.cli.pipes import ending_with_reader

@ending_with_reader
def main() -> int:
    print("line " * 100_000)
    return 0

sys.exit(main())
"""


def run_unread(*arguments: str, unbuffered: str = "") -> tuple[int, bytes]:
    """Run Python with a pipe as its output whose other end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
            timeout=60,
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.parametrize("program", ["extender", "federation", "reberth", "rescheduler"])
def test_each_program_ends_quietly(program: str) -> None:
    assert run_unread("-m", program, "--help") == (READER_GONE, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_in_the_midst_of_a_command_ends_it(unbuffered: str) -> None:
    assert run_unread("-c", PRINTING, unbuffered=unbuffered) == (READER_GONE, b"")


def test_another_broken_pipe_is_an_error() -> None:
    def main() -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        ending_with_reader(main)()


def test_the_exit_code_is_that_of_the_program() -> None:
    assert ending_with_reader(lambda: 3)() == 3
