"""Measure the CPU time of work with few garbage collections; a plain JSON decoder to compare with."""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import decoder, scanner


def cost(work: Callable[[], object]) -> float:
    begin = time.process_time()
    made = work()
    spent = time.process_time() - begin
    del made  # Only now: to throw a result away is no part of the work.
    return spent


@contextmanager
def few_collections() -> Iterator[None]:
    """Let the collector overlook what is there already, as a daemon does after its start."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class PlainDecoder(json.JSONDecoder):
    """The standard library's own JSON decoder without its C: a yardstick for work that Python interprets.

    What the C decoder costs beside such work varies twofold from one processor to another.
    """

    def __init__(self) -> None:
        super().__init__()
        self.parse_string = decoder.py_scanstring  # type: ignore[attr-defined]  # left out of the stubs
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # likewise
