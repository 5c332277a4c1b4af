"""The table of kinds: where their replicas and pods are described, and what their statuses mean."""

from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import msgspec
import yaml

from reberth.other_projects.rules import Check, count_at, holds, read

_MOST_DIGITS = 10


class KindRollout(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How an object of a kind looks while its pods are being replaced by others of a new version."""

    begun: tuple[Check, ...]
    available: str
    wanted: str
    max_unavailable: str
    """Where the object says how many pods a rollout may leave out: a number, or a percentage."""
    default: str
    """What counts where it does not say it."""


class OtherKind(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is known of a kind, in any of its versions."""

    kind: str
    """group/Kind."""
    documentation: str
    """Where the project describes the fields."""
    healthy: tuple[Check, ...] = ()
    """When an object works as it should; without a check its status does not tell."""
    replicas: str = ""
    """The number of its pods, if it can be divided among clusters by it; 1 where it is missing."""
    templates: tuple[str, ...] = ()
    """The templates of its pods. What a replica needs is in the first one that is there."""
    sums: tuple[str, ...] = ()
    """Counts of the status that are added up over clusters."""
    tells: tuple[str, ...] = ()
    """Texts that the status must have beside them; those of the first cluster by name are told."""
    replaces_pods: bool = False
    """Its controller owns its pods, and creates another one for each that is evicted."""
    rollout: KindRollout | None = None

    @property
    def named(self) -> tuple[str, str]:
        group, _, kind = self.kind.partition("/")
        return group, kind


@cache
def read_table() -> MappingProxyType[tuple[str, str], OtherKind]:
    """Read the table, by group and kind."""
    text = (files("reberth.other_projects") / "kinds.yaml").read_text()
    kinds = msgspec.convert(yaml.safe_load(text), tuple[OtherKind, ...])
    return MappingProxyType({each.named: each for each in kinds})


def find_kind(group: str, kind: str) -> OtherKind | None:
    return read_table().get((group, kind))


def list_replacing() -> tuple[tuple[str, str], ...]:
    """List the kinds that replace their pods, by group and kind."""
    return tuple(named for named, each in read_table().items() if each.replaces_pods)


def has_begun_rollout(kind: OtherKind, found: Any) -> bool:  # noqa: ANN401 - any JSON
    """Tell whether pods of an object are, or are to be, replaced by others of a new version."""
    return kind.rollout is not None and holds(kind.rollout.begun, found)


def is_rolling_out(kind: OtherKind, found: Any) -> bool:  # noqa: ANN401 - any JSON
    """Tell whether an object lacks no more pods than a rollout that is in progress may leave out."""
    rollout = kind.rollout
    if rollout is None or not has_begun_rollout(kind, found):
        return False
    wanted = count_at(found, rollout.wanted) if read(found, rollout.wanted) is not None else 1
    allowed = read(found, rollout.max_unavailable)
    least = wanted - max(1, count_share(allowed, wanted, default=rollout.default))
    return count_at(found, rollout.available) >= max(1, least)


def count_share(allowed: object, wanted: int, *, default: str) -> int:
    """Read a number or a percentage of the replicas; the API server has admitted it."""
    text = str(default if allowed is None else allowed)
    if text.removesuffix("%").isdecimal() and len(text) <= _MOST_DIGITS:
        return wanted * int(text[:-1]) // 100 if text.endswith("%") else int(text)
    return 0
