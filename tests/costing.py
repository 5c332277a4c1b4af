"""CPU time of some work, and the garbage collector while it is measured."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
