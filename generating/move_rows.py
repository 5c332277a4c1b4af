"""Rows of the dashboard about moves, their outcomes and the utilisation of the nodes."""

from generating.panels import Panel, Query, Row
from generating.promql import write_increase, write_quantile, write_share, write_total

_GREEN_FROM_90 = (("red", None), ("orange", 0.8), ("green", 0.9))
_RED_FROM_1 = (("green", None), ("red", 1.0))

HELPING = Row(
    "Outcomes",
    (
        Panel(
            "Moves with a gain",
            "stat",
            "Share of the evicted pods whose replacement runs on a better node.",
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
            "Share of the replacements that landed on a node that the forecast named.",
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
            "Returned",
            "stat",
            "Replacements that landed on their source node again. Such a move gains nothing.",
            (Query("sum(increase(reberth_rescheduler_returns_total[$__range]))", answers="perhaps"),),
            width=4,
            height=5,
            steps=_RED_FROM_1,
        ),
        Panel(
            "Pods moved",
            "stat",
            "Moves in which the pod was evicted.",
            (Query("sum(increase(reberth_rescheduler_outcomes_total[$__range]))", answers="after a move"),),
            width=4,
            height=5,
        ),
        Panel(
            "Requests above the thresholds",
            "stat",
            "Sum of the requests above the thresholds of underUtilisedNodes, in units of a whole node.",
            (Query(write_total('reberth_rescheduler_cluster_score{part="excess", when="now"}')),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 0.1), ("red", 1.0)),
        ),
        Panel(
            "Workloads given up",
            "stat",
            "Workloads that are not moved for a day because their last moves gained nothing; see their"
            " EvictionHistories.",
            (Query(write_total("reberth_rescheduler_given_up_workloads")),),
            width=4,
            height=5,
            steps=(("green", None), ("orange", 1.0)),
        ),
        Panel(
            "Cluster score",
            "timeseries",
            "Lower is better. It should fall while pods are moved, and then stay low.",
            (
                Query(
                    write_total('reberth_rescheduler_cluster_score{when="now"}', "part"),
                    "{{part}}",
                ),
            ),
            width=12,
        ),
        Panel(
            "Moves by outcome",
            "timeseries",
            "Outcomes of the moves in which the pod was evicted.",
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
    "Utilisation of the nodes",
    tuple(
        Panel(
            f"Nodes by requested {resource}",
            "heatmap",
            "Number of nodes by requested share. In a balanced cluster it is one narrow band.",
            (
                Query(
                    write_total(f'reberth_rescheduler_utilisation_nodes{{resource="{resource}"}}', "le"),
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
    "Moves",
    (
        Panel(
            "Moves by policy",
            "timeseries",
            "Finished moves by policy and result.",
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
            "In flight, planned and still allowed",
            "timeseries",
            "Moves in flight, moves in the last plan, and what the cluster's rates still allow.",
            (
                Query(write_total("reberth_rescheduler_moves_in_flight"), "in flight"),
                Query(write_total("reberth_rescheduler_plan_moves", "mode"), "planned, {{mode}}"),
                Query(
                    write_total("reberth_rescheduler_rate_remaining_disruptions", "rate"), "left in {{rate}}"
                ),
            ),
        ),
        Panel(
            "Eviction requests",
            "timeseries",
            "By the API server's answer.",
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
            "Refused proposals",
            "timeseries",
            "Proposals that the last plan refused: the ten most frequent rules.",
            (
                Query(
                    f"topk(10, {write_total('reberth_rescheduler_plan_refused_proposals', 'rule')})",
                    "{{rule}}",
                    answers="perhaps",
                ),
            ),
            width=12,
            stacked=True,
        ),
        Panel(
            "Dropped moves",
            "timeseries",
            "Moves that were started and dropped before the eviction, by rule.",
            (
                Query(
                    write_increase("rule", "reberth_rescheduler_moves_refused_total"),
                    "{{rule}}",
                    answers="perhaps",
                ),
            ),
            width=6,
            stacked=True,
        ),
        Panel(
            "Waiting after a refusal",
            "timeseries",
            "Refusals because of which moves are not tried at present, by rule and whom it concerns.",
            (
                Query(
                    write_total("reberth_rescheduler_waiting_refusals", "rule", "scope"),
                    "{{rule}} ({{scope}})",
                    answers="perhaps",
                ),
            ),
            width=6,
            stacked=True,
        ),
        Panel(
            "Time to Ready",
            "timeseries",
            "Time from the eviction until the replacement is Ready.",
            (
                Query(
                    write_quantile(0.5, "reberth_rescheduler_time_to_ready_seconds"),
                    "p50",
                    answers="after a move",
                ),
                Query(
                    write_quantile(0.95, "reberth_rescheduler_time_to_ready_seconds"),
                    "p95",
                    answers="after a move",
                ),
            ),
            unit="s",
            width=12,
        ),
        Panel(
            "Gain of a move",
            "timeseries",
            "Median gain in points of kube-scheduler's total score, as planned and as measured after the"
            " move. They should agree.",
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
