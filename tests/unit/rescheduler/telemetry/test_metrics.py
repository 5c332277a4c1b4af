"""The rescheduler's metrics."""

import pytest
from prometheus_client import Metric

from reberth.runtime.metrics import REGISTRY, bounded
from rescheduler.telemetry import metrics

OURS = [family for family in REGISTRY.collect() if family.name.startswith("reberth_rescheduler")]


def test_a_rule_that_is_not_declared_is_counted_under_other() -> None:
    assert bounded("PDB", metrics.REFUSALS) == "PDB"
    assert bounded("made-up", metrics.REFUSALS) == "other"


@pytest.mark.parametrize("family", OURS, ids=lambda family: family.name)
def test_no_label_names_a_pod_a_node_or_a_workload(family: Metric) -> None:
    labels = {name for sample in family.samples for name in sample.labels}
    assert labels.isdisjoint({"pod", "node", "namespace", "workload"})


def test_the_score_is_shown_part_by_part() -> None:
    assert metrics.SCORE_PARTS == ("broken_rules", "on_leaving_nodes", "excess", "spread")
