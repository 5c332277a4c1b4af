"""What to do first, by what the report has found: one sentence each, the most useful one first."""

from collections.abc import Iterator

from rescheduler.model.plan import BETTER_PREFERENCES, BROKEN_RULES, UNDER_UTILISED_NODES
from rescheduler.report.cluster_report import ClusterReport, HeldBack, PolicyGain

_WORTH_A_LOOK = 0.05
"""A rule is named if it keeps this share of all requested cores in place."""
_PURPOSES = {
    BROKEN_RULES: "end broken scheduling rules",
    BETTER_PREFERENCES: "bring pods to nodes that they prefer",
    UNDER_UTILISED_NODES: "even the nodes out",
}
_CHANGES = {
    "MinReplicas": "run a second replica, or lower protections.minReplicas",
    "LastReady": "find out why no other replica is Ready",
    "BarePod": "create such pods by a Deployment or another controller",
    "LocalStorage": "if the data may be lost, set protections.localStorage, or annotate the pods",
    "UnknownController": "if the controller replaces its pods, add its kind to protections.replacingKinds",
    "CannotForecast": "give --scheduler-config, if pods name schedulers of their own",
    "SystemNamespace": "take namespaces out of protections.systemNamespaces that are not the system's",
    "Quota": "raise the quota by one replica",
    "CannotBeReplaced": "mend what the API server would refuse: these pods would be lost with any eviction",
}


def list_steps(report: ClusterReport) -> Iterator[str]:
    for each in report.policies:
        yield _switch_on(each)
    if report.without_extender is not None and report.without_extender < len(report.moves):
        yield (
            "Let kube-scheduler ask Reberth's extender, as this report assumes: without it "
            f"{report.without_extender:,} of the {len(report.moves):,} moves would pay."
        )
    if not report.policies:
        yield "Nothing needs to move: no policy finds a move that is worth it."
    for held in report.held_back:
        if held.rule in _CHANGES and _is_large(held, report):
            yield f"{held.rule} keeps {held.amounts.cores:,.1f} cores in place: {_CHANGES[held.rule]}."
    for warning in report.warnings:
        yield f"Note: {warning}."


def _switch_on(gain: PolicyGain) -> str:
    more = " or more" if gain.is_cut else ""
    moves = "1 move" if gain.moves == 1 and not more else f"{gain.moves:,}{more} moves"
    levels = ", ".join(f"{count:,} at level {level}" for level, count in gain.levels.items())
    return f"Switch on {gain.policy}: {moves} would {_PURPOSES.get(gain.policy, gain.policy)} ({levels})."


def _is_large(held: HeldBack, report: ClusterReport) -> bool:
    return held.amounts.cores >= _WORTH_A_LOOK * report.everything.cores > 0
