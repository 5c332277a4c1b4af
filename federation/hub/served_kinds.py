"""What an API server serves: its group versions, and the kinds of each.

Members are not ours: an entry that no honest API server has is left out, and of very many the rest.
"""

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from federation.hub.object_api import ObjectApi
from reberth.values.api_path import join_path
from reberth.values.errors import ApiError

CORE = "v1"
_MOST_VERSIONS, _MOST_KINDS = 1_000, 5_000
_LONGEST_NAME = 253
_AT_ONCE = 4
"""Calls; each has a connection of its own, and twenty for each member are many handshakes at once."""
_PLURAL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_GROUP_VERSION = re.compile(r"[a-z0-9][-a-z0-9.]{0,252}/[a-z0-9]{1,63}")


class ServedKind(NamedTuple):
    """A kind, and its plural, which stands in paths."""

    name: str
    kind: str
    namespaced: bool


class ServedApis(NamedTuple):
    """The kinds of the group versions that answer, and the group versions that do not."""

    kinds: dict[str, tuple[ServedKind, ...]]
    silent: tuple[str, ...]


async def list_served(api: ObjectApi, wanted: Collection[str] | None = None) -> ServedApis:
    """List the kinds of all group versions, or of those that are wanted. Raises ApiError.

    One that does not answer, as an aggregated API whose server is away, keeps none of the others.
    """
    versions = [each for each in await list_group_versions(api) if wanted is None or each in wanted]
    places = asyncio.Semaphore(_AT_ONCE)
    found = await asyncio.gather(*(_list_kinds_if_any(api, each, places) for each in versions))
    kinds = {name: each for name, each in zip(versions, found, strict=True) if each is not None}
    return ServedApis(kinds, tuple(name for name in versions if name not in kinds))


async def _list_kinds_if_any(
    api: ObjectApi, group_version: str, places: asyncio.Semaphore
) -> tuple[ServedKind, ...] | None:
    try:
        async with places:
            return await list_kinds(api, group_version)
    except ApiError:
        return None


async def list_group_versions(api: ObjectApi) -> tuple[str, ...]:
    """List all group versions, the core first."""
    groups = await api.read_path("/apis", subject="apis")
    found = {version for group in _entries(groups, "groups") for version in _read_versions(group)}
    return CORE, *sorted(found)[:_MOST_VERSIONS]


async def list_kinds(api: ObjectApi, group_version: str) -> tuple[ServedKind, ...]:
    """List the kinds of a group version, without subresources."""
    root = "/api" if group_version == CORE else "/apis"
    served = await api.read_path(join_path(root, *group_version.split("/")), subject="apis")
    return tuple(sorted(set(_read_kinds(served)))[:_MOST_KINDS])


def _read_versions(group: Mapping[str, Any]) -> Iterator[str]:
    for version in _entries(group, "versions"):
        text = version.get("groupVersion")
        if isinstance(text, str) and len(text) <= _LONGEST_NAME and _GROUP_VERSION.fullmatch(text):
            yield text


def _read_kinds(served: Mapping[str, Any]) -> Iterator[ServedKind]:
    for each in _entries(served, "resources"):
        match each:
            case {"name": str(name), "kind": str(kind), "namespaced": bool(namespaced)} if (
                len(name) <= _LONGEST_NAME and 0 < len(kind) <= _LONGEST_NAME and _PLURAL.fullmatch(name)
            ):
                yield ServedKind(name, kind, namespaced)


def _entries(value: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    found = value.get(name)
    yield from (each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
