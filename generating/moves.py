"""What the dashboard shows of the moves, and of what they make of the nodes."""

from generating.panels import Panel, Query, Row
from generating.querying import write_increase, write_quantile, write_share

_GREEN_FROM_90 = (("red", None), ("orange", 0.8), ("green", 0.9))
_RED_FROM_1 = (("green", None), ("red", 1.0))

HELPING = Row(
    "Is it helping?",
    (
        Panel(
            "Moves that brought a gain",
            "stat",
            "Of the moves whose pod was evicted: those whose replacement stands on a better node.",
            (
                Query(
                    write_share(
                        'reberth_rescheduler_outcomes_total{outcome="Better"}',
                        "reberth_rescheduler_outcomes_total",
                    ),
                    answers="after a move",
                ),
            ),
            unit="percentunit",
            width=4,
            height=5,
            steps=(("red", None), ("orange", 0.5), ("green", 0.75)),
        ),
        Panel(
            "Landed as forecast",
            "stat",
            "Of the replacements that landed: those on a node that the forecast had named.",
            (
                Query(
                    write_share(
                        'reberth_rescheduler_landings_total{forecast="hit"}',
                        "reberth_rescheduler_landings_total",
                    ),
                    answers="after a move",
                ),
            ),
            unit="percentunit",
            width=4,
            height=5,
            steps=_GREEN_FROM_90,
        ),
        Panel(
            "Came back",
            "stat",
            "Replacements that landed on the very node that was left. Each of them was for nothing.",
            (Query("sum(increase(reberth_rescheduler_returns_total[$__range]))", answers="perhaps"),),
            width=4,
            height=5,
            steps=_RED_FROM_1,
        ),
        Panel(
            "Pods moved",
            "stat",
            "Moves whose pod was evicted.",
            (Query("sum(increase(reberth_rescheduler_outcomes_total[$__range]))", answers="after a move"),),
            width=4,
            height=5,
        ),
        Panel(
            "Beyond the thresholds",
            "stat",
            "What is requested beyond the thresholds of underUtilisedNodes, in whole nodes.",
            (Query('max(reberth_rescheduler_cluster_score{part="excess", when="now"})'),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 0.1), ("red", 1.0)),
        ),
        Panel(
            "Workloads given up",
            "stat",
            "They are left alone for a day, since moves of them brought nothing. Their histories say why.",
            (Query("max(reberth_rescheduler_given_up_workloads)"),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "The cluster's score",
            "timeseries",
            "Less is better. It should fall while pods are moved, and stay.",
            (
                Query(
                    'max by (part) (reberth_rescheduler_cluster_score{when="now"})',
                    "{{part}}",
                ),
            ),
            width=12,
        ),
        Panel(
            "What became of the moves",
            "timeseries",
            "Outcomes of moves whose pod was evicted.",
            (
                Query(
                    write_increase("outcome", "reberth_rescheduler_outcomes_total"),
                    "{{outcome}}",
                    answers="after a move",
                ),
            ),
            width=12,
            stacked=True,
        ),
    ),
)

NODES = Row(
    "How evenly are the nodes used?",
    tuple(
        Panel(
            f"Nodes by requested {resource}",
            "heatmap",
            "How many nodes have how much requested. A cluster that is balanced is one narrow band.",
            (
                Query(
                    f'max by (le) (reberth_rescheduler_utilisation_nodes{{resource="{resource}"}})',
                    "{{le}}",
                ),
            ),
            unit="short",
            width=12,
        )
        for resource in ("cpu", "memory")
    ),
)

DOING = Row(
    "What does it do?",
    (
        Panel(
            "Moves by policy",
            "timeseries",
            "Moves that ended, by who wanted them and whether a pod was evicted.",
            (
                Query(
                    write_increase("policy, result", "reberth_rescheduler_moves_total"),
                    "{{policy}} {{result}}",
                    answers="after a move",
                ),
            ),
            stacked=True,
        ),
        Panel(
            "Under way, planned, still allowed",
            "timeseries",
            "How much is moved at once, what the last plan holds, and what the cluster's rates still allow.",
            (
                Query("max(reberth_rescheduler_moves_in_flight)", "under way"),
                Query("max by (mode) (reberth_rescheduler_plan_moves)", "planned, {{mode}}"),
                Query("max by (rate) (reberth_rescheduler_window_left_disruptions)", "left of {{rate}}"),
            ),
        ),
        Panel(
            "Answers to evictions",
            "timeseries",
            "What the API server answered.",
            (
                Query(
                    write_increase("answer", "reberth_rescheduler_evictions_total"),
                    "{{answer}}",
                    answers="after a move",
                ),
            ),
            stacked=True,
        ),
        Panel(
            "What keeps pods where they are",
            "timeseries",
            "Proposals that the last plan refused, by the rule against them: the ten most frequent.",
            (
                Query(
                    "topk(10, max by (rule) (reberth_rescheduler_plan_refused_proposals))",
                    "{{rule}}",
                    answers="perhaps",
                ),
            ),
            width=12,
            stacked=True,
        ),
        Panel(
            "Moves that were dropped",
            "timeseries",
            "Moves that were begun and dropped before the eviction, by the rule against them.",
            (
                Query(
                    write_increase("rule", "reberth_rescheduler_moves_refused_total"),
                    "{{rule}}",
                    answers="perhaps",
                ),
            ),
            width=12,
            stacked=True,
        ),
        Panel(
            "Until Ready",
            "timeseries",
            "Seconds from an eviction until its replacement was Ready.",
            (
                Query(
                    write_quantile(0.5, "reberth_rescheduler_time_to_ready_seconds"),
                    "half of them",
                    answers="after a move",
                ),
                Query(
                    write_quantile(0.95, "reberth_rescheduler_time_to_ready_seconds"),
                    "95 %",
                    answers="after a move",
                ),
            ),
            unit="s",
            width=12,
        ),
        Panel(
            "Gain of a move",
            "timeseries",
            "Points of kube-scheduler's total, in the middle: as planned, and as seen. They should agree.",
            (
                Query(
                    write_quantile(0.5, "reberth_rescheduler_gain_points", "when"),
                    "{{when}}",
                    answers="after a move",
                ),
            ),
            width=12,
        ),
    ),
)
