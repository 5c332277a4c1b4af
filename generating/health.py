"""What the dashboard shows of the programs: may they be trusted, are they well, does the scheduler ask."""

from generating.panels import Panel, Query, Row
from generating.querying import write_increase, write_quantile

_LEADER = "and on (instance) (reberth_rescheduler_leading == 1)"

TRUST = Row(
    "May it be trusted?",
    (
        Panel(
            "Brakes and pauses",
            "timeseries",
            "1 while a brake stops all moves, or a pause those for balance.",
            (
                Query("max by (rule) (reberth_rescheduler_brake_on) > 0", "{{rule}}", answers="perhaps"),
                Query("max(reberth_rescheduler_paused) > 0", "paused by hand", answers="perhaps"),
            ),
        ),
        Panel(
            "Scheduler and forecast agree",
            "timeseries",
            "Share of the pods bound lately, by anybody's doing, that landed where the forecast saw them.",
            (Query("min(reberth_rescheduler_scheduler_agreement_ratio)", "agreement"),),
            unit="percentunit",
        ),
        Panel(
            "Landings outside of the forecast",
            "timeseries",
            "By what explains them.",
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
    "Is the rescheduler well?",
    (
        Panel(
            "Who leads, and applies",
            "timeseries",
            "One replica leads. It applies if its moves are made, and not only shown.",
            (
                Query("reberth_rescheduler_leading", "{{instance}} leads"),
                Query("reberth_rescheduler_applying", "{{instance}} applies"),
            ),
        ),
        Panel(
            "Age of the plan",
            "timeseries",
            "Seconds since the leader published a plan.",
            (
                Query(
                    f"time() - (reberth_rescheduler_last_cycle_timestamp_seconds {_LEADER})", "{{instance}}"
                ),
            ),
            unit="s",
        ),
        Panel(
            "A cycle takes",
            "timeseries",
            "Seconds from the snapshot to the published plan, and of each part of it.",
            (
                Query(
                    write_quantile(0.99, "reberth_rescheduler_cycle_duration_seconds"), "99 % of the cycles"
                ),
                Query(
                    write_quantile(0.99, "reberth_rescheduler_phase_duration_seconds", "phase"),
                    "99 % {{phase}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Age of what is known",
            "timeseries",
            "Seconds since the mirrors were last known to be true: the oldest five.",
            (Query("topk(5, max by (resource) (reberth_watch_staleness_seconds))", "{{resource}}"),),
            unit="s",
        ),
        Panel(
            "Requests to the API server",
            "timeseries",
            "By verb and the code of their answer.",
            (
                Query(
                    "sum by (verb, code) (rate(reberth_api_requests_total[$__rate_interval]))",
                    "{{verb}} {{code}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            "Settings and certificates in force",
            "timeseries",
            "0 while a changed file is refused, and the last good one stays.",
            (
                Query("min by (instance, kind) (reberth_settings_valid)", "{{kind}} of {{instance}}"),
                Query(
                    "min by (instance) (reberth_certificate_valid)",
                    "certificate of {{instance}}",
                    answers="perhaps",
                ),
            ),
        ),
    ),
)

EXTENDER = Row(
    "Does kube-scheduler ask?",
    (
        Panel(
            "Calls of kube-scheduler",
            "timeseries",
            "By what became of them. Neutral answers leave everything to the scheduler.",
            (
                Query(
                    "sum by (verb, result) (rate(reberth_extender_requests_total[$__rate_interval]))",
                    "{{verb}} {{result}}",
                ),
            ),
            unit="reqps",
        ),
        Panel(
            "An answer takes",
            "timeseries",
            "Seconds from a call's head to its answer.",
            (
                Query(
                    write_quantile(0.99, "reberth_extender_request_duration_seconds", "verb"),
                    "99 % {{verb}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            "Pods placed without asking",
            "timeseries",
            "Since kube-scheduler called last, at the replica that knows best. It should stay near 0.",
            (Query("min by (part) (reberth_extender_pods_placed_unasked)", "{{part}}"),),
        ),
        Panel(
            "Nodes drawn to and avoided",
            "timeseries",
            "What was said of nodes in calls.",
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
            "By what was in doubt.",
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
            "Notes that keep workloads away from nodes that their pods were moved off.",
            (Query("max by (state) (reberth_extender_notes)", "{{state}}"),),
        ),
    ),
)
