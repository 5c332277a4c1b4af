"""Nodes, a memory index about them, and its advice for a pod."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from reberth.cluster.pods.identity import Signature
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.memory.advice import AdviceSettings, PodAdvice, advise_pod, grade_avoiding, grade_scores
from reberth.memory.destination_draw import Replica
from reberth.memory.history import start_history
from reberth.memory.index import MemoryIndex
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


def make_index(
    *nodes: Node,
    histories: Iterable[EvictionHistory] = (),
    scores: Iterable[NodePlacementScore] = (),
    settings: ScoreSettings = LOAD,
) -> MemoryIndex:
    """The nodes given, and those of NODES that are not among them."""
    index = MemoryIndex(settings)
    given = {one.metadata.name for one in nodes}
    for one in [*nodes, *(node(name) for name in NODES if name not in given)]:
        index.put_node(one)
    for history in histories:
        index.put_history(history)
    for score in scores:
        index.put_score(score)
    return index


def history(who: Signature = WEB, **status: Any) -> EvictionHistory:
    return msgspec.structs.replace(start_history(who), status=HistoryStatus(**status))


def advise(
    index: MemoryIndex,
    pod: Pod | None = None,
    *,
    replicas: Collection[Replica] = (),
    now: float = NOW,
    **settings: Any,
) -> PodAdvice:
    asked = (pod or web_pod()).metadata
    return advise_pod(
        index,
        asked,
        owners=OWNERS,
        replicas={"uid-rs": replicas},
        now=now,
        settings=AdviceSettings(**settings),
    )


def avoid(index: MemoryIndex, formed: PodAdvice | None = None, nodes: Iterable[str] = NODES) -> list[int]:
    found: list[int] = grade_avoiding(index, formed or advise(index), index.locate(list(nodes))).tolist()
    return found


def scored(index: MemoryIndex, formed: PodAdvice | None = None, nodes: Iterable[str] = NODES) -> list[int]:
    found: list[int] = grade_scores(index, formed or advise(index), index.locate(list(nodes))).tolist()
    return found


NOTED = {"life": HOUR}
DRAWN = history(open=(move("m1", destinations=("n2", "n1"), planned=NOW - 5),))
