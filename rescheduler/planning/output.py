"""A plan as JSON, as YAML, or as tables no wider than the terminal."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import yaml

from reberth.values.table import BELOW, GAP, wrap_table, wrap_text
from rescheduler.model.plan import ClusterScore, Plan, PlannedMove

_NARROWEST = 60
# More refused proposals are only counted by rule; --why shows any of them.
_MOST_REFUSED = 20


def write_json(plan: Plan) -> str:
    return msgspec.json.format(msgspec.json.encode(_as_values(plan)), indent=2).decode()


def write_yaml(plan: Plan) -> str:
    return yaml.safe_dump(_as_values(plan), sort_keys=False, allow_unicode=True).rstrip()


def write_table(plan: Plan, *, width: int) -> str:
    """Write the moves, the refusals and the score; a long text continues on the next line."""
    return "\n".join(_list_lines(plan, max(width, _NARROWEST)))


def _as_values(plan: Plan) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.to_builtins(plan, enc_hook=list)  # the refusals
    values["score"] = {"before": _name(plan.score.before), "after": _name(plan.score.after)}
    return values


def _name(score: ClusterScore) -> dict[str, float]:
    return {
        "brokenRules": score.broken_rules,
        "onLeavingNodes": score.on_leaving_nodes,
        "excess": score.excess,
        "spread": score.spread,
    }


def _list_lines(plan: Plan, width: int) -> Iterator[str]:
    yield f"Plan of {plan.now}: {_count(len(plan.moves), 'move')}, {_count(len(plan.refused), 'refusal')}"
    for warning in plan.warnings:
        yield from wrap_text(f"warning: {warning}", width=width, rest=BELOW)
    if plan.moves:
        yield ""
        head = ("POD", "FROM", "TO", "CHANCE", "POLICY", "MODE", "LEVEL", "WORTH", "REASON")
        yield from wrap_table([head, *map(_show_move, plan.moves)], width=width)
    if len(plan.refused):
        yield ""
        yield from _list_refused(plan, width)
    yield ""
    yield from _list_score(plan, width)


def _show_move(move: PlannedMove) -> tuple[str, ...]:
    first, *others = move.destinations
    more = f" +{len(others)}" if others else ""
    chance = sum(each.chance for each in move.destinations)
    figures = (f"{chance:.0%}", move.policy, move.mode, str(move.level), f"{move.worth:g}")
    return (move.pod, move.from_, first.node + more, *figures, move.reason)


def _list_refused(plan: Plan, width: int) -> Iterator[str]:
    """Show the refusals one by one, or if there are many, their number by rule."""
    if len(plan.refused) <= _MOST_REFUSED:
        rows = [(each.pod, each.policy, each.rule, each.reason) for each in plan.refused]
        yield from wrap_table([("NOT MOVED", "POLICY", "RULE", "REASON"), *rows], width=width)
        return
    order = sorted(plan.refused.count().items(), key=lambda item: (-item[1], item[0]))
    counted = [(rule, policy, str(count)) for (rule, policy), count in order]
    yield from wrap_table([("NOT MOVED BY RULE", "POLICY", "PODS"), *counted], width=width)


def _list_score(plan: Plan, width: int) -> Iterator[str]:
    before, after = _name(plan.score.before), _name(plan.score.after)
    rows = [(name, f"{before[name]:g}", f"{after[name]:g}") for name in before]
    yield from wrap_table([("SCORE (less is better)", "BEFORE", "AFTER"), *rows], width=width)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def write_words(title: str, rows: Iterable[tuple[str, str]], *, width: int) -> Iterator[str]:
    """Write a title and one line for each row."""
    said = list(rows)
    yield title
    yield from wrap_table(said, width=width, indent=GAP) if said else [f"{GAP}nothing"]
