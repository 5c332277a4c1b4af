"""Kinds of controllers that are not known beforehand: those that settings name, or that a file contains.

Each of them exists once, so that whoever reads its objects finds what another one has cached. A pod's
reference to its owner makes none: anybody may invent such names.
"""

from reberth.cluster.kinds import Kind, Resource, plain_kind
from reberth.records import CustomOwner

CustomKind = Kind[CustomOwner, CustomOwner]

_known: dict[tuple[str, str], CustomKind] = {}


def find_custom_kind(group: str, name: str) -> CustomKind | None:
    """Find a kind that was made before."""
    return _known.get((group, name))


def make_custom_resource(
    group: str, name: str, *, plural: str, version: str = "v1", namespaced: bool = True
) -> Resource[CustomOwner]:
    """Make the kind, if it is new, and give its place in the API."""
    kind = _known.setdefault((group, name), plain_kind(name, CustomOwner, group))
    return Resource(kind, plural, version, namespaced, is_optional=True, is_custom=True)
