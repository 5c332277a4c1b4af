"""The objects of the benchmark cluster, and reading its metrics."""

from collections import Counter

import pytest

from bench.extender.bursting import read_metric
from bench.extender.populating import NOTES, WORKLOADS, as_score, describe_pod, spread_notes
from reberth.cluster.pods.identity import Signature
from reberth.memory.notes import MOST_NOTES
from reberth.records import WorkloadIdentity

WEB = Signature(
    "default",
    WorkloadIdentity("apps/v1", "ReplicaSet", "web-7d9f8c", "uid-rs"),
    WorkloadIdentity("apps/v1", "Deployment", "web", "uid-deployment"),
)
METRICS = """# TYPE schedule_attempts_total counter
schedule_attempts_total{profile="default-scheduler",result="scheduled"} 2990
schedule_attempts_total{profile="other",result="scheduled"} 7
schedule_attempts_total{profile="default-scheduler",result="error"} 3
schedule_attempts_total_sum 1.5e-01
"""


@pytest.mark.parametrize("nodes", [313, 500, 5_000])
def test_notes_are_spread_over_nodes_and_workloads(nodes: int) -> None:
    spread = spread_notes(nodes)
    found = Counter(number for numbers in spread.values() for number in numbers)
    assert found.total() == NOTES
    assert set(found.values()) == {NOTES // WORKLOADS}
    assert max(map(len, spread.values())) == MOST_NOTES
    assert all(len(set(numbers)) == len(numbers) for numbers in spread.values())


def test_notes_per_node_are_capped_when_there_are_few_nodes() -> None:
    assert {len(numbers) for numbers in spread_notes(10).values()} == {MOST_NOTES}


@pytest.mark.parametrize("grade", range(11))
def test_a_score_is_rounded_to_its_grade(grade: int) -> None:
    assert (100 + as_score(grade)) / 20 == grade


def test_a_pod_is_one_of_its_replica_set() -> None:
    meta = describe_pod(WEB, 7)["metadata"]
    assert (meta["name"], meta["labels"]["pod-template-hash"]) == ("web-7d9f8c-00007", "7d9f8c")
    assert meta["ownerReferences"][0]["uid"] == "uid-rs"


def test_samples_of_a_metric_are_added_up_by_label() -> None:
    assert read_metric(METRICS, "schedule_attempts_total", 'result="scheduled"') == 2997
    assert read_metric(METRICS, "schedule_attempts_total_sum") == 0.15
    assert read_metric("", "schedule_attempts_total") == 0
