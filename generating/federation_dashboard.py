"""The dashboard of the federation: clusters, failover, and rebalancing of replicas between clusters."""

from generating.panels import Dashboard, Panel, Query, Row
from generating.promql import write_increase, write_quantile, write_total

_ALL = "reberth_federation_"
_OF = "reberth_federation_rebalance_"
_FAILOVER = "reberth_federation_application_failover_"

FAILOVER = Row(
    "Clusters and failover",
    (
        Panel(
            "Clusters",
            "stat",
            "Clusters by their state. Those that are not ready get no new workloads.",
            (Query(write_total(f"{_ALL}clusters", "state"), "{{state}}"),),
            width=8,
            height=5,
        ),
        Panel(
            "Without a ready copy",
            "stat",
            "Workloads that had ready pods and have none now, in no cluster of which anything is heard.",
            (Query(write_total(f"{_ALL}workloads_without_ready_copy")),),
            width=4,
            height=5,
            steps=(("green", None), ("red", 1.0)),
        ),
        Panel(
            "Longest without one",
            "stat",
            "Time for which the worst of these workloads has had no ready pod.",
            (Query(f"max({_ALL}longest_without_ready_copy_seconds)"),),
            unit="s",
            width=4,
            height=5,
            steps=(("green", None), ("red", 60.0)),
        ),
        Panel(
            "Evictions under way",
            "stat",
            "Workloads that leave a cluster and whose old copy is still there.",
            (Query(write_total(f"{_ALL}evictions_under_way", "cause"), "{{cause}}"),),
            width=8,
            height=5,
        ),
        Panel(
            "Evictions",
            "timeseries",
            "Evictions that have ended: because the new copies were ready, the time was over, by hand,"
            " or because their cause was gone.",
            (Query(write_increase("cause, outcome", f"{_ALL}evictions_total"), "{{cause}}: {{outcome}}"),),
            stacked=True,
        ),
        Panel(
            "Time without a ready copy",
            "timeseries",
            "For how long workloads had no ready pod in any cluster, until they had one again.",
            (
                Query(write_quantile(0.5, f"{_ALL}outage_seconds"), "p50", "perhaps"),
                Query(write_quantile(0.95, f"{_ALL}outage_seconds"), "p95", "perhaps"),
            ),
            unit="s",
        ),
        Panel(
            "Age of each member's word",
            "timeseries",
            "Time since a member answered a probe. What it said before may not be true any more.",
            (Query(f"max by (member) ({_ALL}member_word_age_seconds)", "{{member}}"),),
            unit="s",
        ),
    ),
)

