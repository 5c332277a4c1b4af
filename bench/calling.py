"""The command line of a measurement: numbers as options, one line on failure, else its section."""

import argparse
import asyncio
import sys
from collections.abc import Coroutine, Iterable

from bench import sections

# An option, its default, and what it counts.
Number = tuple[str, int, str]


def add_numbers(parser: argparse.ArgumentParser, numbers: Iterable[Number]) -> None:
    for flag, default, meaning in numbers:
        parser.add_argument(
            flag, type=positive, default=default, metavar="N", help=f"{meaning} (default {default})"
        )


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def run(name: str, measuring: Coroutine[None, None, str], *failures: type[Exception]) -> int:
    """Measure and write the section of this name if there is one; exit code 1 for such a failure."""
    try:
        text = asyncio.run(measuring)
    except failures as error:
        print(f"bench.{name}: {error}", file=sys.stderr)
        return 1
    if text:
        print(text)
        print(f"written to {sections.write(name, text)}")
    return 0
