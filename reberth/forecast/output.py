"""A forecast as JSON values, and as a table for people."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reberth.cluster.snapshot import Snapshot
from reberth.forecast.forecast import Forecast
from reberth.forecast.state.verdict import Irreplaceable, Unforeseeable
from reberth.values.table import GAP, align

Json = dict[str, Any]

PENDING, NEXT = "pending", "next"


# How often kube-scheduler's cache is stale for the old pod when it schedules the replacement: 7 of 440 were
# measured on a busy machine (1.6 %), rounded up.
STALE_SHARE = 0.02


def describe(
    found: Forecast | Unforeseeable | Irreplaceable,
    snapshot: Snapshot,
    *,
    state: str,
    rare: Sequence[Forecast] = (),
) -> Json:
    """Give the feasible nodes with their scores, the refused ones with their reasons, and the chances.

    `rare` are the forecasts for the cases in which kube-scheduler's cache is stale for the old pod.
    """
    if isinstance(found, Unforeseeable):
        return {"state": state, "unforeseeable": found.reason}
    if isinstance(found, Irreplaceable):
        return {"state": state, "irreplaceable": found.reason}
    names = snapshot.nodes.names
    feasible = {names[node]: _describe_node(found, at) for at, node in enumerate(found.feasible.tolist())}
    refused = {name: found.reasons(node) for node, name in enumerate(names) if name not in feasible}
    learnt = {"learnt": list(found.incoming.learnt)} if found.incoming.learnt else {}
    return {
        "state": state,
        **learnt,
        "feasible": feasible,
        "refused": {name: reasons for name, reasons in refused.items() if reasons},
        "best": [
            names[node] for node in sorted({node for one in (found, *rare) for node in one.best.tolist()})
        ],
        "chances": {names[node]: chance for node, chance in _mix(found, rare).items()},
    }


def _mix(found: Forecast, rare: Sequence[Forecast]) -> dict[int, float]:
    """Give the chances of all cases together."""
    chances = _list_chances(found, 1.0 - STALE_SHARE if rare else 1.0)
    for one in rare:
        for node, chance in _list_chances(one, STALE_SHARE / len(rare)).items():
            chances[node] = chances.get(node, 0.0) + chance
    return {node: round(chances[node], 6) for node in sorted(chances)}


def _list_chances(found: Forecast, share: float) -> dict[int, float]:
    pairs = zip(found.feasible.tolist(), found.chances.tolist(), strict=True)
    return {node: share * chance for node, chance in pairs if share * chance > 0}


def _describe_node(found: Forecast, at: int) -> Json:
    if found.scores is None:
        return {"total": None, "plugins": {}}
    plugins = {name: int(scores[at]) for name, scores in found.scores.plugins.items()}
    return {"total": int(found.totals[at]), "plugins": plugins}


def tabulate(pods: Mapping[str, Json]) -> str:
    """Write a table for each pod: its nodes by chance, with each plugin's score, and the refusals."""
    tables = ["\n".join(_tabulate_pod(name, found)) for name, found in pods.items()]
    return "\n".join(tables) or "no pending pods"


def _tabulate_pod(name: str, found: Json) -> Iterable[str]:
    yield f"{name} ({found['state']})"
    if "unforeseeable" in found:
        yield f"  cannot be forecast: {found['unforeseeable']}"
        return
    if "irreplaceable" in found:
        yield f"  cannot be replaced: {found['irreplaceable']}"
        return
    if "learnt" in found:
        yield f"  as its newest sibling shows, webhooks add: {', '.join(found['learnt'])}"
    nodes: dict[str, Json] = found["feasible"]
    plugins = list(dict.fromkeys(plugin for node in nodes.values() for plugin in node["plugins"]))
    rows = [["NODE", "CHANCE", "TOTAL", *plugins]]
    order = sorted(
        nodes, key=lambda node: (-found["chances"].get(node, 0.0), -(nodes[node]["total"] or 0), node)
    )
    for node in order:
        said = [str(nodes[node]["plugins"].get(plugin, "-")) for plugin in plugins]
        total = nodes[node]["total"]
        chance = f"{found['chances'].get(node, 0.0):.1%}"
        rows.append([node, chance, "-" if total is None else str(total), *said])
    yield from align(rows, indent=GAP) if nodes else ["  no node is feasible"]
    yield from _count_refusals(found["refused"])


def _count_refusals(refused: Mapping[str, list[str]]) -> Iterable[str]:
    counts: dict[str, int] = {}
    for reasons in refused.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"  refused on {count}: {reason}"
