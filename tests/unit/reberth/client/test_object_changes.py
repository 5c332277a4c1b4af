"""Who waits for changes of one object is woken by these alone."""

import asyncio
from typing import Any, cast

import pytest

from reberth.client.api import Api
from reberth.client.mirror import Mirror
from reberth.client.watcher import EVERYTHING, WatchSettings
from reberth.cluster.cache import ADDED, DELETED, MODIFIED, Cache
from reberth.cluster.kinds import POD, REPLICA_SET
from reberth.records import Pod, TemplatedOwner
from tests.support.builders import Object, as_record, owner, pod, replica_set


def make_mirror() -> Mirror:
    return Mirror(cast("Api", None), Cache(version=(1, 36)), (), WatchSettings(), EVERYTHING)


def at(version: int, written: Object) -> Object:
    written["metadata"]["resourceVersion"] = str(version)
    return written


def pod_of(number: int, version: int) -> Pod:
    controller = owner("ReplicaSet", f"web-{number}", uid=f"rs-{number}")
    made = pod(f"p-{number}", owned_by=controller, uid=f"u-{number}")
    return as_record(Pod, at(version, made))


def owner_of(number: int, version: int) -> TemplatedOwner:
    made = at(version, replica_set(f"web-{number}"))
    made["metadata"]["uid"] = f"rs-{number}"
    return as_record(TemplatedOwner, made)


async def is_woken(waiting: "asyncio.Task[None]") -> bool:
    for _ in range(3):
        await asyncio.sleep(0)
    return waiting.done()


async def test_a_waiter_is_woken_by_its_object_and_by_the_pods_that_it_controls() -> None:
    mirror = make_mirror()
    with mirror.changes_of("rs-1") as changes:
        for kind, event, subject in (
            (POD, ADDED, pod_of(1, 1)),
            (POD, MODIFIED, pod_of(1, 2)),
            (POD, DELETED, pod_of(1, 3)),
            (REPLICA_SET, ADDED, owner_of(1, 4)),
        ):
            waiting = asyncio.create_task(changes.wait())
            assert not await is_woken(waiting)
            mirror.cache.apply(cast("Any", kind), event, subject)
            assert await is_woken(waiting)


async def test_a_waiter_sleeps_while_others_change() -> None:
    mirror = make_mirror()
    with mirror.changes_of("rs-1") as changes:
        waiting = asyncio.create_task(changes.wait())
        for number in range(2, 50):
            mirror.cache.apply(POD, ADDED, pod_of(number, number))
            mirror.cache.apply(REPLICA_SET, ADDED, owner_of(number, number))
        assert not await is_woken(waiting)
        waiting.cancel()


async def test_a_new_list_wakes_all_and_a_burst_wakes_once() -> None:
    mirror = make_mirror()
    with mirror.changes_of("rs-1") as changes:
        for number in range(3):
            mirror.cache.replace(POD, [pod_of(2, number + 1)], str(number + 1))
        await changes.wait()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await changes.wait()
        mirror.cache.apply(POD, ADDED, pod_of(1, 9))
        await changes.wait()  # a wait that was cancelled has lost nothing