APPLICATIONS = Row(
    "Application failover",
    (
        Panel(
            "Failing",
            "stat",
            "Workloads with application failover that fail in a cluster, without those that are given up.",
            (Query(write_total(f"{_FAILOVER}failing")),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "Storm",
            "stat",
            "1 while so many workloads fail at once that none of them moves.",
            (Query(f"max({_FAILOVER}storm)"),),
            width=4,
            height=5,
            steps=(("green", None), ("red", 1.0)),
        ),
        Panel(
            "What becomes of them",
            "stat",
            "Workloads with application failover by the reason of their condition Failover.",
            (Query(write_total(f"{_FAILOVER}workloads", "reason"), "{{reason}}"),),
            width=16,
            height=5,
        ),
        Panel(
            "Failovers",
            "timeseries",
            "Begun, withdrawn because the old copy was well again, or given up.",
            (Query(write_increase("outcome", f"{_ALL}application_failovers_total"), "{{outcome}}"),),
            stacked=True,
        ),
        Panel(
            "Replicas without a node",
            "timeseries",
            "Those that have had none in their member for long, and those that were given to other clusters.",
            (
                Query(write_total(f"{_ALL}pending_replicas"), "waiting"),
                Query(f"sum(increase({_ALL}pending_replicas_given_total[$__rate_interval]))", "given"),
            ),
        ),
        Panel(
            "Time until a workload leaves",
            "timeseries",
            "For how long it had failed in a cluster when it began to leave it.",
            (
                Query(write_quantile(0.5, f"{_FAILOVER}failing_seconds"), "p50", "perhaps"),
                Query(write_quantile(0.95, f"{_FAILOVER}failing_seconds"), "p95", "perhaps"),
            ),
            unit="s",
        ),
    ),
)

REBALANCING = Row(
    "Rebalancing",
    (
        Panel(
            "Triggered",
            "stat",
            "Workloads that a WorkloadRebalancer or failback asked to reschedule.",
            (Query(f"sum by (by) (increase({_OF}triggered_total[$__range]))", "{{by}}"),),
            width=6,
            height=5,
        ),
        Panel(
            "Rescheduled",
            "stat",
            "Workloads of WorkloadRebalancers that the scheduler has rescheduled.",
            (Query(f"sum(increase({_OF}rescheduled_total[$__range]))"),),
            width=4,
            height=5,
        ),
        Panel(
            "Replicas moved",
            "stat",
            "Replicas of these workloads that went to another cluster.",
            (Query(f"sum(increase({_OF}moved_replicas_total[$__range]))"),),
            width=4,
            height=5,
        ),
        Panel(
            "Waiting",
            "stat",
            "Workloads of WorkloadRebalancers that are not finished: not yet rescheduled, or not yet"
            " healthy.",
            (Query(f"sum({write_total(f'{_OF}waiting_workloads', 'reason')})"),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "Handovers timed out",
            "stat",
            "Workloads whose new copies were not ready in time: they returned or stay in both places.",
            (Query('sum(increase(reberth_federation_handovers_total{result!="ready"}[$__range]))'),),
            width=6,
            height=5,
            steps=(("green", None), ("red", 1.0)),
        ),
        Panel(
            "Workloads and replicas",
            "timeseries",
            "Workloads triggered and rescheduled, and replicas moved.",
            (
                Query(write_increase("by", f"{_OF}triggered_total"), "triggered by {{by}}"),
                Query(f"sum(increase({_OF}rescheduled_total[$__rate_interval]))", "rescheduled"),
                Query(f"sum(increase({_OF}moved_replicas_total[$__rate_interval]))", "replicas moved"),
            ),
        ),
        Panel(
            "Waiting by reason",
            "timeseries",
            "Workloads of WorkloadRebalancers that are not finished, by reason.",
            (Query(write_total(f"{_OF}waiting_workloads", "reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Time to reschedule",
            "timeseries",
            "Time from the trigger until the workload is rescheduled, including its wait for a free slot.",
            (
                Query(write_quantile(0.5, f"{_OF}duration_seconds"), "p50", "after a move"),
                Query(write_quantile(0.95, f"{_OF}duration_seconds"), "p95", "after a move"),
            ),
            unit="s",
        ),
        Panel(
            "Handovers",
            "timeseries",
            "Old copies removed because the new ones were ready, or because of the timeout.",
            (Query(write_increase("result", "reberth_federation_handovers_total"), "{{result}}"),),
            width=24,
            height=5,
            stacked=True,
        ),
    ),
)

INTERPRETERS = Row(
    "Interpreters",
    (
        Panel(
            "Failing customizations",
            "stat",
            "ResourceInterpreterCustomizations whose scripts cannot be used, or failed in the last minute.",
            (Query(write_total("reberth_interpreter_failing_customizations")),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "Results of scripts",
            "timeseries",
            "What scripts of users answered, and how many failed, exceeded a limit or were refused.",
            (Query(write_increase("result", "reberth_interpreter_results_total"), "{{result}}", "perhaps"),),
            width=14,
            height=5,
            stacked=True,
        ),
        Panel(
            "Memory of Lua",
            "timeseries",
            "Bytes that the scripts of users and what they have left take.",
            (Query(write_total("reberth_interpreter_memory_bytes"), "bytes"),),
            width=6,
            height=5,
            unit="bytes",
        ),
    ),
)

FEDERATION_DASHBOARD = Dashboard(
    "Reberth: federation",
    "reberth-federation",
    "The clusters and what happens when they fail; rebalancing of replicas between them: what triggered it,"
    " its results, and what it waits for.",
    (FAILOVER, APPLICATIONS, REBALANCING, INTERPRETERS),
    f"{_OF}waiting_workloads",
)
