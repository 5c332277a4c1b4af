"""The rescheduler's metrics: every rule that a refusal may name has a label of its own."""

import ast
from collections.abc import Iterator

import pytest
from prometheus_client import Metric

from reberth.runtime.metrics import REGISTRY, bounded
from rescheduler.telemetry import metrics
from tests.support.repository import ROOT

OURS = [family for family in REGISTRY.collect() if family.name.startswith("reberth_rescheduler")]
# Said to a person only, or of scores; none of these reaches a metric of the rescheduler.
ELSEWHERE = {
    "EarlierWait",
    "HandOverBusy",
    "MoveDropped",
    "NotBegun",
    "RequestGone",
    "Unended",
    "LeaseHeld",
    "StrictlyNoted",
    "Missing",
    "NotANumber",
    "OutOfRange",
    "BadValidity",
}


def list_rules() -> Iterator[str]:
    """Find what is said as the rule of a refusal, wherever that is written."""
    for folder in ("rescheduler", "reberth"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for call in ast.walk(ast.parse(path.read_text())):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
                    first = call.args[0]
                    if call.func.id == "Refused" and isinstance(first, ast.Constant):
                        yield str(first.value)


def test_every_rule_that_may_refuse_a_move_is_known_as_a_label() -> None:
    rules = set(list_rules())
    assert len(rules) > 60
    assert rules - ELSEWHERE - metrics.REFUSALS == set()
    assert bounded("PDB", metrics.REFUSALS) == "PDB"
    assert bounded("made-up", metrics.REFUSALS) == "other"


@pytest.mark.parametrize("family", OURS, ids=lambda family: family.name)
def test_no_label_names_a_pod_a_node_or_a_workload(family: Metric) -> None:
    labels = {name for sample in family.samples for name in sample.labels}
    assert labels.isdisjoint({"pod", "node", "namespace", "workload"})


def test_the_score_is_shown_part_by_part() -> None:
    assert metrics.SCORE_PARTS == ("broken_rules", "on_leaving_nodes", "excess", "spread")
