"""Where the API server has the kinds of other projects that settings name: their plural, and which version.

What is not served is left out, and so is what cannot be asked for now: nothing depends on these kinds.
"""

from collections.abc import Iterable
from typing import Any

from reberth.client.api import Api
from reberth.cluster.custom_kinds import make_custom_resource
from reberth.cluster.kinds import Resource
from reberth.records import Record
from reberth.runtime.logs import Log
from reberth.values.api_path import join_path
from reberth.values.errors import ApiError

log = Log(__name__)


class _Version(Record, frozen=True):
    version: str = ""


class _Group(Record, frozen=True):
    preferred_version: _Version = _Version()


class _ServedKind(Record, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = True


class _Served(Record, frozen=True):
    resources: tuple[_ServedKind, ...] = ()


async def find_custom_resources(
    api: Api, kinds: Iterable[tuple[str, str]], *, unnamed: Iterable[tuple[str, str]] = ()
) -> tuple[Resource[Any], ...]:
    """Find kinds by group and kind; of those that nobody has named it is not told that they are not there."""
    wanted = dict.fromkeys(kinds)
    groups = {group: await _read_group(api, group) for group, _ in (*wanted, *unnamed)}
    found = []
    for group, kind in dict.fromkeys((*wanted, *unnamed)):
        served = groups[group]
        resource = served if isinstance(served, str) else _find(group, kind, *served)
        if not isinstance(resource, str):
            found.append(resource)
        elif (group, kind) in wanted:
            log.warning("templates of this kind are not read", kind=f"{group}/{kind}", reason=resource)
    return tuple(found)


async def _read_group(api: Api, group: str) -> tuple[str, _Served] | str:
    """Read the version of a group that its server prefers, and its kinds; or why not."""
    try:
        version = (await api.read_document(join_path("/apis", group), _Group)).preferred_version.version
        return version, await api.read_document(join_path("/apis", group, version), _Served)
    except ApiError as error:
        return str(error)


def _find(group: str, kind: str, version: str, served: _Served) -> Resource[Any] | str:
    for each in served.resources:
        if each.kind == kind and "/" not in each.name:
            return make_custom_resource(
                group, kind, plural=each.name, version=version, namespaced=each.namespaced
            )
    return "it is not served"
