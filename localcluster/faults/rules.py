"""Rules: which requests match, which of these a fault strikes, and schedules drawn from a seed."""

import random
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from localcluster.faults import status_bodies
from localcluster.faults.effects import Answer, Effect
from localcluster.faults.request_info import RequestInfo

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
GROWTH = WRITES - {"delete", "deletecollection"}
"""The writes that need space in etcd."""


@dataclass(frozen=True)
class Match:
    """All given fields must match. Texts are shell globs, in which `*` also matches slashes."""

    client: str = "*"
    method: str = "*"
    verb: str | Collection[str] = "*"
    """One Kubernetes verb, or a collection of them such as `WRITES`."""
    resource: str = "*"
    """Plural and sub-resource: `pods`, `pods/eviction`."""
    path: str | re.Pattern[str] = "*"
    """A glob, or a regular expression that is searched for."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Parameters that must be there with these values."""

    def matches(self, request: RequestInfo) -> bool:
        return (
            fnmatchcase(request.client, self.client)
            and fnmatchcase(request.method, self.method)
            and self._is_verb(request.verb)
            and fnmatchcase(request.resource, self.resource)
            and self._is_path(request.path)
            and self.query.items() <= request.query.items()
        )

    def _is_verb(self, verb: str) -> bool:
        return fnmatchcase(verb, self.verb) if isinstance(self.verb, str) else verb in self.verb

    def _is_path(self, path: str) -> bool:
        return fnmatchcase(path, self.path) if isinstance(self.path, str) else bool(self.path.search(path))


ANY = Match()


@dataclass(frozen=True)
class Turns:
    """Which matching requests, counted from 1: the `first`, then every nth, `count` of them in all."""

    first: int = 1
    every: int = 1
    count: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("first", self.first), ("every", self.every), ("count", self.count)):
            if value is not None and value < 1:
                raise ValueError(f"Turns.{name} must be at least 1, not {value}")

    def include(self, number: int) -> bool:
        turn, off = divmod(number - self.first, self.every)
        return turn >= 0 and off == 0 and (self.count is None or turn < self.count)


ALWAYS = Turns()


def nth(number: int) -> Turns:
    return Turns(number, count=1)


def every(number: int) -> Turns:
    return Turns(number, number)


def between(first: int, last: int) -> Turns:
    """From the `first` to the `last`, both included."""
    return Turns(first, count=last - first + 1)


def times(count: int) -> Turns:
    """The next n requests."""
    return Turns(count=count)


@dataclass(eq=False)
class Rule:
    """One fault, where it strikes, and how often it did."""

    match: Match
    effect: Effect
    turns: Turns = ALWAYS
    matched: int = field(default=0, init=False)
    """Requests that matched; another rule may have answered them."""
    acted: int = field(default=0, init=False)
    """Requests that the effect really changed."""
    lifted: bool = field(default=False, init=False)

    def picks(self, request: RequestInfo) -> bool:
        """Count the request if it matches, and say whether it is its turn."""
        if not self.match.matches(request):
            return False
        self.matched += 1
        return self.turns.include(self.matched)


@dataclass(eq=False)
class Act:
    """One rule at work on one request."""

    rule: Rule
    announce: Callable[[], None]
    happened: bool = False

    def happen(self) -> None:
        """Count that the effect has changed the request; idempotent."""
        if not self.happened:
            self.happened = True
            self.rule.acted += 1
            self.announce()


class Fault(NamedTuple):
    """What may strike, for a schedule to choose from."""

    match: Match
    effect: Effect


ETCD_FULL = Fault(Match(verb=GROWTH), Answer(status_bodies.database_full()))
"""Reads, watches and deletes go on; so do watches' bookmarks."""


def schedule(seed: int, n: int, faults: Sequence[Fault], *, requests: int) -> list[Rule]:
    """Spread n faults over the first requests: the same ones for the same seed and arguments.

    Each of the rules strikes one request, the nth of those that its own fault matches.
    """
    if not faults:
        raise ValueError("faults must not be empty")
    if not 0 <= n <= requests:
        raise ValueError(f"n must be between 0 and requests ({requests}), not {n}")
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be kept secret
    numbers = sorted(chance.sample(range(1, requests + 1), n))
    return [Rule(*chance.choice(faults), nth(number)) for number in numbers]
