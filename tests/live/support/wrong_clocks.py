"""Processes whose machine's clock is wrong."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from localcluster.host import processes
from localproduct.processes import NO_CHANGES
from tests.live.support.extender_process import Extending

_FOLDER = Path(__file__).parent / "clock_ahead"


def ahead(seconds: float) -> dict[str, str]:
    """The environment of a process whose clock is so far ahead."""
    path = os.pathsep.join(filter(None, (str(_FOLDER), os.environ.get("PYTHONPATH"))))
    return {"PYTHONPATH": path, "REBERTH_CLOCK_AHEAD": str(seconds)}


@asynccontextmanager
async def extenders_ahead(extender: Extending, seconds: Sequence[float]) -> AsyncIterator[None]:
    """Set the clock of each replica of the extender, and right again in the end."""
    await _restart(extender, [ahead(each) for each in seconds])
    try:
        yield
    finally:
        await _restart(extender, [NO_CHANGES] * len(extender.replicas))


async def _restart(extender: Extending, changes: Sequence[Mapping[str, str]]) -> None:
    for replica, env in zip(extender.replicas, changes, strict=True):
        await processes.stop(replica.process)
        replica.start(dies_with_parent=True, env=env)
    for number in range(len(extender.replicas)):
        await extender.ready(number)
