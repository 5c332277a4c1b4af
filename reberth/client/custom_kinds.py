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


async def find_custom_resources(api: Api, kinds: Iterable[tuple[str, str]]) -> tuple[Resource[Any], ...]:
    """Find the kinds that are named by group and kind."""
    found = [await _find(api, group, kind) for group, kind in kinds]
    return tuple(each for each in found if each is not None)


async def _find(api: Api, group: str, kind: str) -> Resource[Any] | None:
    try:
        version = (await api.read_document(join_path("/apis", group), _Group)).preferred_version.version
        served = await api.read_document(join_path("/apis", group, version), _Served)
    except ApiError as error:
        log.warning("templates of this kind are not read", kind=f"{group}/{kind}", reason=str(error))
        return None
    for each in served.resources:
        if each.kind == kind and "/" not in each.name:
            return make_custom_resource(
                group, kind, plural=each.name, version=version, namespaced=each.namespaced
            )
    log.warning("templates of this kind are not read", kind=f"{group}/{kind}", reason="it is not served")
    return None
