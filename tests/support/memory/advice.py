"""Nodes, what is remembered of them, and what is then said of a pod, for tests."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.memory.advice import AdviceSettings, Opinion, form_opinion, grade_avoiding, grade_scores
from reberth.memory.draw import Replica
from reberth.memory.history import start_history
from reberth.memory.index import Remembered
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from reberth.records import EvictionHistory, HistoryStatus, Node, NodePlacementScore, Pod
from tests.support import builders
from tests.support.memory.objects import HOUR, NOW, OWNERS, WEB, move, web_pod

LOAD = ScoreSettings((WeightedScore("load", "cpu", weight=2, least=-10, most=10),))
NODES = ("n0", "n1", "n2", "n3")


def node(name: str, *, notes: Iterable[dict[str, Any]] = (), **fields: Any) -> Node:
    """A node with notes of ours for WEB, each made of what it differs in."""
    given: dict[str, Any] = {"policy": "balance", "reason": "rebalance", "now": NOW}
    ours = tuple(compose_note(WEB, f"m-{name}-{n}", **given | note) for n, note in enumerate(notes))
    text = render_notes(Notes(ours=ours))
    fields.setdefault("annotations", {ANNOTATION: text} if text else {})
    return builders.as_record(Node, builders.node(name, **fields))


def remembering(
    *nodes: Node,
    histories: Iterable[EvictionHistory] = (),
    scores: Iterable[NodePlacementScore] = (),
    settings: ScoreSettings = LOAD,
) -> Remembered:
    """The nodes given, and those of NODES that are not among them."""
    remembered = Remembered(settings)
    given = {one.metadata.name for one in nodes}
    for one in [*nodes, *(node(name) for name in NODES if name not in given)]:
        remembered.put_node(one)
    for history in histories:
        remembered.put_history(history)
    for score in scores:
        remembered.put_score(score)
    return remembered


def history(**status: Any) -> EvictionHistory:
    return msgspec.structs.replace(start_history(WEB), status=HistoryStatus(**status))


def opinion(
    remembered: Remembered,
    pod: Pod | None = None,
    *,
    replicas: Collection[Replica] = (),
    now: float = NOW,
    **settings: Any,
) -> Opinion:
    asked = (pod or web_pod()).metadata
    return form_opinion(
        remembered,
        asked,
        owners=OWNERS,
        replicas={"uid-rs": replicas},
        now=now,
        settings=AdviceSettings(**settings),
    )


def avoid(remembered: Remembered, formed: Opinion | None = None, nodes: Iterable[str] = NODES) -> list[int]:
    found: list[int] = grade_avoiding(
        remembered, formed or opinion(remembered), remembered.locate(list(nodes))
    ).tolist()
    return found


def scored(remembered: Remembered, formed: Opinion | None = None, nodes: Iterable[str] = NODES) -> list[int]:
    found: list[int] = grade_scores(
        remembered, formed or opinion(remembered), remembered.locate(list(nodes))
    ).tolist()
    return found


NOTED = {"life": HOUR}
DRAWN = history(open=(move("m1", destinations=("n2", "n1"), planned=NOW - 5),))
