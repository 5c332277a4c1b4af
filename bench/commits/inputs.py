"""What all commits read: lists of objects and calls of kube-scheduler, written once to a folder."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.planning.fleet import NOW, Fleet
from reberth.cluster.kinds import HISTORIES, NODES, PODS, SCORES
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from reberth.records import Record
from tests.support.cluster import large_cluster
from tests.support.extender.calls import WEB_SET, question
from tests.support.memory import advice
from tests.support.memory.objects import HOUR, WEB, score

REPLICAS = 10
_NOTED = 160
"""Of so many nodes one has a note."""
_CALLS = 5


def write(folder: Path, *, pods: int, nodes: int, fleet: int, asked: int) -> None:
    """Write pods and nodes to be read, a fleet to plan for, and what the extender knows and is asked."""
    _write_pages(folder / "reading" / NODES.name, large_cluster.node_pages(nodes))
    _write_pages(
        folder / "reading" / PODS.name, large_cluster.pod_pages(pods, replicas=REPLICAS, nodes=nodes)
    )
    for resource, pages in Fleet(fleet).list_pages():
        _write_pages(folder / "planning" / resource.name, pages)
    names = [f"node-{number:05d}" for number in range(asked)]
    for name, objects in _list_memory(names).items():
        _write_pages(folder / "answers" / name, large_cluster.as_pages("Any", map(_write_object, objects)))
    shifts = range(0, 10 * _CALLS, 10)  # so many different lists that none is remembered from the last time
    _write_pages(folder / "calls", (question(names[shift:] + names[:shift]) for shift in shifts))


def _list_memory(names: list[str]) -> dict[str, Iterable[Record]]:
    return {
        NODES.name: _list_nodes(names),
        SCORES.name: (score(name, cpu=number % 200 - 100) for number, name in enumerate(names)),
        HISTORIES.name: [advice.DRAWN],
        "replicasets": [WEB_SET],
    }


def _list_nodes(names: list[str]) -> Iterator[Record]:
    for number, name in enumerate(names):
        note = compose_note(WEB, f"m{number}", policy="balance", reason="rebalance", now=NOW, life=HOUR)
        text = render_notes(Notes(ours=(note,)))
        yield advice.node(name, annotations={} if number % _NOTED else {ANNOTATION: text})


def _write_object(record: Record) -> str:
    whole = json.loads(msgspec.json.encode(record))
    meta = whole["metadata"]
    return json.dumps({**whole, "metadata": {**meta, "resourceVersion": "1", "uid": f"uid-{meta['name']}"}})


def _write_pages(folder: Path, pages: Iterable[bytes]) -> None:
    folder.mkdir(parents=True)
    for number, page in enumerate(pages):
        (folder / f"{number:04d}.json").write_bytes(page)
