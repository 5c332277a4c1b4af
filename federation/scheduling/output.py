"""Decisions as text: JSON for programs, a table for people."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from federation.scheduling import ClusterVerdict, Decision
from reberth.values.table import align

_HEADINGS = ("CLUSTER", "REPLICAS", "AVAILABLE", "SCORE", "REASONS")
_INDENT = "  "


def write_json(decisions: Mapping[str, Decision]) -> str:
    content = {"bindings": {name: _list_fields(decisions[name]) for name in sorted(decisions)}}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()


def write_table(decisions: Mapping[str, Decision]) -> str:
    return "\n\n".join("\n".join(_describe(name, decisions[name])) for name in sorted(decisions))


def _list_fields(decision: Decision) -> dict[str, object]:
    return {
        "clusters": [{"name": target.name, "replicas": target.replicas} for target in decision.clusters],
        "affinityName": decision.affinity_name,
        "reason": decision.reason,
        "message": decision.message,
        **({"failures": decision.failures} if decision.failures else {}),
        "verdicts": decision.verdicts,
    }


def _describe(name: str, decision: Decision) -> Iterator[str]:
    group = f", group {decision.affinity_name}" if decision.affinity_name else ""
    yield f"{name}: {decision.reason}{group}"
    if decision.cause:
        yield f"{_INDENT}It is scheduled because {decision.cause}."
    yield from (f"{_INDENT}{failure.message}" for failure in decision.failures)
    yield f"{_INDENT}{decision.message}"
    replicas = {target.name: str(target.replicas) for target in decision.clusters}
    rows = [_row(cluster, verdict, replicas) for cluster, verdict in decision.verdicts.items()]
    # Names and texts are aligned to the left, numbers to the right.
    yield from align([_HEADINGS, *rows], right=range(1, len(_HEADINGS) - 1), indent=_INDENT)


def _row(cluster: str, verdict: ClusterVerdict, replicas: Mapping[str, str]) -> Sequence[str]:
    against = "; ".join(f"{plugin}: {text}" for plugin, text in verdict.reasons.items())
    score = str(sum(verdict.scores.values())) if verdict.passed else "-"
    return cluster, replicas.get(cluster, "-"), str(verdict.available), score, against
