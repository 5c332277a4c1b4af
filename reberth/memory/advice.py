"""The memory's advice for one pod on many nodes: nodes it is drawn to, nodes it should avoid, and grades.

Five signals, each of which can be switched off:

* *draw*: an open move of the pod's controller lists the destinations for its next pod;
* *notes*: nodes that the pod should avoid, some of them strictly;
* *standing*: nodes that are leaving or too young;
* *history*: nodes where a recent move of this workload ended worse, or to which its pod returned;
* *scores*: the scores that add-ons give to the nodes.

The advice for a pod is made once, at a cost that depends on the number of facts, not of nodes. The grades of
thousands of nodes are then a few array operations, and reasons are only written for an explanation.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.cluster.node_lifecycle import LeavingNode
from reberth.cluster.pods.identity import Signature, find_signature
from reberth.memory.addon_scores import ANNOTATION, MOST_GRADE, Grades, Rows, WeightChoice, choose_weights
from reberth.memory.backoff import closing_time
from reberth.memory.destination_draw import Replica, asking_replica, draw
from reberth.memory.index import MemoryIndex
from reberth.memory.notes import NOTE_UNREADABLE, NOTHING_FOUND, Note
from reberth.records import EvictionHistory, ObjectMeta, OpenMove, Outcome, PastMove
from reberth.values.duration import PositiveDuration
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time

STRICTLY_NOTED = Refused("StrictlyNoted", "reberth keeps this workload off the node")

Ranks = npt.NDArray[np.float64]


class AdviceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which signals are used, and how long a bad outcome counts against a node."""

    draw: bool = True
    notes: bool = True
    standing: bool = True
    history: bool = True
    scores: bool = True
    loss: Annotated[float, msgspec.Meta(ge=0, le=MOST_GRADE)] = 5.0
    loss_half_life: PositiveDuration = PositiveDuration(6 * 3600)


ALL_SIGNALS = AdviceSettings()


class PodAdvice(msgspec.Struct, frozen=True):
    """The advice for one pod at one moment."""

    now: float
    settings: AdviceSettings
    signature: Signature | Refused
    choice: WeightChoice
    drawn_by: OpenMove | None = None
    noted: Mapping[str, tuple[Note, ...]] = NOTHING_FOUND.notes
    strictly_noted: frozenset[str] = frozenset()
    losses: dict[str, float] = {}


class NodeAdvice(msgspec.Struct, frozen=True):
    """The grades of one node, and the reasons for them."""

    node: str
    avoid: int
    scores: int
    refused: Refused | None
    reasons: tuple[str, ...]


def advise_pod(
    index: MemoryIndex,
    pod: ObjectMeta,
    *,
    owners: Mapping[str, ObjectMeta],
    replicas: Mapping[str, Collection[Replica]],
    now: float,
    settings: AdviceSettings = ALL_SIGNALS,
) -> PodAdvice:
    """Gather what the memory knows about an unbound pod.

    `owners` are the cached ReplicaSets and Jobs by uid, `replicas` the cached pods of the pod's namespace by
    their controller's uid.
    """
    signature = find_signature(pod, owners)
    chosen = (pod.annotations or {}).get(ANNOTATION)
    choice = choose_weights(chosen, index.settings) if chosen else index.choice
    if isinstance(signature, Refused):
        return PodAdvice(now, settings, signature, choice)
    found = index.notes.find(signature, now) if settings.notes else NOTHING_FOUND
    return PodAdvice(
        now,
        settings,
        signature,
        choice,
        drawn_by=_find_draw(index, pod, signature, replicas, now) if settings.draw else None,
        noted=found.notes,
        strictly_noted=found.strict,
        losses=_find_losses(index.history_of(signature), now, settings) if settings.history else {},
    )


def refuse_nodes(advice: PodAdvice, nodes: Iterable[str]) -> dict[str, Refused]:
    """Refuse the nodes that the pod must strictly avoid."""
    strict = advice.strictly_noted
    return {node: STRICTLY_NOTED for node in nodes if node in strict} if strict else {}


def grade_avoiding(index: MemoryIndex, advice: PodAdvice, rows: Rows) -> Grades:
    """Grade the nodes in these rows: 10 for the best destination, else for those not to be avoided; 0 others.

    A destination that must be avoided by now draws no pod. If every node would be avoided, none is.
    """
    if advice.drawn_by:
        return grade_ranks(rank_avoiding(index, advice, rows))
    grades = _grade_welcome(index, advice, rows)
    return grades if np.count_nonzero(grades) else np.full_like(grades, MOST_GRADE)


def grade_ranks(ranks: Ranks) -> Grades:
    """Give the nodes of the highest rank the highest grade, and all others 0."""
    grades: Grades = (ranks == ranks.max(initial=0)) * np.uint8(MOST_GRADE)
    return grades


def rank_avoiding(index: MemoryIndex, advice: PodAdvice, rows: Rows) -> Ranks:
    """Rank the nodes in these rows: in any subset, the nodes of the highest rank are graded 10.

    A destination ranks above all later ones in the list; then come the nodes that need not be avoided.
    """
    welcome = _grade_welcome(index, advice, rows)
    return np.where(welcome, index.spread(_rank_destinations(advice), rows) + 1, 0.0)


