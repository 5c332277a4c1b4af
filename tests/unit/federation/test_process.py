"""Which controllers a federation runs: each may be switched off, and takes no other with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest

from federation.api import ResourceBinding
from federation.controllers.failover.pending_replicas import PendingReplicasSettings
from federation.controllers.propagation.works import WorksController
from federation.failover.pending_replicas import PendingRules
from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.cache import NotifyingCache
from federation.process import _HUB, Federation, wait_for_caches
from federation.settings import FederationSettings, Switches
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.events import EventRecorder
from reberth.client.mirror import mirroring
from reberth.client.watcher import WatchSettings
from reberth.cluster.cache import ADDED, BOOKMARK, MODIFIED
from reberth.cluster.kinds import Resource
from reberth.protocol.response import WatchEvent
from reberth.values.duration import Duration
from reberth.values.errors import ApiError, Forbidden, NotFound, Unauthorized
from tests.support.federation.objects import bare_cluster, claimed_binding

SWITCHES = [field.name for field in msgspec.structs.fields(Switches)]
ALWAYS = {"Sessions", "DiscoveryController"}


def make(**switches: bool) -> list[str]:
    """Name what is made; nothing of it runs."""
    cache = NotifyingCache(lambda _kind, _record: None, version=(1, 36))
    hub = Hub(cast("ObjectApi", None), cache, cast("EventRecorder", None), lambda: 0.0)
    pending = PendingReplicasSettings(longer_than=Duration(300))
    settings = FederationSettings(controllers=Switches(**switches), pending_replicas=pending)
    made = Federation(Access(None), settings)._make(hub, WorkIndex(hub))
    return [type(each).__name__ for each in made]


async def test_all_controllers_are_enabled_by_default() -> None:
    assert len(make()) == len(set(make())) == len(SWITCHES) + len(ALWAYS)


@pytest.mark.parametrize("switch", SWITCHES)
async def test_each_may_be_switched_off_alone(switch: str) -> None:
    name = "".join(part.capitalize() for part in switch.split("_"))
    by_scheduler = {"ApplicationFailoverController", "PendingReplicasController"}
    needs_it = by_scheduler if switch == "scheduler" else set()
    assert set(make()) - set(make(**{switch: False})) == {f"{name}Controller"} | needs_it


async def test_without_members_and_execution_no_member_is_called() -> None:
    assert set(make()) - set(make(members=False, execution=False)) == {
        "MembersController",
        "ExecutionController",
        "Sessions",
        "TokensController",
        "NamespacesController",
        "PendingReplicasController",
    }


def test_replicas_without_a_node_stay_unless_it_is_said_after_which_time_they_go() -> None:
    assert FederationSettings().pending_replicas.rules() is None
    said = PendingReplicasSettings(longer_than=Duration(300)).rules()
    assert said == PendingRules(300, 600)


class _Recorder:
    """A controller that only remembers of what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_change(self, resource: Resource[Any], record: Any) -> None:
        self.told.append(f"{resource.kind.name} {record.metadata.name}")

    async def run(self) -> None:
        """There is nothing to do."""


async def test_controllers_are_told_of_bindings_first_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of two workloads gets the room must not depend on the order of a list."""
    recorder, federation = _Recorder(), Federation(Access(None), FederationSettings())
    cache = federation._cache
    cache.replace(resources.CLUSTERS.kind, [bare_cluster("m1")], "1")
    cache.replace(resources.BINDINGS.kind, [claimed_binding(name=name) for name in ("c", "a", "b")], "1")
    monkeypatch.setattr(federation, "_make", lambda _hub, _index: [recorder])
    hub = Hub(cast("ObjectApi", None), cache, cast("EventRecorder", None), lambda: 0.0)
    async with federation._controllers(hub):
        names = [*(f"ResourceBinding {name}" for name in "abc"), "Cluster m1"]
        assert recorder.told == names


class _Planner(_Recorder, WorksController):
    """A controller whose writes do not follow from what is reported."""


async def test_a_mere_report_is_told_only_to_whom_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, planner, federation = _Recorder(), _Planner(), Federation(Access(None), FederationSettings())
    cache = federation._cache
    monkeypatch.setattr(federation, "_make", lambda _hub, _index: [recorder, planner])
    hub = Hub(cast("ObjectApi", None), cache, cast("EventRecorder", None), lambda: 0.0)
    async with federation._controllers(hub):
        cache.apply(resources.BINDINGS.kind, ADDED, _binding(1, generation=1))
        cache.apply(resources.BINDINGS.kind, MODIFIED, _binding(2, generation=1))
        assert (len(recorder.told), len(planner.told)) == (2, 1)
        cache.apply(resources.BINDINGS.kind, MODIFIED, _binding(3, generation=2))
        assert (len(recorder.told), len(planner.told)) == (3, 2)


def _binding(version: int, *, generation: int) -> ResourceBinding:
    one = claimed_binding()
    meta = msgspec.structs.replace(
        one.metadata, uid="u", resource_version=str(version), generation=generation
    )
    return msgspec.structs.replace(one, metadata=meta)


class _Answers:
    """Lists every kind as empty, but refuses to list customizations."""

    def __init__(self, refusal: ApiError) -> None:
        self.refusal: ApiError | None = refusal

    @asynccontextmanager
    async def watch(self, resource: Resource[Any], **_: Any) -> AsyncIterator[AsyncIterator[Any]]:
        if resource is resources.INTERPRETERS and self.refusal is not None:
            raise self.refusal
        yield self._end_list()

    async def _end_list(self) -> AsyncIterator[Any]:
        end = {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": "7", "name": "-"}
        yield WatchEvent(BOOKMARK, msgspec.convert({"metadata": end}, resources.LOGINS.record))
        await asyncio.Event().wait()


REFUSED = "customizations cannot be listed"


@pytest.mark.looptime
@pytest.mark.parametrize(
    "refusal", [Forbidden("watch", REFUSED, status=403), Unauthorized("watch", REFUSED, status=401)]
)
async def test_nothing_begins_before_the_interpreters_are_known(refusal: ApiError) -> None:
    api, cache = _Answers(refusal), NotifyingCache(lambda _kind, _record: None, version=(1, 36))
    async with mirroring(cast("Api", api), cache, _HUB, settings=WatchSettings()) as mirror:
        waiting = asyncio.create_task(wait_for_caches(mirror))
        await asyncio.sleep(60)
        assert not waiting.done()
        api.refusal = None
        await asyncio.wait_for(waiting, 60)


@pytest.mark.looptime
async def test_a_hub_without_their_definition_has_no_interpreters() -> None:
    api = _Answers(NotFound("watch", "the server could not find the requested resource", status=404))
    cache = NotifyingCache(lambda _kind, _record: None, version=(1, 36))
    async with mirroring(cast("Api", api), cache, _HUB, settings=WatchSettings()) as mirror:
        await asyncio.wait_for(wait_for_caches(mirror), 10)
