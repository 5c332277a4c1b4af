"""Compare a forecast with the scheduler's decision: no line, or one line for each difference."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from tests.live.forecast.support.truth import Truth

_MOST_LINES = 12


def differences(forecast: Mapping[str, Any], truth: Truth) -> list[str]:
    """List what differs; empty if the forecast is right."""
    if "unforeseeable" in forecast:
        return [f"cannot be forecast: {forecast['unforeseeable']}"]
    found = [
        *_compare_feasible(forecast, truth),
        *_compare_refusals(forecast, truth),
        *_compare_plugins(forecast, truth),
        *_compare_grades(forecast, truth),
        *_compare_totals(forecast, truth),
        *_compare_best(forecast, truth),
    ]
    more = len(found) - _MOST_LINES
    return [*found[:_MOST_LINES], f"... and {more} more"] if more > 0 else found


def _compare_feasible(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    ours, theirs = set(forecast["feasible"]), set(truth.feasible)
    for node in sorted(ours - theirs):
        yield f"{node}: feasible in the forecast only"
    for node in sorted(theirs - ours):
        yield f"{node}: refused in the forecast only: {forecast['refused'].get(node)}"


def _compare_refusals(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """What a plugin says beforehand is said of every node; everything else must add up."""
    if truth.rejected is not None:
        wrong = {node: said for node, said in forecast["refused"].items() if said != [truth.rejected]}
        if wrong or not forecast["refused"]:
            yield f"rejected with {truth.rejected!r}, forecast {wrong or 'no refusal'}"
        return
    if truth.refusals is None:
        return
    ours = Counter(reason for reasons in forecast["refused"].values() for reason in reasons)
    for reason in sorted(ours.keys() | truth.refusals.keys()):
        if ours[reason] != truth.refusals.get(reason, 0):
            yield f"refused {truth.refusals.get(reason, 0)} times, forecast {ours[reason]}: {reason}"


def _compare_plugins(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """A plugin that skips a pod is logged with 0 and absent from the forecast."""
    for node, theirs in sorted(truth.plugins.items()):
        ours = forecast["feasible"].get(node, {}).get("plugins", {})
        for plugin in sorted(theirs.keys() | ours.keys()):
            if theirs.get(plugin, 0) != ours.get(plugin, 0):
                yield f"{node}: {plugin} {theirs.get(plugin, 0)}, forecast {ours.get(plugin, 0)}"


def _compare_grades(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """Only what our own extender says is forecast by itself; all that is said is in the totals."""
    for path, ours in forecast.get("grades", {}).items():
        for node in sorted(ours.keys() | truth.extenders.keys()):
            said = truth.extenders.get(node, {})
            theirs = next((grade for url, grade in said.items() if url.endswith(f"/{path}")), None)
            if theirs != ours.get(node):
                yield f"{node}: /{path} says {theirs}, forecast {ours.get(node)}"


def _compare_totals(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    """None where nobody was scored."""
    for node in truth.feasible:
        ours = forecast["feasible"].get(node, {"total": None})["total"]
        if ours != truth.total.get(node):
            yield f"{node}: total {truth.total.get(node)}, forecast {ours}"


def _compare_best(forecast: Mapping[str, Any], truth: Truth) -> Iterator[str]:
    if truth.bound is None:
        if forecast["best"]:
            yield f"placed nowhere, forecast {forecast['best']}"
    elif truth.bound not in forecast["best"]:
        yield f"placed on {truth.bound}, forecast {forecast['best']}"
    elif not forecast["chances"].get(truth.bound):
        yield f"placed on {truth.bound}, to which the forecast gives no chance"
