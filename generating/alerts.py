"""The alerts: what a person should know of before users do, and what is to be done about it."""

from typing import Any, Literal, NamedTuple

RESCHEDULING, REBALANCING = "docs/rescheduler.md", "docs/rebalancing.md"


class Alert(NamedTuple):
    name: str
    expression: str
    lasting: str
    """For so long it must hold before anybody is called."""
    summary: str
    todo: str
    severity: Literal["critical", "warning", "info"] = "warning"
    document: str = RESCHEDULING
    """Says more."""


ALERTS = (
    Alert(
        "ReberthReschedulerDown",
        "absent(reberth_rescheduler_leading)",
        "5m",
        "No rescheduler is scraped",
        "Look whether its pods run; nothing is moved meanwhile, and no expired note is removed.",
    ),
    Alert(
        "ReberthNobodyLeads",
        "max(reberth_rescheduler_leading) == 0",
        "2m",
        "No replica of the rescheduler holds the lease",
        "kubectl -n reberth-system get lease says who holds it; /readyz says what is missing.",
    ),
    Alert(
        "ReberthTwoLeaders",
        "sum(reberth_rescheduler_leading) > 1",
        "1m",
        "Two replicas of the rescheduler believe that they lead",
        "Two installations share a Prometheus, or a clock stood still: stop one that is not the holder.",
        "critical",
    ),
    Alert(
        "ReberthNoPlan",
        "time() - max(reberth_rescheduler_last_cycle_timestamp_seconds) > 900",
        "5m",
        "The rescheduler has published no plan for {{ $value | humanizeDuration }}",
        "Its log says what stops the cycles.",
    ),
    Alert(
        "ReberthReturns",
        "sum(increase(reberth_rescheduler_returns_total[1h])) > 2",
        "0m",
        "{{ $value | humanize }} replacements came back to the node that was left, within an hour",
        "Is kube-scheduler configured with the extender, and does it ask? Such moves are for nothing.",
    ),
    Alert(
        "ReberthNotHelping",
        'sum(increase(reberth_rescheduler_outcomes_total{outcome="Better"}[1d]))'
        " / sum(increase(reberth_rescheduler_outcomes_total[1d])) < 0.5"
        " and sum(increase(reberth_rescheduler_outcomes_total[1d])) >= 10",
        "1h",
        "Only {{ $value | humanizePercentage }} of the moves of a day brought a gain",
        "The histories tell what came of each move; a more cautious level makes fewer of them.",
    ),
    Alert(
        "ReberthSchedulerDrift",
        "min(reberth_rescheduler_scheduler_agreement_ratio) < 0.9",
        "15m",
        "Only {{ $value | humanizePercentage }} of the pods land where the forecast sees them",
        "The configuration that the rescheduler was given is not that of the running kube-scheduler.",
    ),
    Alert(
        "ReberthBrake",
        'max by (rule) (reberth_rescheduler_brake_on{rule!~"AutoscalerDrains|ScaleUp"}) == 1',
        "15m",
        "The brake {{ $labels.rule }} stops all moves",
        "What each brake means and what lets it go stands in the document.",
    ),
    Alert(
        "ReberthPaused",
        "max(reberth_rescheduler_paused) == 1",
        "1d",
        "The rescheduler has been paused for a day",
        "Remove the annotation reberth.dev/paused from its lease if nobody needs the pause any more.",
        "info",
    ),
    Alert(
        "ReberthWorkloadsGivenUp",
        "max(reberth_rescheduler_given_up_workloads) > 0",
        "1h",
        "{{ $value }} workloads are left alone, since moves of them brought nothing",
        "kubectl get evictionhistories -A shows them, and what came of each move.",
        "info",
    ),
    Alert(
        "ReberthUnpromised",
        "sum(increase(reberth_rescheduler_moves_unpromised_total[1h])) > 0",
        "0m",
        "{{ $value | humanize }} pods were evicted without the word of all extenders",
        "Look at the extenders; extender: required makes no such move.",
    ),
    Alert(
        "ReberthForbidden",
        'sum by (verb, resource) (increase(reberth_api_requests_total{code=~"401|403"}[15m])) > 0',
        "15m",
        "The API server forbids {{ $labels.verb }} of {{ $labels.resource }}",
        "Apply the ClusterRole of the manifests again; it is that of this version.",
    ),
    Alert(
        "ReberthMirrorStale",
        "max by (instance, resource) (reberth_watch_staleness_seconds) > 180",
        "5m",
        "What {{ $labels.instance }} knows of {{ $labels.resource }} is {{ $value | humanizeDuration }} old",
        "Is the API server well, and may it be reached? Nothing is moved, and answers are neutral meanwhile.",
    ),
    Alert(
        "ReberthSettingsRefused",
        "min by (instance, kind) (reberth_settings_valid) == 0",
        "5m",
        "The file with the {{ $labels.kind }} of {{ $labels.instance }} is refused; the last good one stays",
        "Its log and its /readyz name every field that is wrong.",
    ),
    Alert(
        "ReberthCertificateRefused",
        "min by (instance) (reberth_certificate_valid) == 0",
        "5m",
        "A certificate of {{ $labels.instance }} is refused; the last good one stays until it expires",
        "Its log says why.",
    ),
    Alert(
        "ReberthExtenderDown",
        "absent(reberth_extender_notes)",
        "5m",
        "No extender is scraped",
        "kube-scheduler goes on without it. With extender: required nothing is moved.",
    ),
    Alert(
        "ReberthExtenderNotAsked",
        'min(reberth_extender_pods_placed_unasked{part="avoid"}) >= 20',
        "5m",
        "kube-scheduler has placed {{ $value }} pods without asking the extender",
        "Does its configuration name the extender, and do certificate and address fit? Its log says.",
    ),
    Alert(
        "ReberthExtenderInDoubt",
        "sum by (cause) (rate(reberth_extender_neutral_answers_total[10m]))"
        " / ignoring (cause) group_left sum(rate(reberth_extender_requests_total[10m])) > 0.05",
        "10m",
        "{{ $value | humanizePercentage }} of the extender's answers are neutral: {{ $labels.cause }}",
        "/readyz of the extender says what troubles its mirrors.",
    ),
    Alert(
        "ReberthExtenderSlow",
        "histogram_quantile(0.99, sum by (le)"
        " (rate(reberth_extender_request_duration_seconds_bucket[10m]))) > 0.1",
        "10m",
        "The extender takes {{ $value | humanizeDuration }} for one answer in a hundred",
        "Every pod waits for it. Give it more CPU.",
    ),
    Alert(
        "ReberthHandoverTimedOut",
        'sum(increase(reberth_federation_handovers_total{result="timeout"}[1h])) > 0',
        "0m",
        "{{ $value | humanize }} workloads lost their old copies before the new ones were ready",
        "The Events HandoverTimedOut name them. See why their pods do not get ready in the new clusters.",
        document=REBALANCING,
    ),
    Alert(
        "ReberthRebalanceWaits",
        "max by (reason) (reberth_federation_rebalance_waiting_workloads"
        '{reason=~"BindingUnreadable|Scheduler|Unschedulable"}) > 0',
        "30m",
        "{{ $value }} workloads wait to be rebalanced: {{ $labels.reason }}",
        "status.observedWorkloads of the WorkloadRebalancers says which, and what each waits for.",
        document=REBALANCING,
    ),
)


def write_alerts(alerts: tuple[Alert, ...]) -> dict[str, Any]:
    """Give what Prometheus loads with `rule_files`."""
    return {"groups": [{"name": "reberth", "rules": [_write(alert) for alert in alerts]}]}


def _write(alert: Alert) -> dict[str, Any]:
    said = {"summary": alert.summary, "description": f"{alert.todo} See {alert.document}."}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": said,
    }
