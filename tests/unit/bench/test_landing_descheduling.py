"""The descheduler's policy in the benchmark, and reading its metrics."""

from bench.descheduler import read_metrics
from bench.landing.candidates import CHOOSY, LARGE, write
from bench.landing.descheduling import describe_policy
from tests.support.cluster import large_cluster

METRICS = """# HELP descheduler_strategy_duration_seconds Time taken to complete each strategy
# TYPE descheduler_strategy_duration_seconds histogram
descheduler_strategy_duration_seconds_sum{profile="measured",strategy="PodLifeTime"} 1.5
descheduler_strategy_duration_seconds_sum{profile="measured",strategy="Another"} 0.25
process_cpu_seconds_total 1.2e+01
"""


def test_metrics_are_added_up_over_their_labels() -> None:
    assert read_metrics(METRICS) == {
        "descheduler_strategy_duration_seconds_sum": 1.75,
        "process_cpu_seconds_total": 12.0,
    }


def test_the_policies_differ_only_in_node_fit() -> None:
    without, with_it = (describe_policy(LARGE, node_fit=asked) for asked in (False, True))
    assert without != with_it
    with_it["profiles"][0]["pluginConfig"][0]["args"]["nodeFit"] = False
    assert without == with_it


def test_a_large_candidate_asks_for_more_than_any_node_offers() -> None:
    asked = write(LARGE, 7, nodes=5)["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    offered = large_cluster.node(0)["status"]["allocatable"]["cpu"]
    assert int(asked) * 1000 > int(offered.removesuffix("m"))


def test_a_choosy_candidate_asks_for_a_label_that_no_node_has() -> None:
    asked = write(CHOOSY, 7, nodes=5)["spec"]["nodeSelector"]
    assert asked.keys().isdisjoint(large_cluster.node(0)["metadata"]["labels"])
