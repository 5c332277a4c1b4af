"""The Prometheus alerts: what an operator should know before users notice, and what to do about it.

Every expression keeps installations apart: one that fails is neither hidden by another nor added to it.
"""

from typing import Any, Literal, NamedTuple

from generating.promql import by, write_missing
from rescheduler.model.rules import PAUSES

RUNBOOKS = "docs/runbooks.md"
"""Has a section for each alert, with the alert's name as its heading."""
# A label that is missing is left out.
_WHERE = "".join(
    f"{{{{ with $labels.{label} }}}} ({label} {{{{ . }}}}){{{{ end }}}}" for label in ("cluster", "namespace")
)


class Alert(NamedTuple):
    name: str
    expression: str
    lasting: str
    """How long the expression must hold before the alert fires."""
    summary: str
    action: str
    severity: Literal["critical", "warning", "info"] = "warning"


ALERTS = (
    Alert(
        "ReberthReschedulerDown",
        write_missing("reberth_rescheduler_leading"),
        "5m",
        "Prometheus scrapes no rescheduler",
        "Check that its pods run. Until they do, no pod is moved and no expired note is removed.",
    ),
    Alert(
        "ReberthNoLeader",
        f"max {by()} (reberth_rescheduler_leading) == 0",
        "2m",
        "No replica of the rescheduler holds the Lease",
        "`kubectl -n reberth-system get lease` shows the holder; /readyz shows what a replica is missing.",
    ),
    Alert(
        "ReberthTwoLeaders",
        f"sum {by()} (reberth_rescheduler_leading) > 1",
        "1m",
        "Two replicas of the rescheduler report that they lead",
        "Stop the one that does not hold the Lease. If both do, two clusters share this Prometheus without a"
        " label `cluster`.",
        "critical",
    ),
    Alert(
        "ReberthNoPlan",
        f"time() - max {by()} (reberth_rescheduler_last_cycle_timestamp_seconds) > 900",
        "5m",
        "The rescheduler has published no plan for {{ $value | humanizeDuration }}",
        "Its log names the cause.",
    ),
    Alert(
        "ReberthReturns",
        f"sum {by()} (increase(reberth_rescheduler_returns_total[1h])) > 2",
        "0m",
        "{{ $value | humanize }} replacements returned to their source node within an hour",
        "These moves gain nothing. Check that kube-scheduler is configured with the extender and calls it.",
    ),
    Alert(
        "ReberthNotHelping",
        f'sum {by()} (increase(reberth_rescheduler_outcomes_total{{outcome="Better"}}[1d]))'
        f" / sum {by()} (increase(reberth_rescheduler_outcomes_total[1d])) < 0.5"
        f" and sum {by()} (increase(reberth_rescheduler_outcomes_total[1d])) >= 10",
        "1h",
        "Only {{ $value | humanizePercentage }} of the moves of the last day gained anything",
        "The EvictionHistories record the outcome of each move. A more cautious policy makes fewer moves.",
    ),
    Alert(
        "ReberthSchedulerDrift",
        f"min {by()} (reberth_rescheduler_scheduler_agreement_ratio) < 0.9",
        "15m",
        "Only {{ $value | humanizePercentage }} of the new pods landed where the forecast predicted",
        "The rescheduler's copy of the kube-scheduler configuration differs from the one that"
        " kube-scheduler runs with.",
    ),
    Alert(
        "ReberthBrake",
        f'max {by("rule")} (reberth_rescheduler_brake_on{{rule!~"{"|".join(PAUSES)}"}}) == 1',
        "15m",
        "The brake {{ $labels.rule }} has stopped all moves",
        "The runbook says what each brake means and what releases it.",
    ),
    Alert(
        "ReberthPaused",
        f"max {by()} (reberth_rescheduler_paused) == 1",
        "1d",
        "The rescheduler has been paused for a day",
        "Remove the annotation reberth.dev/paused from its Lease if the pause is no longer needed.",
        "info",
    ),
    Alert(
        "ReberthWorkloadsGivenUp",
        f"max {by()} (reberth_rescheduler_given_up_workloads) > 0",
        "1h",
        "{{ $value }} workloads are given up: their last moves gained nothing",
        "`kubectl get evictionhistories -A` shows them and the outcome of each move.",
        "info",
    ),
    Alert(
        "ReberthUnacknowledgedEvictions",
        f"sum {by()} (increase(reberth_rescheduler_moves_unacknowledged_total[1h])) > 0",
        "0m",
        "{{ $value | humanize }} pods were evicted before all extenders had acknowledged the move",
        "Check the extenders. With `extender: required` such a move is not made.",
    ),
    Alert(
        "ReberthForbidden",
        f'sum {by("verb", "resource")} (increase(reberth_api_requests_total{{code=~"401|403"}}[15m])) > 0',
        "15m",
        "The API server rejects {{ $labels.verb }} {{ $labels.resource }} as unauthorized or forbidden",
        "Apply the RBAC manifests of this version again.",
    ),
    Alert(
        "ReberthClockOffset",
        f"max {by('instance')} (abs(reberth_rescheduler_clock_offset_seconds)) > 5"
        f" or max {by('instance')} (abs(reberth_extender_clock_offset_seconds)) > 5",
        "10m",
        "The clock of {{ $labels.instance }} is {{ $value | humanizeDuration }} off that of the API server",
        "Reberth uses the API server's time, so its moves are right; but its logs are not, and other programs"
        " on the machine whose clock is wrong may not be. Check the time synchronisation of both.",
        "info",
    ),
    Alert(
        "ReberthStaleCache",
        f"max {by('instance', 'resource', 'server')} (reberth_watch_staleness_seconds) > 180",
        "5m",
        "The cache of {{ $labels.resource }}{{ with $labels.server }} of member {{ . }}{{ end }} in"
        " {{ $labels.instance }} is {{ $value | humanizeDuration }} behind",
        "Check that the API server is healthy and reachable. Until then nothing is moved and the extender's"
        " answers are neutral.",
    ),
    Alert(
        "ReberthSettingsRefused",
        f"min {by('instance', 'kind')} (reberth_settings_valid) == 0",
        "5m",
        "{{ $labels.instance }} refuses its file with the {{ $labels.kind }} and keeps the last valid one",
        "Its log and /readyz name every invalid field.",
    ),
    Alert(
        "ReberthFaults",
        f"sum {by('instance', 'place')} (increase(reberth_faults_total[1h])) > 0",
        "0m",
        "{{ $labels.instance }} left out objects because of a defect of Reberth ({{ $labels.place }})",
        "Its log names the objects and the place in the code. Everything else goes on. Please report it.",
    ),
    Alert(
        "ReberthCertificateRefused",
        f"min {by('instance')} (reberth_certificate_valid) == 0",
        "5m",
        "{{ $labels.instance }} refuses its certificate and keeps the last valid one until that expires",
        "Its log names the reason.",
    ),
    Alert(
        "ReberthCertificateEndsSoon",
        f"min {by('certificate', 'use')} (reberth_certificate_not_after_seconds) - time() < 30 * 86400",
        "1h",
        "The {{ $labels.use }} certificate {{ $labels.certificate }} ends in {{ $value | humanizeDuration }}",
        "Renew it; files are read again without a restart. If a program renews it, its log says why not.",
    ),
    Alert(
        "ReberthCertificateEnds",
        f"min {by('certificate', 'use')} (reberth_certificate_not_after_seconds) - time() < 7 * 86400",
        "15m",
        "The {{ $labels.use }} certificate {{ $labels.certificate }} ends in {{ $value | humanizeDuration }}",
        "Renew it now: after its end no connection that needs it is made.",
        "critical",
    ),
    Alert(
        "ReberthExtenderDown",
        write_missing("reberth_extender_notes"),
        "5m",
        "Prometheus scrapes no extender",
        "kube-scheduler continues without it. With `extender: required` nothing is moved.",
    ),
    Alert(
        "ReberthExtenderNotAsked",
        f'min {by()} (reberth_extender_pods_placed_unasked{{part="avoid"}}) >= 20',
        "5m",
        "kube-scheduler placed {{ $value }} pods without calling the extender",
        "Check that its configuration names the extender, and that address and certificate match; its log"
        " shows failed calls.",
    ),
    Alert(
        "ReberthExtenderNeutral",
        f"sum {by('cause')} (rate(reberth_extender_neutral_answers_total[10m]))"
        f" / ignoring (cause) group_left sum {by()} (rate(reberth_extender_requests_total[10m])) > 0.05",
        "10m",
        "{{ $value | humanizePercentage }} of the extender's answers are neutral because of {{"
        " $labels.cause }}",
        "/readyz of the extender shows which caches are not synced.",
    ),
    Alert(
        "ReberthExtenderSlow",
        f"histogram_quantile(0.99, sum {by('le')}"
        " (rate(reberth_extender_request_duration_seconds_bucket[10m]))) > 0.1",
        "10m",
        "One in a hundred answers of the extender takes {{ $value | humanizeDuration }} or longer",
        "Every pod that is scheduled waits for it. Give it more CPU.",
    ),
    Alert(
        "ReberthMemberTokenOld",
        f"time() - max {by('member')} (reberth_federation_member_token_issued_seconds) > 3 * 86400",
        "15m",
        "The token of member {{ $labels.member }} has not been renewed for {{ $value | humanizeDuration }}",
        "It is renewed daily and lives seven days. Events of the Cluster with the reason TokenNotRenewed say"
        " why.",
    ),
    Alert(
        "ReberthHandoverTimedOut",
        f'sum {by()} (increase(reberth_federation_handovers_total{{result!="ready"}}[1h])) > 0',
        "0m",
        "The new copies of {{ $value | humanize }} workloads were not ready in time",
        "The Events with the reason HandoverTimedOut name them. Check why their pods are not ready in the"
        " new clusters.",
    ),
    Alert(
        "ReberthMembersLost",
        f"max {by()} (reberth_federation_loss_brake_on) > 0",
        "0m",
        "So many members seem to be lost that nobody is driven out of any",
        "Check whether the hub is cut off. After members.brake.longest they count as lost.",
    ),
    Alert(
        "ReberthWorkloadsDown",
        f"max {by()} (reberth_federation_workloads_without_ready_copy) > 0",
        "5m",
        "{{ $value }} workloads have no ready pod in any cluster of which anything is heard",
        "aggregatedStatus of their bindings shows each copy, the condition Scheduled why there is no other.",
        "critical",
    ),
    Alert(
        "ReberthMemberSilent",
        f"max {by('member')} (reberth_federation_member_word_age_seconds) > 300",
        "0m",
        "Nothing has been heard of member {{ $labels.member }} for {{ $value | humanizeDuration }}",
        "The condition Ready of its Cluster says why. Its workloads leave if taintLostMembersAfter is set.",
    ),
    Alert(
        "ReberthEvictionTimedOut",
        f'sum {by("cause")} (increase(reberth_federation_evictions_total{{outcome="timedOut"}}[1h])) > 0',
        "0m",
        "{{ $value | humanize }} old copies went before the new ones were ready ({{ $labels.cause }})",
        "The Events EvictWorkloadFromClusterSucceed name them. Check the pods in the new clusters.",
    ),
    Alert(
        "ReberthFailoverStorm",
        f"max {by()} (reberth_federation_application_failover_storm) > 0",
        "0m",
        "So many workloads fail at once that none of them moves to another cluster",
        "Look for what they share: a registry, an image, a configuration, the network.",
    ),
    Alert(
        "ReberthFailoverHeld",
        f"max {by('reason')} (reberth_federation_application_failover_workloads"
        '{reason=~"NoSubstitute|Blocked|GivenUp"}) > 0',
        "10m",
        "{{ $value }} workloads fail and do not move: {{ $labels.reason }}",
        "The condition Failover of their bindings says why, and until when.",
    ),
    Alert(
        "ReberthReplicasWithoutNode",
        f"max {by()} (reberth_federation_pending_replicas) > 0",
        "10m",
        "{{ $value }} replicas get no node in their member",
        "The condition Unschedulable of their Works says why, PendingReplicasHeld what keeps them there.",
    ),
    Alert(
        "ReberthOneMemberTwice",
        f'max {by()} (reberth_federation_clusters{{state="sameMember"}}) > 0',
        "0m",
        "{{ $value }} Clusters lead to the same API server as another Cluster",
        "Their condition Ready names the other one. Delete the second, or correct its apiEndpoint.",
    ),
    Alert(
        "ReberthFederationBesideKarmada",
        f"max {by('lease')} (reberth_federation_karmada_running) > 0",
        "0m",
        "{{ $labels.lease }} runs on the hub of this federation",
        "Both write the same objects. Stop Karmada's controllers, or switch off what runs on both sides.",
        "critical",
    ),
    Alert(
        "ReberthInterpretersFail",
        f"max {by()} (reberth_interpreter_failing_customizations) > 0",
        "10m",
        "The scripts of {{ $value }} ResourceInterpreterCustomizations fail",
        "Their condition Working names the operation and the reason. Until then health is Unknown.",
    ),
    Alert(
        "ReberthRebalanceStuck",
        f"max {by('reason')} (reberth_federation_rebalance_waiting_workloads"
        '{reason=~"BindingUnreadable|Scheduler|Unschedulable"}) > 0',
        "30m",
        "{{ $value }} workloads have been waiting to be rebalanced: {{ $labels.reason }}",
        "status.observedWorkloads of each WorkloadRebalancer shows which workload waits, and for what.",
    ),
)


def write_alerts(alerts: tuple[Alert, ...], *, docs_url: str = "") -> dict[str, Any]:
    """Return the content of a file that Prometheus loads with `rule_files`.

    `docs_url` is where the repository can be read, with a slash at its end; without it, runbooks are named by
    their path in the repository.
    """
    return {"groups": [{"name": "reberth", "rules": [_write(alert, docs_url) for alert in alerts]}]}


def _write(alert: Alert, docs_url: str) -> dict[str, Any]:
    annotations = {
        "summary": f"{alert.summary}{_WHERE}",
        "description": alert.action,
        "runbook_url": f"{docs_url}{RUNBOOKS}#{alert.name.lower()}",
    }
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": annotations,
    }
