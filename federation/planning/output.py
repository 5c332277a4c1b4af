"""A plan of a hub as JSON, as YAML, or as tables no wider than the terminal."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import yaml

from federation.api import TargetCluster
from federation.planning.plan import BindingForecast, HubPlan, PlannedStep
from federation.rebalancing.replicas import write_replicas
from reberth.values.table import printable, wrap_table

_NARROWEST = 60
_STEPS = ("STEP", "BINDING", "CLUSTERS", "WHY")
_STAYS = ("BINDING", "CLUSTERS", "WHY")
_WAITS = ("BINDING", "WAITS FOR", "UNTIL", "WHY")
_REBALANCED = ("REBALANCER", "WORKLOAD", "RESULT", "WHY")


def write_json(plan: HubPlan) -> str:
    return msgspec.json.format(msgspec.json.encode(plan), indent=2).decode()


def write_yaml(plan: HubPlan) -> str:
    values: Any = msgspec.json.decode(msgspec.json.encode(plan))
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True).rstrip()


def write_table(plan: HubPlan, *, width: int) -> str:
    """Write the steps, what they wait for, and why the other workloads stay."""
    wide = max(width, _NARROWEST)
    moved = {step.subject for step in plan.steps}
    stays = {name: each for name, each in plan.bindings.items() if name not in moved}
    tables = (
        (_STEPS, map(_list_step, plan.steps)),
        (_WAITS, _list_waits(plan.bindings)),
        (_STAYS, map(_list_stay, stays, stays.values())),
        (_REBALANCED, _list_rebalanced(plan)),
    )
    written = ["\n".join(_write(headings, rows, wide)) for headings, rows in tables]
    return "\n\n".join(_head(plan) + [each for each in written if each])


def _head(plan: HubPlan) -> list[str]:
    steps, bindings = _count(len(plan.steps), "step"), _count(len(plan.bindings), "binding")
    return [f"{steps} for {bindings} at {plan.now}"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _write(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int) -> Iterator[str]:
    listed = [tuple(map(printable, row)) for row in rows]
    if listed:
        yield from wrap_table([headings, *listed], width=width)


def _list_step(step: PlannedStep) -> tuple[str, ...]:
    why = step.reason
    if step.kept:
        why += (
            f"; {write_replicas(step.kept)} stays until the new copies are ready, at most until {step.until}"
        )
    return str(step.action), step.subject, _write_path(step.origin, step.to), why


def _list_waits(bindings: Mapping[str, BindingForecast]) -> Iterator[tuple[str, ...]]:
    for name, each in bindings.items():
        for wait in each.waits:
            yield name, str(wait.what), wait.until or "-", wait.message


def _list_stay(name: str, each: BindingForecast) -> tuple[str, ...]:
    reason = "" if each.reason == "Success" else f"{each.reason}: "
    return name, _write_path(None, each.to), f"{reason}{each.message}"


def _list_rebalanced(plan: HubPlan) -> Iterator[tuple[str, ...]]:
    for name, entries in plan.rebalancers.items():
        for each in entries:
            one = each.workload
            workload = f"{one.kind} {'/'.join(filter(None, (one.namespace, one.name)))}"
            result = str(each.result) if each.result else "-"
            yield name, workload, result, each.message or _write_path(each.origin, each.to)


def _write_path(origin: Iterable[TargetCluster] | None, to: Iterable[TargetCluster] | None) -> str:
    parts = [write_replicas(each) for each in (origin, to) if each]
    return " -> ".join(parts) or "-"
