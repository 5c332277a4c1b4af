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
from reberth.values.errors import ApiError, NotFound

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
    """Find kinds by group and kind; of those that nobody has named it is not told that they are not there.

    A group that cannot be asked for is told in any case.
    """
    wanted, found = dict.fromkeys(kinds), []
    asked = dict.fromkeys((*wanted, *unnamed))
    groups = {group: await _read_group(api, group) for group in dict.fromkeys(group for group, _ in asked)}
    for group, kind in asked:
        served = groups[group]
        resource = None if isinstance(served, ApiError) else _find(group, kind, *served)
        if resource is not None:
            found.append(resource)
        elif (group, kind) in wanted or (isinstance(served, ApiError) and not isinstance(served, NotFound)):
            reason = str(served) if isinstance(served, ApiError) else "it is not served"
            log.warning("templates of this kind are not read", kind=f"{group}/{kind}", reason=reason)
    return tuple(found)


async def _read_group(api: Api, group: str) -> tuple[str, _Served] | ApiError:
    """Read the version of a group that its server prefers, and its kinds; or why not."""
    try:
        version = (await api.read_document(join_path("/apis", group), _Group)).preferred_version.version
        return version, await api.read_document(join_path("/apis", group, version), _Served)
    except ApiError as error:
        return error


def _find(group: str, kind: str, version: str, served: _Served) -> Resource[Any] | None:
    for each in served.resources:
        if each.kind == kind and "/" not in each.name:
            return make_custom_resource(
                group, kind, plural=each.name, version=version, namespaced=each.namespaced
            )
    return None
