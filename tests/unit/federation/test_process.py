"""Which controllers a federation runs: each may be switched off, and takes no other with it."""

from typing import cast

import msgspec
import pytest

from federation.hub.hub import Desk
from federation.hub.object_api import ObjectApi
from federation.hub.work_index import WorkIndex
from federation.objects.cache import NoticingCache
from federation.process import Federation
from federation.settings import FederationSettings, Switches
from reberth.client.access import Access
from reberth.client.events import Recorder

SWITCHES = [field.name for field in msgspec.structs.fields(Switches)]
ALWAYS = {"Sessions", "Discovery"}


def make(**switches: bool) -> list[str]:
    """Name what is made; nothing of it runs."""
    cache = NoticingCache(lambda _kind, _record: None, version=(1, 36))
    desk = Desk(cast("ObjectApi", None), cache, cast("Recorder", None), lambda: 0.0)
    settings = FederationSettings(controllers=Switches(**switches))
    made = Federation(Access(None), settings)._make(desk, WorkIndex(desk))
    return [type(each).__name__ for each in made]


async def test_all_are_on_unless_somebody_says_otherwise() -> None:
    assert len(make()) == len(set(make())) == len(SWITCHES) + len(ALWAYS)


@pytest.mark.parametrize("switch", SWITCHES)
async def test_each_may_be_switched_off_alone(switch: str) -> None:
    assert set(make()) - set(make(**{switch: False})) == {switch.capitalize()}


async def test_without_members_and_execution_no_member_is_called() -> None:
    assert set(make()) - set(make(members=False, execution=False)) == {"Members", "Execution", "Sessions"}
