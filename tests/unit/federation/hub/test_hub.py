import sys
from typing import Any, cast

import msgspec

from federation.hub.hub import Hub
from federation.hub.object_api import ObjectApi
from federation.objects.cache import NotifyingCache
from federation.objects.resources import BINDINGS
from federation.objects.template import Object
from reberth.client.events import EventRecorder
from tests.support.federation.objects import NOW, claimed_binding


class FakeHub:
    """Gives every patched object the version that is due."""

    version = 20

    async def merge(self, _: Any, __: str, patch: Object, **___: Any) -> Any:
        return versioned(self.version, **patch)


def versioned(version: int, *, uid: str = "u", **spec: Any) -> Any:
    one = claimed_binding(**spec)
    meta = msgspec.structs.replace(one.metadata, uid=uid, resource_version=str(version))
    return msgspec.structs.replace(one, metadata=meta)


def make() -> tuple[Hub, NotifyingCache, list[float]]:
    cache, now = NotifyingCache(lambda _, __: None, version=(1, 36)), [NOW]
    return Hub(cast("ObjectApi", FakeHub()), cache, cast("EventRecorder", None), lambda: now[0]), cache, now


def found(hub: Hub) -> int | None:
    one = hub.find(BINDINGS, "default", "web-deployment")
    return one and int(one.metadata.resource_version)


async def patch(hub: Hub) -> None:
    await hub.patch(BINDINGS, versioned(10), {"replicas": 5})


async def test_a_written_object_is_served_until_the_cache_is_as_new() -> None:
    hub, cache, _ = make()
    cache.apply(BINDINGS.kind, "ADDED", versioned(10))
    await patch(hub)
    assert found(hub) == 20
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(15))
    assert found(hub) == 20
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(25))
    assert found(hub) == 25


async def test_a_deleted_or_recreated_object_replaces_the_written_one() -> None:
    hub, cache, _ = make()
    await patch(hub)
    assert found(hub) is None
    cache.apply(BINDINGS.kind, "ADDED", versioned(12))
    assert found(hub) == 12
    await patch(hub)
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(13, uid="another"))
    assert found(hub) == 13


async def test_after_some_time_the_mirror_is_believed() -> None:
    """Such as of an API server that was set back."""
    hub, cache, now = make()
    cache.apply(BINDINGS.kind, "ADDED", versioned(10))
    await patch(hub)
    now[0] += 61
    assert found(hub) == 10


async def test_a_written_object_is_let_go_as_soon_as_the_cache_has_it() -> None:
    """It keeps the whole answer in memory, and nobody may ask for it again."""
    hub, cache, _ = make()
    cache.apply(BINDINGS.kind, "ADDED", versioned(10))
    await patch(hub)
    written = hub.find(BINDINGS, "default", "web-deployment")
    holders = sys.getrefcount(written)
    newer = versioned(20)
    cache.apply(BINDINGS.kind, "MODIFIED", newer)
    hub.on_change(BINDINGS, newer)
    assert sys.getrefcount(written) == holders - 1
