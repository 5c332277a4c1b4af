"""What the dashboard shows of replicas on their way between clusters."""

from generating.panels import Dashboard, Panel, Query, Row
from generating.querying import write_increase, write_quantile

_OF = "reberth_federation_rebalance_"

REBALANCING = Row(
    "Do replicas come back to better places?",
    (
        Panel(
            "Asked for",
            "stat",
            "Workloads that were to be scheduled afresh, for a rebalancer or because home is well again.",
            (Query(f"sum by (by) (increase({_OF}triggered_total[$__range]))", "{{by}}"),),
            width=6,
            height=5,
        ),
        Panel(
            "Scheduled afresh",
            "stat",
            "Workloads of rebalancers that the scheduler has placed anew.",
            (Query(f"sum(increase({_OF}rescheduled_total[$__range]))"),),
            width=4,
            height=5,
        ),
        Panel(
            "Replicas moved",
            "stat",
            "Replicas of these workloads that were given to another cluster.",
            (Query(f"sum(increase({_OF}moved_replicas_total[$__range]))"),),
            width=4,
            height=5,
        ),
        Panel(
            "Waiting",
            "stat",
            "Workloads of rebalancers that are not done: not scheduled yet, or not healthy where they are.",
            (Query(f"sum(max by (reason) ({_OF}waiting_workloads))"),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "Let go before the new were ready",
            "stat",
            "Workloads whose old copies went because their time was over. Replicas may have been missing.",
            (Query('sum(increase(reberth_federation_handovers_total{result="timeout"}[$__range]))'),),
            width=6,
            height=5,
            steps=(("green", None), ("red", 1.0)),
        ),
        Panel(
            "Workloads and replicas",
            "timeseries",
            "Asked for, scheduled afresh, and how many replicas that moved.",
            (
                Query(write_increase("by", f"{_OF}triggered_total"), "asked for by {{by}}"),
                Query(f"sum(increase({_OF}rescheduled_total[$__rate_interval]))", "scheduled afresh"),
                Query(f"sum(increase({_OF}moved_replicas_total[$__rate_interval]))", "replicas moved"),
            ),
        ),
        Panel(
            "What is waited for",
            "timeseries",
            "Workloads of rebalancers that are not done, by the reason.",
            (Query(f"max by (reason) ({_OF}waiting_workloads)", "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "From the wish to the fresh scheduling",
            "timeseries",
            "Seconds that a workload waited for the scheduler, and for its turn.",
            (
                Query(write_quantile(0.5, f"{_OF}duration_seconds"), "half of them", "after a move"),
                Query(write_quantile(0.95, f"{_OF}duration_seconds"), "95 %", "after a move"),
            ),
            unit="s",
        ),
        Panel(
            "Old copies let go",
            "timeseries",
            "Because the new ones were ready, or because the time was over.",
            (Query(write_increase("result", "reberth_federation_handovers_total"), "{{result}}"),),
            width=24,
            height=5,
            stacked=True,
        ),
    ),
)

BETWEEN_CLUSTERS = Dashboard(
    "Reberth: between clusters",
    "reberth-federation",
    "Replicas on their way between clusters: who asked for it, what came of it, and what is waited for.",
    (REBALANCING,),
)
