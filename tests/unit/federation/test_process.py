"""Which controllers a federation runs: each may be switched off, and takes no other with it."""

from typing import cast

import msgspec
import pytest

from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.work_index import WorkIndex
from federation.objects.cache import NotifyingCache
from federation.process import Federation
from federation.settings import FederationSettings, Switches
from reberth.client.access import Access
from reberth.client.events import EventRecorder

SWITCHES = [field.name for field in msgspec.structs.fields(Switches)]
ALWAYS = {"Sessions", "DiscoveryController"}


def make(**switches: bool) -> list[str]:
    """Name what is made; nothing of it runs."""
    cache = NotifyingCache(lambda _kind, _record: None, version=(1, 36))
    hub = Hub(cast("ObjectApi", None), cache, cast("EventRecorder", None), lambda: 0.0)
    settings = FederationSettings(controllers=Switches(**switches))
    made = Federation(Access(None), settings)._make(hub, WorkIndex(hub))
    return [type(each).__name__ for each in made]


async def test_all_controllers_are_enabled_by_default() -> None:
    assert len(make()) == len(set(make())) == len(SWITCHES) + len(ALWAYS)


@pytest.mark.parametrize("switch", SWITCHES)
async def test_each_may_be_switched_off_alone(switch: str) -> None:
    assert set(make()) - set(make(**{switch: False})) == {f"{switch.capitalize()}Controller"}


async def test_without_members_and_execution_no_member_is_called() -> None:
    assert set(make()) - set(make(members=False, execution=False)) == {
        "MembersController",
        "ExecutionController",
        "Sessions",
        "TokensController",
        "NamespacesController",
    }
