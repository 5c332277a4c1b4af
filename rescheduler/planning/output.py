"""A plan as JSON, as YAML, or as tables no wider than the terminal."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import yaml

from reberth.values.table import BELOW, GAP, wrap_table, wrap_text
from rescheduler.model.plan import APPLY, ClusterScore, Plan, PlannedMove
from rescheduler.planning.worth import LEVELS

_NARROWEST = 60
# More refused proposals are only counted by rule; --why shows any of them.
_MOST_REFUSED = 20
_SCORES = (
    "broken rules",
    "pods on leaving nodes",
    "requests above the thresholds",
    "spread of the nodes' utilisation",
)
_COMMAND = ("python", "-m", "rescheduler", "move")
_WORTHS = ", ".join(f"{number} from {level.worth} points" for number, level in LEVELS.items() if level.worth)
_LEGEND = (
    ("CHANCE", "how likely the replacement lands on one of the destinations, by the forecast"),
    ("MODE", "apply: the daemon makes the move; recommend: it only shows it"),
    ("LEVEL", f"the lowest level of the policy that makes the move: 1 only for a broken rule, {_WORTHS}"),
    ("WORTH", "gain less cost and risk, in points of kube-scheduler's score (-o json shows all of them)"),
    ("gain", "how much more the destination scores; a plugin of weight 1 adds 0 to 100 points"),
    ("cost", "what it takes to start the pod again, by its importance, its size and its time to Ready"),
    ("risk", "few replicas, a tight disruption budget, another landing"),
)


def write_json(plan: Plan) -> str:
    return msgspec.json.format(msgspec.json.encode(_as_values(plan)), indent=2).decode()


def write_yaml(plan: Plan) -> str:
    return yaml.safe_dump(_as_values(plan), sort_keys=False, allow_unicode=True).rstrip()


def write_table(plan: Plan, *, width: int) -> str:
    """Write the moves, the refusals and the score; a long text continues on the next line."""
    return "\n".join(_list_lines(plan, max(width, _NARROWEST)))


def write_guide(plan: Plan, *, width: int, access: Sequence[str] | None) -> str:
    """Explain the columns and what can be done next.

    `access` are the options that lead to the cluster; None for a plan of a file, whose pods nobody can move.
    """
    wide = max(width, _NARROWEST)
    lines = [*wrap_table(_LEGEND, width=wide), ""] if plan.moves else []
    for text in _list_next(plan, access):
        lines += wrap_text(text, width=wide, rest=BELOW)
    return "\n".join(lines)


def _list_next(plan: Plan, access: Sequence[str] | None) -> Iterator[str]:
    if plan.moves and access is not None:
        move = plan.moves[0]
        nodes = ",".join(each.node for each in move.destinations)
        yield f"To make one of these moves now: {shlex.join((*_COMMAND, *access, move.pod, '--to', nodes))}"
    if any(move.mode != APPLY for move in plan.moves):
        yield "To have the daemon make the recommended moves: set mode: apply in its policy."
    if len(plan.refused):
        yield f"Why was a pod not moved? Add --why {next(iter(plan.refused)).pod}"
    elif not plan.moves:
        yield "No policy proposes a move. What each of them says about a pod: add --why NAMESPACE/POD"


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
    figures = (f"{chance:.0%}", move.policy, move.mode, str(move.level), f"{move.worth:.0f}")
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
    rows = zip(_SCORES, _show_score(plan.score.before), _show_score(plan.score.after), strict=True)
    yield from wrap_table([("SCORE (less is better)", "BEFORE", "AFTER"), *rows], width=width)


def _show_score(score: ClusterScore) -> tuple[str, ...]:
    counts = f"{score.broken_rules:,}", f"{score.on_leaving_nodes:,}"
    return (*counts, f"{score.excess:.2f} nodes", f"{score.spread:.1%}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def write_words(title: str, rows: Iterable[tuple[str, str]], *, width: int) -> Iterator[str]:
    """Write a title and one line for each row."""
    said = list(rows)
    yield title
    yield from wrap_table(said, width=width, indent=GAP) if said else [f"{GAP}nothing"]
