from typing import Any, cast

import msgspec

from federation.hub.hub import Desk
from federation.hub.object_api import ObjectApi
from federation.objects.cache import NoticingCache
from federation.objects.resources import BINDINGS
from federation.objects.template import Object
from reberth.client.events import Recorder
from tests.support.federation.objects import NOW, binding


class Hub:
    """Gives every patched object the version that is due."""

    version = 20

    async def merge(self, _: Any, __: str, patch: Object, **___: Any) -> Any:
        return versioned(self.version, **patch)


def versioned(version: int, *, uid: str = "u", **spec: Any) -> Any:
    one = binding(**spec)
    meta = msgspec.structs.replace(one.metadata, uid=uid, resource_version=str(version))
    return msgspec.structs.replace(one, metadata=meta)


def make() -> tuple[Desk, NoticingCache, list[float]]:
    cache, now = NoticingCache(lambda _, __: None, version=(1, 36)), [NOW]
    return Desk(cast("ObjectApi", Hub()), cache, cast("Recorder", None), lambda: now[0]), cache, now


def found(desk: Desk) -> int | None:
    one = desk.find(BINDINGS, "default", "web-deployment")
    return one and int(one.metadata.resource_version)


async def patch(desk: Desk) -> None:
    await desk.patch(BINDINGS, versioned(10), {"replicas": 5})


async def test_what_was_written_is_found_until_the_mirror_is_as_new() -> None:
    desk, cache, _ = make()
    cache.apply(BINDINGS.kind, "ADDED", versioned(10))
    await patch(desk)
    assert found(desk) == 20
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(15))
    assert found(desk) == 20
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(25))
    assert found(desk) == 25


async def test_what_is_gone_or_another_object_is_not_what_was_written() -> None:
    desk, cache, _ = make()
    await patch(desk)
    assert found(desk) is None
    cache.apply(BINDINGS.kind, "ADDED", versioned(12))
    assert found(desk) == 12
    await patch(desk)
    cache.apply(BINDINGS.kind, "MODIFIED", versioned(13, uid="another"))
    assert found(desk) == 13


async def test_after_some_time_the_mirror_is_believed() -> None:
    """Such as of an API server that was set back."""
    desk, cache, now = make()
    cache.apply(BINDINGS.kind, "ADDED", versioned(10))
    await patch(desk)
    now[0] += 61
    assert found(desk) == 10
