"""Sessions that break by themselves."""

import asyncio

import pytest

from federation.hub.sessions import Sessions, SessionSettings
from federation.objects import resources
from tests.support.federation.fake_hub import FakeHub

pytestmark = pytest.mark.looptime


class BreakingSessions(Sessions):
    """Opens a session that breaks after a second; `opened` counts them."""

    opened = 0

    async def _mirror(self, name: str, path: str) -> None:
        assert path
        self.opened += 1
        self._open[name] = None  # type: ignore[assignment]
        await asyncio.sleep(1)
        raise RuntimeError("a fault of ours")


async def test_a_session_that_broke_is_not_shown_as_open_and_is_opened_again(faults: list[str]) -> None:
    hub = FakeHub(resources.CLUSTERS)
    sessions = BreakingSessions(hub.hub, SessionSettings())
    sessions._tasks["m1"] = asyncio.create_task(sessions._serve("m1", b"{}"))
    await asyncio.sleep(0.5)
    assert "m1" in sessions._open
    await asyncio.sleep(1)
    assert "m1" not in sessions._open
    assert sessions.problems["m1"] == "internal error"
    assert len(sessions._queue) == 0
    await asyncio.sleep(5)
    assert len(sessions._queue) == 1, "it is looked at again soon, not with the next look at its Secret"
    assert faults
    faults.clear()
