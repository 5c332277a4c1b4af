"""The daemon's reports about its caches."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reberth.client.lease import LeaseSettings
from reberth.cluster.kinds import ALL_RESOURCES, POD
from reberth.values.refusal import Refused
from rescheduler.daemon.pause import PauseWatch
from rescheduler.daemon.resources import DaemonResources
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.observe.cache import NotifyingCache
from rescheduler.observe.needed_kinds import FOR_THE_DAEMON
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from tests.support.rescheduler.plans import PLAIN_MODEL

UNREAD = frozenset({"nodeplacementscores", "resourcequotas"})
"""What a plan can do without where the policy ignores quotas and the scheduler does not call the extender."""


def resources(
    *, away: Refused | None = None, policy: ReschedulerPolicy | None = None, **watchers: Any
) -> DaemonResources:
    well = {name: watcher() for name in FOR_THE_DAEMON}
    mirror: Any = SimpleNamespace(watchers={**well, **watchers})
    nothing = cast("Any", None)
    pause = PauseWatch(nothing, LeaseSettings(), on_end=lambda: None)
    return DaemonResources(
        api=nothing,
        clock=lambda: 0.0,
        lease_api=nothing,
        review_api=nothing,
        cache=NotifyingCache(version=(1, 36)),
        mirror=mirror,
        extenders=nothing,
        pause=pause,
        extender_health=cast("Any", SimpleNamespace(refused=away)),
        recorder=nothing,
        forecast=cast("Any", SimpleNamespace(model=PLAIN_MODEL, list_warnings=list)),
        identity="me",
        settings=ReschedulerSettings,
        policy=lambda: policy or ReschedulerPolicy(),
    )


class FakeWatcher:
    """One kind's watcher; `come` is its first list, `refuse` an answer that is none."""

    def __init__(
        self,
        *,
        synced: bool = True,
        answered: bool = True,
        trouble: str | None = None,
        age: float = 40.0,
        listed: int = 0,
        is_custom: bool = False,
    ) -> None:
        self.resource = SimpleNamespace(is_custom=is_custom)
        self.trouble, self.age, self.listed = trouble, age, listed
        self._synced, self._answered = asyncio.Event(), asyncio.Event()
        if synced:
            self._synced.set()
        if synced or answered:
            self._answered.set()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    @property
    def is_answered(self) -> bool:
        return self._answered.is_set()

    async def synced(self) -> None:
        await self._synced.wait()

    async def answered(self) -> None:
        await self._answered.wait()

    def come(self) -> None:
        self._synced.set()
        self._answered.set()
        self.trouble = None

    def refuse(self) -> None:
        self._answered.set()
        self.trouble = "403 forbidden"


def watcher(**state: Any) -> Any:
    return FakeWatcher(**state)


def listing(count: int = 0) -> Any:
    return FakeWatcher(synced=False, answered=False, trouble="not listed yet", listed=count)


def test_a_cache_ages_without_a_connection_and_not_without_events() -> None:
    found = resources(pods=watcher(trouble="silent"), services=watcher()).find_cache_ages()
    assert (found["pods"], found["services"], found["nodes"]) == (40.0, 0.0, 0.0)


def test_a_broken_watch_of_what_only_informs_is_a_warning() -> None:
    broken, well = watcher(trouble="watch: 403 forbidden"), watcher()
    found = resources(nodeclaims=broken, nodepools=well, services=watcher(trouble="silent"))
    assert set(found.find_cache_ages()) == {*FOR_THE_DAEMON, "services"}
    assert list(found.list_warnings()) == ["planned with old nodeclaims: watch: 403 forbidden"]


def test_a_broken_watch_of_another_projects_kind_is_a_warning() -> None:
    found = resources(**{"clonesets.apps.kruise.io": watcher(trouble="503 unavailable", is_custom=True)})
    assert set(found.find_cache_ages()) == set(FOR_THE_DAEMON)
    assert list(found.list_warnings()) == ["planned with old clonesets.apps.kruise.io: 503 unavailable"]


