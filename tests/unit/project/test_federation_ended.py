"""A federation that ended by itself amid a live test is an error, although nothing is left to stop."""

import asyncio
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.live.support.hub_and_members import Place

LOST = "import sys; sys.exit('federation: the lease was lost')"
FOR_EVER = "import signal; print(flush=True); signal.pause()"


async def place_with(code: str, folder: Path) -> tuple[Place, asyncio.subprocess.Process]:
    place = Place(cast("Any", SimpleNamespace(kubeconfig=folder)), cast("Any", None), {}, {})
    place.log = folder / "federation.log"
    with place.log.open("ab") as log:
        place.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=log
        )
    return place, place.process


async def test_a_process_that_ended_by_itself_is_refused_with_its_last_words(tmp_path: Path) -> None:
    place, process = await place_with(LOST, tmp_path)
    await process.wait()
    with pytest.raises(AssertionError, match="by itself, with code 1:\nfederation: the lease was lost"):
        await place.stop()
    assert await place.stop() == 0, "it is told once"


async def test_a_process_that_runs_is_ended_once(tmp_path: Path) -> None:
    place, process = await place_with(FOR_EVER, tmp_path)
    assert process.stdout is not None
    await process.stdout.readline()
    assert await place.stop(signal.SIGKILL) == -signal.SIGKILL
    assert await place.stop() == 0


async def test_what_waits_for_a_process_fails_as_soon_as_that_has_ended(tmp_path: Path) -> None:
    place, _ = await place_with(LOST, tmp_path)
    with pytest.raises(AssertionError, match="by itself"):
        await place.follow(asyncio.sleep(60))


async def test_what_a_process_outlives_is_done(tmp_path: Path) -> None:
    place, process = await place_with(FOR_EVER, tmp_path)
    assert await place.follow(asyncio.sleep(0.01, "done")) == "done"
    assert process.returncode is None
    assert await place.stop(signal.SIGKILL) == -signal.SIGKILL
