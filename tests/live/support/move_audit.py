"""Check the rules of moves over everything that an API server was asked, by its audit log.

    async with running(flags=audit_log.write_audit_flags(folder, [USER], memory=True)) as cluster:
        ...
    assert MoveAudit(audit_log.read_log(folder)).list_violations([Window("cluster", 10, 600)]) == []

Order and times are the server's: of two writes of an object the one with the later resourceVersion is the
later one, and a write was known to its sender when the server had answered it. An eviction that was sent and
not answered may have been carried out, so it must keep the same rules as a granted one.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from http import HTTPStatus
from itertools import pairwise
from typing import Literal, NamedTuple

from localcluster.audit_log import Call
from tests.live.support.audited_states import (
    HISTORIES,
    LEDGERS,
    NEVER_WRITTEN,
    NODES,
    ObjectKey,
    StateHistory,
    name_moves,
    read_debits,
    read_noted,
    read_objects,
    read_open,
    read_past,
    read_spent,
)
from tests.live.support.leader_audit import Fence

EVICTIONS = "pods/eviction"
_MOVE = "reberth.dev/move"
_ID = re.compile(r"m-[0-9a-f]{12}")
# The server did nothing, and said so: the client may send it again.
_NOT_PROCESSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS)


class Window(NamedTuple):
    """A configured rate: at most so many disruptions in any so many seconds."""

    scope: Literal["cluster", "namespace", "workload"]
    most: int
    seconds: float


class SentEviction(NamedTuple):
    """One eviction that was no dry run."""

    call: Call
    move: str
    uid: str

    def is_of(self, agent: str) -> bool:
        """Tell whether such a program has sent it; a test that uses our client names no move of ours."""
        return self.call.agent.startswith(agent) and not (
            agent and self.move and not _ID.fullmatch(self.move)
        )

    @property
    def is_granted(self) -> bool:
        return self.call.code == HTTPStatus.CREATED

    @property
    def is_effective(self) -> bool:
        """It was carried out, or may have been: nobody was told."""
        return self.is_granted or self.call.code is None

    @property
    def at(self) -> float:
        """When the termination began: it ends the request."""
        return self.call.answered or self.call.received

    def __str__(self) -> str:
        return f"eviction of {self.call.namespace}/{self.call.name} by {self.move} at {self.at:.3f}"


class MoveAudit:
    """All moves of a log. The log should begin before the first of them.

    `agent` is what the programs call themselves whose evictions and notes must keep the rules: a test may do
    something of the kind by hand. `apart` if each leader has credentials of its own: only then can be told
    what one of them sent after it was replaced.
    """

    def __init__(self, calls: Sequence[Call], *, agent: str = "", apart: bool = True) -> None:
        self.calls = calls
        self.objects = read_objects(calls)
        self.evictions = [one for one in map(self._identify, _list_evictions(calls)) if one.is_of(agent)]
        self._agent = agent
        self._apart = apart

    def list_violations(self, windows: Iterable[Window] = ()) -> list[str]:
        return [
            *self._list_unprepared(),
            *self._list_undone(),
            *self._list_repeated(),
            *(line for window in windows for line in self._list_overfull(window)),
            *self._list_unknown_notes(),
            *(self._list_late() if self._apart else ()),
        ]

    def count_granted(self) -> int:
        return len({eviction.uid for eviction in self.evictions if eviction.is_granted})

    def list_begun(self, *, since: float) -> set[str]:
        """Give the moves that were written down as open since then, and not before."""
        first: dict[str, float] = {}
        for _, history in self._list_objects(HISTORIES):
            for state in history.states:
                for move in read_open(state):
                    first[move] = min(state.asked, first.get(move, math.inf))
        return {move for move, asked in first.items() if asked >= since}

    @cached_property
    def first_named(self) -> dict[str, tuple[float, ObjectKey]]:
        """When the server had first answered a history that names a move, and which history."""
        found: dict[str, tuple[float, ObjectKey]] = {}
        for key, history in self._list_objects(HISTORIES):
            for state in history.states:
                for move in name_moves(state):
                    found[move] = min((state.answered, key), found.get(move, (math.inf, key)))
        return found

    def _identify(self, eviction: SentEviction) -> SentEviction:
        """Tell by its pod whose eviction it is if the server was killed before it had logged its body."""
        call = eviction.call
        if call.body or call.code is not None:
            return eviction
        for (_, namespace, _), history in self._list_objects(HISTORIES):
            for move, entry in read_open(history.newest(call.received)).items():
                if (namespace, entry["pod"]) == (call.namespace, call.name):
                    return SentEviction(call, move, entry["podUID"])
        return eviction

    def _list_unprepared(self) -> Iterator[str]:
        """Each eviction has its open history, its debit and its note: all of them answered before it."""
        for eviction in self.evictions:
            if eviction.is_effective:
                yield from (f"{eviction}: {lack}" for lack in self._list_lacks(eviction))

    def _list_lacks(self, eviction: SentEviction) -> Iterator[str]:
        at = eviction.call.received
        _, key = self.first_named.get(eviction.move, (0.0, ("", "", "")))
        history = self.objects.get(key, NEVER_WRITTEN).newest(at)
        entry = read_open(history).get(eviction.move)
        if entry is None:
            yield "its history has no open move"
        elif (entry["phase"], entry["podUID"]) != ("Noted", eviction.uid):
            yield f"its history says {entry['phase']} of pod {entry['podUID']}, not of {eviction.uid}"
        node = self.objects.get((NODES, "", entry["from"]), NEVER_WRITTEN) if entry else NEVER_WRITTEN
        if entry and eviction.move not in read_noted(node.newest(at)):
            yield f"its note is not on {entry['from']}"
        debit = read_debits(self._ledger.newest(at)).get(eviction.move)
        if debit is None:
            yield "it has no debit"
        elif debit.get("podUID", eviction.uid) != eviction.uid:
            yield f"its debit is for pod {debit['podUID']}"

    def _list_undone(self) -> Iterator[str]:
        """Nobody takes back what was granted."""
        granted = {eviction.move for eviction in self.evictions if eviction.is_granted}
        for before, after in pairwise(self._ledger.states):
            if before.uid != after.uid:
                continue  # somebody has deleted the ledger
            left = read_debits(after).keys() | read_spent(after)
            for move, debit in read_debits(before).items():
                if move in granted and move not in left and debit["state"] == "Tentative":
                    yield f"{move}: its debit was returned, and its pod was evicted"
        for _, history in self._list_objects(HISTORIES):
            past = dict(entry for state in history.states for entry in read_past(state).items())
            for move in granted & past.keys():
                if past[move]["outcome"] == "Refused":
                    yield f"{move}: it was closed as Refused, and its pod was evicted"

    def _list_repeated(self) -> Iterator[str]:
        """A pod is evicted by one move, a move sends its eviction once in each term of a leader.

        The next leader may send that of a move that it resumes: for a pod that is terminating it changes
        nothing.
        """
        movers = defaultdict[str, set[str]](set)
        sent, granted = Counter[tuple[str, str, int]](), Counter[tuple[str, str, int]]()
        for eviction in self.evictions:
            turn = (eviction.move, eviction.call.credential, self._find_term(eviction.call))
            sent[turn] += eviction.call.code not in _NOT_PROCESSED
            if eviction.is_granted:
                movers[eviction.uid].add(eviction.move)
                granted[turn] += 1
        yield from (f"pod {uid} was evicted by {sorted(by)}" for uid, by in movers.items() if len(by) > 1)
        for turn, count in sent.items():
            if count > 1:
                yield f"{turn[0]}: its eviction was sent {count} times, and granted {granted[turn]} times"

    def _find_term(self, call: Call) -> int:
        terms = self._fence.terms
        return sum(term.leader == call.credential and term.asked <= call.received for term in terms)

    def _list_overfull(self, window: Window) -> Iterator[str]:
        """No window of a rate, wherever it begins, has more evictions than the rate allows."""
        times = defaultdict[str, list[float]](list)
        for eviction in self._list_disruptions():
            times[self._name_scope(eviction, window.scope)].append(eviction.at)
        for whom, found in times.items():
            found.sort()
            for first, last in zip(found, found[window.most :], strict=False):
                if last - first < window.seconds:
                    yield (
                        f"{window.scope} {whom}: more than {window.most} evictions within "
                        f"{window.seconds:g} s, from {first:.3f} to {last:.3f}"
                    )

    def _list_disruptions(self) -> Iterator[SentEviction]:
        """One for each pod: when it was granted first, else when it was sent."""
        by_uid: dict[str, SentEviction] = {}
        for eviction in sorted(self.evictions, key=lambda one: (not one.is_granted, one.at)):
            if eviction.is_effective:
                by_uid.setdefault(eviction.uid, eviction)
        return iter(by_uid.values())

    def _name_scope(self, eviction: SentEviction, scope: str) -> str:
        if scope == "workload":
            _, (_, namespace, history) = self.first_named.get(eviction.move, (0.0, ("", "", eviction.move)))
            return f"{namespace}/{history}"
        return eviction.call.namespace if scope == "namespace" else ""

    def _list_unknown_notes(self) -> Iterator[str]:
        """A note is of a move that a history had named before the note was sent."""
        for (_, _, node), history in self._list_objects(NODES):
            known: Collection[str] = frozenset()
            for state in history.states:
                noted = read_noted(state)
                is_ours = state.agent.startswith(self._agent)
                for move in noted.difference(known) if is_ours else ():
                    at, _ = self.first_named.get(move, (math.inf, None))
                    if at > state.asked:
                        yield f"{move}: its note was written to {node}, and no history had named it before"
                known = noted

    def _list_late(self) -> Iterator[str]:
        """A leader that was replaced sends at most what was past its check: one write of each object."""
        for calls in self._fence.list_late():
            count = Counter((call.resource, call.namespace, call.name) for call in calls)
            for (resource, namespace, name), times in count.items():
                if times > 1:
                    yield f"{times} writes of {resource} {namespace}/{name} by a leader that was replaced"

    def _list_objects(self, resource: str) -> Iterator[tuple[ObjectKey, StateHistory]]:
        return (one for one in self.objects.items() if one[0][0] == resource)

    @cached_property
    def _ledger(self) -> StateHistory:
        return next((history for _, history in self._list_objects(LEDGERS)), NEVER_WRITTEN)

    @cached_property
    def _fence(self) -> Fence:
        return Fence(self.calls, since=0.0)


def _list_evictions(calls: Iterable[Call]) -> Iterator[SentEviction]:
    for call in calls:
        options = call.body.get("deleteOptions", {})
        if call.resource == EVICTIONS and "dryRun" not in options:
            annotations = call.body.get("metadata", {}).get("annotations", {})
            uid = options.get("preconditions", {}).get("uid", "")
            yield SentEviction(call, annotations.get(_MOVE, ""), uid)
