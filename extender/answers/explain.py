"""Explains what each signal contributes for one pod on each node, with the functions of the answers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reberth.cluster.rows import PodRow
from reberth.memory.advice import NodeAdvice, PodAdvice, explain, grade_avoiding, grade_scores
from reberth.memory.index import MemoryIndex
from reberth.records import ObjectMeta
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time

# The number of nodes explained at a time: calls of the scheduler wait meanwhile.
_AT_ONCE = 50


def metadata_of(pod: PodRow) -> ObjectMeta:
    """Give the metadata of a cached pod in the form in which the scheduler sends it."""
    return ObjectMeta(
        name=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        creation_timestamp=write_time(pod.created),
        resource_version=str(pod.version),
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        owner_references=pod.template.pod.metadata.owner_references,
    )


def describe(pod: ObjectMeta, advice: PodAdvice) -> Mapping[str, Any]:
    """Describe the pod's owners, the move that draws it, and its weights."""
    signature, move, choice = advice.signature, advice.drawn_by, advice.choice
    return {
        "pod": f"{pod.namespace}/{pod.name}",
        "now": write_time(advice.now),
        "known": None if isinstance(signature, Refused) else msgspec.to_builtins(signature),
        "unknown": signature.reason if isinstance(signature, Refused) else None,
        "drawnBy": msgspec.to_builtins(move),
        "weights": {f"{source}/{name}": weight for (source, name), weight in choice.weights.items()},
        "weightsRefused": choice.refused.reason if choice.refused else None,
    }


def explain_nodes(index: MemoryIndex, advice: PodAdvice, nodes: Sequence[str]) -> Iterator[list[NodeAdvice]]:
    """Explain these nodes as if all of them were in one call, a batch at a time."""
    rows = index.locate(nodes)
    avoid = grade_avoiding(index, advice, rows).tolist()
    scores = grade_scores(index, advice, rows).tolist()
    for start in range(0, len(nodes), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        verdicts = explain(index, advice, nodes[some])
        yield [
            msgspec.structs.replace(verdict, avoid=low, scores=worth)
            for verdict, low, worth in zip(verdicts, avoid[some], scores[some], strict=True)
        ]