def test_a_cache_that_never_synced_has_no_age_and_is_reported() -> None:
    absent = watcher(synced=False, trouble="not installed in this cluster", age=float("inf"))
    forbidden = watcher(synced=False, trouble="list: 403 forbidden", age=float("inf"))
    found = resources(rollouts=absent, csinodes=forbidden, nodeplacementscores=forbidden)
    assert set(found.find_cache_ages()) == set(FOR_THE_DAEMON)
    assert list(found.list_warnings()) == ["planned without csinodes: list: 403 forbidden"]
    assert list(found.list_awaited()) == []


def test_extenders_that_cannot_be_reached_are_named() -> None:
    found = resources(away=Refused("ExtendersUnreachable", "no extender can be reached"))
    assert list(found.list_warnings()) == ["ExtendersUnreachable: no extender can be reached"]


def test_needed_caches_that_are_not_synced_are_named() -> None:
    found = resources(moveledgers=watcher(synced=False, trouble="not installed in this cluster"))
    assert list(found.list_awaited()) == ["moveledgers: not installed in this cluster"]
    assert list(found.list_warnings()) == []


def test_moves_wait_until_pods_are_read_with_the_annotations_that_protect_them() -> None:
    asked: list[str] = []
    pods = watcher()
    pods.resync = lambda: asked.append("pods")
    protections = ProtectionSettings(protected_pod_annotations=("example.com/pinned", "example.com/a=b"))
    found = resources(policy=ReschedulerPolicy(protections=protections), pods=pods)
    names = "example.com/a, example.com/pinned"
    expected = Refused("StaleMirror", f"pods are being read again, with the annotations {names}")
    assert found.refuse_unread() == expected
    found.keep_annotations()
    found.keep_annotations()
    assert asked == ["pods"]
    assert found.refuse_unread() == expected
    found.cache.replace(POD, [], "1")
    assert found.refuse_unread() is None
    assert resources().refuse_unread() is None


async def wait(found: DaemonResources) -> float:
    """How long it waited."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await found.wait_until_synced()
    return loop.time() - began


@pytest.mark.looptime
@pytest.mark.parametrize("name", sorted({each.name for each in ALL_RESOURCES} - UNREAD))
async def test_a_plan_waits_for_each_kind_that_it_reads(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rescheduler")
    late = listing(45_000)
    found = resources(**{name: late})
    said = f"{name}: not listed yet, 45,000 objects so far"
    assert list(found.list_awaited()) == [said]
    assert found.refuse_unread() == Refused("StaleMirror", f"not all caches are synced: {said}")
    asyncio.get_running_loop().call_later(12.5, late.come)
    assert await wait(found) == 12.5
    assert [vars(record)["fields"] for record in caplog.records] == [{"caches": said}] * 2
    assert found.refuse_unread() is None


@pytest.mark.looptime
@pytest.mark.parametrize("name", sorted(UNREAD))
async def test_a_plan_waits_for_no_kind_that_it_does_not_read(name: str) -> None:
    settings = ReschedulerPolicy(protections=ProtectionSettings(quotas=False))
    found = resources(policy=settings, **{name: listing()})
    assert await wait(found) == 0
    assert found.refuse_unread() is None
    assert (list(found.list_awaited()), list(found.list_warnings())) == ([], [])


@pytest.mark.looptime
@pytest.mark.parametrize(("name", "waits"), [("services", False), ("moveledgers", True)])
async def test_a_refused_kind_is_waited_for_only_where_it_is_needed(name: str, *, waits: bool) -> None:
    refused = listing()
    found = resources(**{name: refused})
    asyncio.get_running_loop().call_later(1, refused.refuse)
    asyncio.get_running_loop().call_later(60, refused.come)
    assert await wait(found) == (60 if waits else 1)


def test_moves_wait_for_a_kind_that_only_the_changed_policy_reads() -> None:
    policies = [ReschedulerPolicy(protections=ProtectionSettings(quotas=False)), ReschedulerPolicy()]
    said = [resources(policy=each, resourcequotas=listing()).refuse_unread() for each in policies]
    reason = "not all caches are synced: resourcequotas: not listed yet"
    assert said == [None, Refused("StaleMirror", reason)]
