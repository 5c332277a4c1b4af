"""What the memory says of one pod on many nodes: drawn to some, kept away from others, graded.

Five signals, each of which may be switched off:

* *draw*: an open move of the pod's controller names the nodes that its next pod should go to;
* *notes*: nodes that should be avoided by the pod, some of them strictly;
* *standing*: nodes that are leaving or too young;
* *history*: nodes that a move of this workload made worse, or came back to, not long ago;
* *scores*: what add-ons think of the nodes.

An opinion is formed once per pod and costs as much as there is to say of it. The grades of thousands of nodes
are then a few steps over arrays, and the reasons are put into words only when somebody asks for them.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt

from reberth.cluster.node_lifecycle import Leaving
from reberth.cluster.pods.identity import Signature, sign_pod
from reberth.memory.addon_scores import ANNOTATION, MOST_GRADE, Choice, Grades, Rows, choose_weights
from reberth.memory.backoff import closing_time
from reberth.memory.draw import Replica, asking_replica, draw
from reberth.memory.index import Remembered
from reberth.memory.notes import NOTE_UNREADABLE, NOTHING_FOUND, Note
from reberth.records import EvictionHistory, ObjectMeta, OpenMove, Outcome, PastMove
from reberth.values.duration import Span
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time

STRICTLY_NOTED = Refused("StrictlyNoted", "reberth keeps this workload off the node")

Ranks = npt.NDArray[np.float64]


class AdviceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which signals are given, and how long a bad landing is remembered."""

    draw: bool = True
    notes: bool = True
    standing: bool = True
    history: bool = True
    scores: bool = True
    loss: Annotated[float, msgspec.Meta(ge=0, le=MOST_GRADE)] = 5.0
    loss_half_life: Span = Span(6 * 3600)


ALL_SIGNALS = AdviceSettings()


class Opinion(msgspec.Struct, frozen=True):
    """All there is to say of one pod at one moment."""

    now: float
    settings: AdviceSettings
    who: Signature | Refused
    choice: Choice
    drawn_by: OpenMove | None = None
    noted: Mapping[str, tuple[Note, ...]] = NOTHING_FOUND.notes
    strictly_noted: frozenset[str] = frozenset()
    losses: dict[str, float] = {}


class Verdict(msgspec.Struct, frozen=True):
    """What is said of one node, and why."""

    node: str
    avoid: int
    scores: int
    refused: Refused | None
    reasons: tuple[str, ...]


def form_opinion(
    remembered: Remembered,
    pod: ObjectMeta,
    *,
    owners: Mapping[str, ObjectMeta],
    replicas: Mapping[str, Collection[Replica]],
    now: float,
    settings: AdviceSettings = ALL_SIGNALS,
) -> Opinion:
    """Gather what is known of an unbound pod.

    `owners` are the mirrored ReplicaSets and Jobs by uid, `replicas` the mirrored pods by their controller's.
    """
    who = sign_pod(pod, owners)
    chosen = (pod.annotations or {}).get(ANNOTATION)
    choice = choose_weights(chosen, remembered.settings) if chosen else remembered.choice
    if isinstance(who, Refused):
        return Opinion(now, settings, who, choice)
    found = remembered.notes.find(who, now) if settings.notes else NOTHING_FOUND
    return Opinion(
        now,
        settings,
        who,
        choice,
        drawn_by=_find_draw(remembered, pod, who, replicas, now) if settings.draw else None,
        noted=found.notes,
        strictly_noted=found.strict,
        losses=_find_losses(remembered.history_of(who), now, settings) if settings.history else {},
    )


def refuse_nodes(opinion: Opinion, nodes: Iterable[str]) -> dict[str, Refused]:
    """Tell which of the nodes the pod must not go to."""
    strict = opinion.strictly_noted
    return {node: STRICTLY_NOTED for node in nodes if node in strict} if strict else {}


def grade_avoiding(remembered: Remembered, opinion: Opinion, rows: Rows) -> Grades:
    """Grade the nodes in these rows 10 or 0: where the pod is drawn to, else where nothing speaks against.

    A destination that is to be avoided by now draws nobody. If every node is to be avoided, none is.
    """
    if opinion.drawn_by:
        return grade_ranks(rank_avoiding(remembered, opinion, rows))
    grades = _grade_welcome(remembered, opinion, rows)
    return grades if np.count_nonzero(grades) else np.full_like(grades, MOST_GRADE)


def grade_ranks(ranks: Ranks) -> Grades:
    """Give the nodes of the highest rank the highest grade, and the others none."""
    grades: Grades = (ranks == ranks.max(initial=0)) * np.uint8(MOST_GRADE)
    return grades


def rank_avoiding(remembered: Remembered, opinion: Opinion, rows: Rows) -> Ranks:
    """Rank the nodes in these rows: of any part of them those of the highest rank are graded 10.

    A destination is above all that come after it in the list; then comes what is not to be avoided.
    """
    welcome = _grade_welcome(remembered, opinion, rows)
    return np.where(welcome, remembered.spread(_rank_destinations(opinion), rows) + 1, 0.0)


