"""Rows of the dashboard about the programs: forecast and brakes, the rescheduler's health, the extender."""

from generating.panels import Panel, Query, Row
from generating.promql import by, write_increase, write_quantile, write_total

_LEADER = "and on (cluster, namespace, instance) (reberth_rescheduler_leading == 1)"
_WHERE = "{{cluster}} {{namespace}}"

TRUST = Row(
    "Forecast and brakes",
    (
        Panel(
            "Brakes and pauses",
            "timeseries",
            "1 while a brake stops all moves, or a pause stops the moves for balance.",
            (
                Query(
                    f"max {by('rule')} (reberth_rescheduler_brake_on) > 0",
                    f"{{{{rule}}}} {_WHERE}",
                    answers="perhaps",
                ),
                Query(f"max {by()} (reberth_rescheduler_paused) > 0", f"paused {_WHERE}", answers="perhaps"),
            ),
        ),
        Panel(
            "Forecast accuracy",
            "timeseries",
            "Share of the recently bound pods, moved or not, that landed where the forecast predicted.",
            (Query(f"min {by()} (reberth_rescheduler_scheduler_agreement_ratio)", f"agreement {_WHERE}"),),
            unit="percentunit",
        ),
        Panel(
            "Landings outside the forecast",
            "timeseries",
            "Pods that landed on another node than predicted, by cause.",
            (
                Query(
                    write_increase("cause", "reberth_rescheduler_landing_misses_total"),
                    "{{cause}}",
                    answers="perhaps",
                ),
            ),
            stacked=True,
        ),
    ),
)

WELL = Row(
    "Health of the rescheduler",
    (
        Panel(
            "Leader and mode",
            "timeseries",
            "1 for the replica that leads, and 1 for a replica that makes its moves instead of only"
            " recommending them.",
            (
                Query("reberth_rescheduler_leading", f"{{{{instance}}}} leads {_WHERE}"),
                Query("reberth_rescheduler_applying", f"{{{{instance}}}} applies moves {_WHERE}"),
            ),
        ),
        Panel(
            "Age of the plan",
            "timeseries",
            "Time since the leader last published a plan.",
            (
                Query(
                    f"time() - (reberth_rescheduler_last_cycle_timestamp_seconds {_LEADER})",
                    f"{{{{instance}}}} {_WHERE}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Duration of a cycle",
            "timeseries",
            "Time from the snapshot to the published plan, and of each phase.",
            (
                Query(write_quantile(0.99, "reberth_rescheduler_cycle_duration_seconds"), "p99 cycle"),
                Query(
                    write_quantile(0.99, "reberth_rescheduler_phase_duration_seconds", "phase"),
                    "p99 {{phase}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Age of the caches",
            "timeseries",
            "Time since each cache was last known to be current: the five oldest.",
            (
                Query(
                    f"topk(5, max {by('resource', 'server')} (reberth_watch_staleness_seconds))",
                    f"{{{{resource}}}} {{{{server}}}} {_WHERE}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Requests to the API server",
            "timeseries",
            "By verb and status code.",
            (
                Query(
                    "sum by (verb, code) (rate(reberth_api_requests_total[$__rate_interval]))",
                    "{{verb}} {{code}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            "Valid settings and certificates",
            "timeseries",
            "0 while a changed file is refused and the last valid one stays in force.",
            (
                Query(
                    f"min {by('instance', 'kind')} (reberth_settings_valid)",
                    f"{{{{kind}}}} of {{{{instance}}}} {_WHERE}",
                ),
                Query(
                    f"min {by('instance')} (reberth_certificate_valid)",
                    f"certificate of {{{{instance}}}} {_WHERE}",
                    answers="perhaps",
                ),
            ),
        ),
    ),
)

EXTENDER = Row(
    "Extender",
    (
        Panel(
            "Calls from kube-scheduler",
            "timeseries",
            "By verb and result. A neutral answer leaves the decision to kube-scheduler.",
            (
                Query(
                    "sum by (verb, result) (rate(reberth_extender_requests_total[$__rate_interval]))",
                    "{{verb}} {{result}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            "Duration of a call",
            "timeseries",
            "Time from the request's headers to the response.",
            (
                Query(
                    write_quantile(0.99, "reberth_extender_request_duration_seconds", "verb"),
                    "p99 {{verb}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Pods placed without a call",
            "timeseries",
            "Pods bound since kube-scheduler last called; the lowest value of all replicas. It should stay"
            " near 0.",
            (Query(f"min {by('part')} (reberth_extender_pods_placed_unasked)", f"{{{{part}}}} {_WHERE}"),),
        ),
        Panel(
            "Preferred and avoided nodes",
            "timeseries",
            "Nodes in answers, by what the extender said about them.",
            (
                Query(
                    "sum by (said) (rate(reberth_extender_nodes_total"
                    '{said=~"avoided|drawn|refused"}[$__rate_interval]))',
                    "{{said}}",
                    answers="after a move",
                ),
            ),
        ),
        Panel(
            "Neutral answers",
            "timeseries",
            "By cause.",
            (
                Query(
                    write_increase("cause", "reberth_extender_neutral_answers_total"),
                    "{{cause}}",
                    answers="perhaps",
                ),
            ),
            stacked=True,
        ),
        Panel(
            "Notes on nodes",
            "timeseries",
            "Notes that keep workloads away from the nodes that their pods were moved from, by state.",
            (Query(write_total("reberth_extender_notes", "state"), "{{state}}"),),
        ),
    ),
)
