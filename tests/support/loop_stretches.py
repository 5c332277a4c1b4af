"""Measures how long the event loop is busy at a time, by the CPU time of its own thread."""

import time
from asyncio import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def measuring_stretches() -> Iterator[list[float]]:
    """Collect what each callback costs: a step of a task is one, and nothing else runs meanwhile."""
    spent: list[float] = []
    run = Handle._run

    def measure(handle: Handle) -> None:
        began = time.thread_time()
        try:
            run(handle)
        finally:
            spent.append(time.thread_time() - began)

    with patch.object(Handle, "_run", measure):
        yield spent