def grade_scores(remembered: Remembered, opinion: Opinion, rows: Rows) -> Grades:
    """Grade the nodes in these rows from 0 to 10: what add-ons think of them, less what bad landings lost."""
    weights = opinion.choice.weights if opinion.settings.scores else {}
    grades = remembered.scores.grade(weights, opinion.now)
    return (_take_off(remembered, opinion.losses, grades) if opinion.losses else grades).take(rows)


def explain(remembered: Remembered, opinion: Opinion, nodes: Sequence[str]) -> list[Verdict]:
    """Put into words what is said of each node when these are asked about."""
    rows = remembered.locate(nodes)
    refused = refuse_nodes(opinion, nodes)
    grades = zip(
        nodes,
        grade_avoiding(remembered, opinion, rows).tolist(),
        grade_scores(remembered, opinion, rows).tolist(),
        strict=True,
    )
    return [
        Verdict(node, avoid, scores, refused.get(node), tuple(_reasons(remembered, opinion, node)))
        for node, avoid, scores in grades
    ]


def _find_draw(
    remembered: Remembered,
    pod: ObjectMeta,
    who: Signature,
    replicas: Mapping[str, Collection[Replica]],
    now: float,
) -> OpenMove | None:
    moves = remembered.moves_of(who.controller.uid)
    if not moves:
        return None
    return draw(asking_replica(pod), moves, replicas.get(who.controller.uid, ()), now=now)


def _find_losses(history: EvictionHistory | None, now: float, settings: AdviceSettings) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for move in (history.status.past or ()) if history else ():
        node = _find_bad_landing(move)
        if node:
            age = max(0.0, now - closing_time(move))
            found.setdefault(node, []).append(settings.loss * 2.0 ** (-age / settings.loss_half_life))
    # fsum gives the same for any order of the moves.
    return {node: math.fsum(losses) for node, losses in found.items()}


def _find_bad_landing(move: PastMove) -> str | None:
    """Give the node that is worse than the one left, or that should have been left and was not."""
    return {Outcome.WORSE: move.landed_on, Outcome.RETURNED: move.from_}.get(move.outcome)


def _rank_destinations(opinion: Opinion) -> dict[str, float]:
    """The best destination has the highest rank."""
    destinations = (opinion.drawn_by.destinations or ()) if opinion.drawn_by else ()
    return {node: float(rank) for rank, node in enumerate(reversed(destinations), 1)}


def _grade_welcome(remembered: Remembered, opinion: Opinion, rows: Rows) -> Grades:
    return remembered.welcomes(opinion.noted, rows, standing=opinion.settings.standing)


def _take_off(remembered: Remembered, losses: Mapping[str, float], grades: Grades) -> Grades:
    """Take from the nodes what bad landings lost; from those that nobody has seen nothing."""
    left = grades.copy()
    for node, loss in losses.items():
        row = remembered.rows.get(node)
        if row is not None:
            left[row] = math.floor(max(0.0, min(float(grades[row]) - loss + 0.5, MOST_GRADE)))
    return left


def _reasons(remembered: Remembered, opinion: Opinion, node: str) -> Iterator[str]:
    if node not in remembered.rows:
        yield "the node has not been seen yet"
    if node in remembered.unreadable:
        yield NOTE_UNREADABLE.reason
    yield from _reasons_to_go(opinion, node)
    yield from _reasons_to_avoid(remembered, opinion, node)
    yield from _reasons_for_score(remembered, opinion, node)


def _reasons_to_go(opinion: Opinion, node: str) -> Iterator[str]:
    move = opinion.drawn_by
    if move:
        destinations = move.destinations or ()
        place = (
            f"destination {destinations.index(node) + 1}" if node in destinations else "other destinations"
        )
        yield f"move {move.id} draws the pod to {place}"


def _reasons_to_avoid(remembered: Remembered, opinion: Opinion, node: str) -> Iterator[str]:
    for note in opinion.noted.get(node, ()):
        whose = f"policy {note.mark.policy}" if note.mark else "a foreign note"
        strictly = "strictly " if note.strict else ""
        yield f"{strictly}avoided until {write_time(note.expires_at)} by {whose}: {note.reason}"
    standing = remembered.standing.get(node) if opinion.settings.standing else None
    if standing:
        state = "leaving" if isinstance(standing, Leaving) else "young"
        yield f"the node is {state}: {standing.sign}"


def _reasons_for_score(remembered: Remembered, opinion: Opinion, node: str) -> Iterator[str]:
    if opinion.choice.refused:
        yield opinion.choice.refused.reason
    if opinion.settings.scores:
        for (source, name), found in remembered.scores.explain(node, opinion.now).items():
            weight = opinion.choice.weights[source, name]
            said = found.reason if isinstance(found, Refused) else f"{found:g}"
            yield f"{source}/{name} x {weight}: {said}"
    if node in opinion.losses:
        yield f"{opinion.losses[node]:.2f} points lost: a move of this workload landed here badly"
