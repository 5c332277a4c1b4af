"""The daemon's reports about its caches."""

from types import SimpleNamespace
from typing import Any, cast

from reberth.client.lease import LeaseSettings
from reberth.cluster.kinds import POD
from reberth.values.refusal import Refused
from rescheduler.daemon.pause import PauseWatch
from rescheduler.daemon.resources import DaemonResources
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.observe.cache import NotifyingCache
from rescheduler.observe.needed_kinds import FOR_THE_DAEMON
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings


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
        cache=NotifyingCache(version=(1, 36)),
        mirror=mirror,
        extenders=nothing,
        pause=pause,
        extender_health=cast("Any", SimpleNamespace(refused=away)),
        recorder=nothing,
        forecast=nothing,
        identity="me",
        settings=ReschedulerSettings,
        policy=lambda: policy or ReschedulerPolicy(),
    )


def watcher(*, synced: bool = True, trouble: str | None = None, age: float = 40.0) -> Any:
    return SimpleNamespace(is_synced=synced, trouble=trouble, age=age)


def test_a_cache_ages_without_a_connection_and_not_without_events() -> None:
    found = resources(pods=watcher(trouble="silent"), services=watcher()).find_cache_ages()
    assert (found["pods"], found["services"], found["nodes"]) == (40.0, 0.0, 0.0)


def test_a_broken_watch_of_what_only_informs_is_a_warning() -> None:
    broken, well = watcher(trouble="watch: 403 forbidden"), watcher()
    found = resources(nodeclaims=broken, nodepools=well, services=watcher(trouble="silent"))
    assert set(found.find_cache_ages()) == {*FOR_THE_DAEMON, "services"}
    assert list(found.list_warnings()) == ["planned with old nodeclaims: watch: 403 forbidden"]


def test_a_cache_that_never_synced_has_no_age_and_is_reported() -> None:
    absent = watcher(synced=False, trouble="not installed in this cluster", age=float("inf"))
    forbidden = watcher(synced=False, trouble="list: 403 forbidden", age=float("inf"))
    found = resources(nodeplacementscores=absent, csinodes=forbidden)
    assert set(found.find_cache_ages()) == set(FOR_THE_DAEMON)
    assert list(found.list_warnings()) == ["planned without csinodes: list: 403 forbidden"]
    assert list(found.list_missing()) == []


def test_extenders_that_cannot_be_reached_are_named() -> None:
    found = resources(away=Refused("ExtendersUnreachable", "no extender can be reached"))
    assert list(found.list_warnings()) == ["ExtendersUnreachable: no extender can be reached"]


def test_needed_caches_that_are_not_synced_are_named() -> None:
    found = resources(moveledgers=watcher(synced=False, trouble="not installed in this cluster"))
    assert list(found.list_missing()) == ["moveledgers: not installed in this cluster"]
    assert list(found.list_warnings()) == []


def test_moves_wait_until_pods_are_read_with_the_annotations_that_protect_them() -> None:
    asked: list[str] = []
    pods = SimpleNamespace(is_synced=True, trouble=None, age=0.0, resync=lambda: asked.append("pods"))
    protections = ProtectionSettings(protected_pod_annotations=("example.com/pinned", "example.com/a=b"))
    found = resources(policy=ReschedulerPolicy(protections=protections), pods=pods)
    names = "example.com/a, example.com/pinned"
    expected = Refused("StaleMirror", f"pods are being read again, with the annotations {names}")
    assert found.refuse_unread_annotations() == expected
    found.keep_annotations()
    found.keep_annotations()
    assert asked == ["pods"]
    assert found.refuse_unread_annotations() == expected
    found.cache.replace(POD, [], "1")
    assert found.refuse_unread_annotations() is None
    assert resources().refuse_unread_annotations() is None
