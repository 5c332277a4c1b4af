"""The Prometheus alerts: what an operator should know before users notice, and what to do about it."""

from typing import Any, Literal, NamedTuple

RESCHEDULING, REBALANCING = "docs/rescheduler.md", "docs/rebalancing.md"


class Alert(NamedTuple):
    name: str
    expression: str
    lasting: str
    """How long the expression must hold before the alert fires."""
    summary: str
    action: str
    severity: Literal["critical", "warning", "info"] = "warning"
    document: str = RESCHEDULING
    """Explains the alert."""


ALERTS = (
    Alert(
        "ReberthReschedulerDown",
        "absent(reberth_rescheduler_leading)",
        "5m",
        "Prometheus scrapes no rescheduler",
        "Check that its pods run. Until they do, no pod is moved and no expired note is removed.",
    ),
    Alert(
        "ReberthNoLeader",
        "max(reberth_rescheduler_leading) == 0",
        "2m",
        "No replica of the rescheduler holds the Lease",
        "`kubectl -n reberth-system get lease` shows the holder; /readyz shows what a replica is missing.",
    ),
    Alert(
        "ReberthTwoLeaders",
        "sum(reberth_rescheduler_leading) > 1",
        "1m",
        "Two replicas of the rescheduler report that they lead",
        "Either two installations share this Prometheus, or a replica hangs: stop the one that does not"
        " hold the Lease.",
        "critical",
    ),
    Alert(
        "ReberthNoPlan",
        "time() - max(reberth_rescheduler_last_cycle_timestamp_seconds) > 900",
        "5m",
        "The rescheduler has published no plan for {{ $value | humanizeDuration }}",
        "Its log names the cause.",
    ),
    Alert(
        "ReberthReturns",
        "sum(increase(reberth_rescheduler_returns_total[1h])) > 2",
        "0m",
        "{{ $value | humanize }} replacements returned to their source node within an hour",
        "These moves gain nothing. Check that kube-scheduler is configured with the extender and calls it.",
    ),
    Alert(
        "ReberthNotHelping",
        'sum(increase(reberth_rescheduler_outcomes_total{outcome="Better"}[1d]))'
        " / sum(increase(reberth_rescheduler_outcomes_total[1d])) < 0.5"
        " and sum(increase(reberth_rescheduler_outcomes_total[1d])) >= 10",
        "1h",
        "Only {{ $value | humanizePercentage }} of the moves of the last day gained anything",
        "The EvictionHistories record the outcome of each move. A more cautious policy makes fewer moves.",
    ),
    Alert(
        "ReberthSchedulerDrift",
        "min(reberth_rescheduler_scheduler_agreement_ratio) < 0.9",
        "15m",
        "Only {{ $value | humanizePercentage }} of the new pods landed where the forecast predicted",
        "The rescheduler's copy of the kube-scheduler configuration differs from the one that"
        " kube-scheduler runs with.",
    ),
    Alert(
        "ReberthBrake",
        'max by (rule) (reberth_rescheduler_brake_on{rule!~"AutoscalerDrains|ScaleUp"}) == 1',
        "15m",
        "The brake {{ $labels.rule }} has stopped all moves",
        "The document says what each brake means and what releases it.",
    ),
    Alert(
        "ReberthPaused",
        "max(reberth_rescheduler_paused) == 1",
        "1d",
        "The rescheduler has been paused for a day",
        "Remove the annotation reberth.dev/paused from its Lease if the pause is no longer needed.",
        "info",
    ),
    Alert(
        "ReberthWorkloadsGivenUp",
        "max(reberth_rescheduler_given_up_workloads) > 0",
        "1h",
        "{{ $value }} workloads are given up: their last moves gained nothing",
        "`kubectl get evictionhistories -A` shows them and the outcome of each move.",
        "info",
    ),
    Alert(
        "ReberthUnacknowledgedEvictions",
        "sum(increase(reberth_rescheduler_moves_unacknowledged_total[1h])) > 0",
        "0m",
        "{{ $value | humanize }} pods were evicted before all extenders had acknowledged the move",
        "Check the extenders. With `extender: required` such a move is not made.",
    ),
    Alert(
        "ReberthForbidden",
        'sum by (verb, resource) (increase(reberth_api_requests_total{code=~"401|403"}[15m])) > 0',
        "15m",
        "The API server rejects {{ $labels.verb }} {{ $labels.resource }} as unauthorized or forbidden",
        "Apply the RBAC manifests of this version again.",
    ),
    Alert(
        "ReberthClockOffset",
        "max by (instance) (abs(reberth_rescheduler_clock_offset_seconds)) > 5"
        " or max by (instance) (abs(reberth_extender_clock_offset_seconds)) > 5",
        "10m",
        "The clock of {{ $labels.instance }} is {{ $value | humanizeDuration }} off that of the API server",
        "Reberth uses the API server's time, so its moves are right; but its logs are not, and other programs"
        " on the machine whose clock is wrong may not be. Check the time synchronisation of both.",
        "info",
    ),
    Alert(
        "ReberthStaleCache",
        "max by (instance, resource) (reberth_watch_staleness_seconds) > 180",
        "5m",
        "The cache of {{ $labels.resource }} in {{ $labels.instance }} is {{ $value | humanizeDuration }}"
        " behind",
        "Check that the API server is healthy and reachable. Until then nothing is moved and the extender's"
        " answers are neutral.",
    ),
    Alert(
        "ReberthSettingsRefused",
        "min by (instance, kind) (reberth_settings_valid) == 0",
        "5m",
        "{{ $labels.instance }} refuses its file with the {{ $labels.kind }} and keeps the last valid one",
        "Its log and /readyz name every invalid field.",
    ),
    Alert(
        "ReberthCertificateRefused",
        "min by (instance) (reberth_certificate_valid) == 0",
        "5m",
        "{{ $labels.instance }} refuses its certificate and keeps the last valid one until that expires",
        "Its log names the reason.",
    ),
    Alert(
        "ReberthExtenderDown",
        "absent(reberth_extender_notes)",
        "5m",
        "Prometheus scrapes no extender",
        "kube-scheduler continues without it. With `extender: required` nothing is moved.",
    ),
    Alert(
        "ReberthExtenderNotAsked",
        'min(reberth_extender_pods_placed_unasked{part="avoid"}) >= 20',
        "5m",
        "kube-scheduler placed {{ $value }} pods without calling the extender",
        "Check that its configuration names the extender, and that address and certificate match; its log"
        " shows failed calls.",
    ),
    Alert(
        "ReberthExtenderNeutral",
        "sum by (cause) (rate(reberth_extender_neutral_answers_total[10m]))"
        " / ignoring (cause) group_left sum(rate(reberth_extender_requests_total[10m])) > 0.05",
        "10m",
        "{{ $value | humanizePercentage }} of the extender's answers are neutral because of {{"
        " $labels.cause }}",
        "/readyz of the extender shows which caches are not synced.",
    ),
    Alert(
        "ReberthExtenderSlow",
        "histogram_quantile(0.99, sum by (le)"
        " (rate(reberth_extender_request_duration_seconds_bucket[10m]))) > 0.1",
        "10m",
        "One in a hundred answers of the extender takes {{ $value | humanizeDuration }} or longer",
        "Every pod that is scheduled waits for it. Give it more CPU.",
    ),
    Alert(
        "ReberthHandoverTimedOut",
        'sum(increase(reberth_federation_handovers_total{result="timeout"}[1h])) > 0',
        "0m",
        "The old copies of {{ $value | humanize }} workloads were removed before the new ones were ready",
        "The Events with the reason HandoverTimedOut name them. Check why their pods are not ready in the"
        " new clusters.",
        document=REBALANCING,
    ),
    Alert(
        "ReberthRebalanceStuck",
        "max by (reason) (reberth_federation_rebalance_waiting_workloads"
        '{reason=~"BindingUnreadable|Scheduler|Unschedulable"}) > 0',
        "30m",
        "{{ $value }} workloads have been waiting to be rebalanced: {{ $labels.reason }}",
        "status.observedWorkloads of each WorkloadRebalancer shows which workload waits, and for what.",
        document=REBALANCING,
    ),
)


def write_alerts(alerts: tuple[Alert, ...]) -> dict[str, Any]:
    """Return the content of a file that Prometheus loads with `rule_files`."""
    return {"groups": [{"name": "reberth", "rules": [_write(alert) for alert in alerts]}]}


def _write(alert: Alert) -> dict[str, Any]:
    annotations = {"summary": alert.summary, "description": f"{alert.action} See {alert.document}."}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": annotations,
    }