def grade_scores(index: MemoryIndex, advice: PodAdvice, rows: Rows) -> Grades:
    """Grade the nodes in these rows from 0 to 10: the add-on scores, less the losses by bad landings."""
    weights = advice.choice.weights if advice.settings.scores else {}
    grades = index.scores.grade(weights, advice.now)
    return (_take_off(index, advice.losses, grades) if advice.losses else grades).take(rows)


def explain(index: MemoryIndex, advice: PodAdvice, nodes: Sequence[str]) -> list[NodeAdvice]:
    """Explain the advice for each node, as if these nodes were in one call."""
    rows = index.locate(nodes)
    refused = refuse_nodes(advice, nodes)
    grades = zip(
        nodes,
        grade_avoiding(index, advice, rows).tolist(),
        grade_scores(index, advice, rows).tolist(),
        strict=True,
    )
    return [
        NodeAdvice(node, avoid, scores, refused.get(node), tuple(_reasons(index, advice, node)))
        for node, avoid, scores in grades
    ]


def _find_draw(
    index: MemoryIndex,
    pod: ObjectMeta,
    signature: Signature,
    replicas: Mapping[str, Collection[Replica]],
    now: float,
) -> OpenMove | None:
    moves = index.moves_of(signature.namespace, signature.controller.uid)
    if not moves:
        return None
    return draw(asking_replica(pod), moves, replicas.get(signature.controller.uid, ()), now=now)


def _find_losses(history: EvictionHistory | None, now: float, settings: AdviceSettings) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for move in (history.status.past or ()) if history else ():
        node = _find_bad_landing(move)
        if node:
            age = max(0.0, now - closing_time(move))
            found.setdefault(node, []).append(settings.loss * 2.0 ** (-age / settings.loss_half_life))
    # fsum gives the same result for any order of the moves.
    return {node: math.fsum(losses) for node, losses in found.items()}


def _find_bad_landing(move: PastMove) -> str | None:
    """Give the node on which the move ended badly: a worse one, or the source node again."""
    return {Outcome.WORSE: move.landed_on, Outcome.RETURNED: move.from_}.get(move.outcome)


def _rank_destinations(advice: PodAdvice) -> dict[str, float]:
    """The best destination has the highest rank."""
    destinations = (advice.drawn_by.destinations or ()) if advice.drawn_by else ()
    return {node: float(rank) for rank, node in enumerate(reversed(destinations), 1)}


def _grade_welcome(index: MemoryIndex, advice: PodAdvice, rows: Rows) -> Grades:
    return index.welcomes(advice.noted, rows, standing=advice.settings.standing)


def _take_off(index: MemoryIndex, losses: Mapping[str, float], grades: Grades) -> Grades:
    """Lower the grades of nodes by the cost of bad outcomes; nodes that are not cached lose nothing."""
    left = grades.copy()
    for node, loss in losses.items():
        row = index.rows.get(node)
        if row is not None:
            left[row] = math.floor(max(0.0, min(float(grades[row]) - loss + 0.5, MOST_GRADE)))
    return left


def _reasons(index: MemoryIndex, advice: PodAdvice, node: str) -> Iterator[str]:
    if node not in index.rows:
        yield "the node is not in the cache yet"
    if node in index.unreadable:
        yield NOTE_UNREADABLE.reason
    yield from _reasons_to_go(advice, node)
    yield from _reasons_to_avoid(index, advice, node)
    yield from _reasons_for_score(index, advice, node)


def _reasons_to_go(advice: PodAdvice, node: str) -> Iterator[str]:
    move = advice.drawn_by
    if move:
        destinations = move.destinations or ()
        place = (
            f"destination {destinations.index(node) + 1}" if node in destinations else "other destinations"
        )
        yield f"move {move.id} draws the pod to {place}"


def _reasons_to_avoid(index: MemoryIndex, advice: PodAdvice, node: str) -> Iterator[str]:
    for note in advice.noted.get(node, ()):
        whose = f"policy {note.mark.policy}" if note.mark else "a note of another program"
        strictly = "strictly " if note.strict else ""
        yield f"{strictly}avoided until {write_time(note.expires_at)} by {whose}: {note.reason}"
    standing = index.standing.get(node) if advice.settings.standing else None
    if standing:
        state = "leaving" if isinstance(standing, LeavingNode) else "young"
        yield f"the node is {state}: {standing.sign}"


def _reasons_for_score(index: MemoryIndex, advice: PodAdvice, node: str) -> Iterator[str]:
    if advice.choice.refused:
        yield advice.choice.refused.reason
    if advice.settings.scores:
        for (source, name), found in index.scores.explain(node, advice.now).items():
            weight = advice.choice.weights[source, name]
            said = found.reason if isinstance(found, Refused) else f"{found:g}"
            yield f"{source}/{name} x {weight}: {said}"
    if node in advice.losses:
        yield f"{advice.losses[node]:.2f} points off: an earlier move of this workload here had a bad outcome"
