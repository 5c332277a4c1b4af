"""The alert rules, run by promtool: each fires for its cause and for nothing else."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from generating.alerts import ALERTS, Alert, write_alerts
from tests.live.support.prometheus import promtool
from tests.support.repository import ALERT_RULES

pytestmark = pytest.mark.live


def test_the_rules_are_good() -> None:
    done = subprocess.run(
        [promtool(), "check", "rules", ALERT_RULES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


# By alert: series as promtool writes them (start, plus increment, times minutes) that raise it. What is not
# named is as on a product that is well.
RAISED: dict[str, dict[str, str]] = {
    "ReberthReschedulerDown": {"leading": "1x10 _x50"},
    "ReberthNoLeader": {"leading": "0x60"},
    "ReberthTwoLeaders": {"leading{instance='b'}": "1x60"},
    "ReberthNoPlan": {"last_cycle_timestamp_seconds": "0x60"},
    "ReberthReturns": {"returns_total": "0+1x60"},
    "ReberthNotHelping": {"outcomes_total{outcome='Better'}": "0x1500", "outcomes_total": "0+1x1500"},
    "ReberthSchedulerDrift": {"scheduler_agreement_ratio": "0.5x60"},
    "ReberthBrake": {"brake_on{rule='NodesNotReady'}": "1x60"},
    "ReberthPaused": {"paused": "1x1500"},
    "ReberthWorkloadsGivenUp": {"given_up_workloads": "1x120"},
    "ReberthUnacknowledgedEvictions": {"moves_unacknowledged_total": "0+1x60"},
    "ReberthForbidden": {"!reberth_api_requests_total{code='403',verb='patch',resource='nodes'}": "0+1x60"},
    "ReberthClockOffset": {"!reberth_extender_clock_offset_seconds{instance='a'}": "-6x60"},
    "ReberthStaleCache": {"!reberth_watch_staleness_seconds{instance='a',resource='pods'}": "900x60"},
    "ReberthSettingsRefused": {"!reberth_settings_valid{instance='a'}": "0x60"},
    "ReberthFaults": {"!reberth_faults_total{instance='a',place='plan'}": "0+1x60"},
    "ReberthCertificateRefused": {"!reberth_certificate_valid{instance='a'}": "0x60"},
    "ReberthCertificateEndsSoon": {
        "!reberth_certificate_not_after_seconds{certificate='tls.crt',use='server'}": "2500000x120"
    },
    "ReberthCertificateEnds": {
        "!reberth_certificate_not_after_seconds{certificate='tls.crt',use='server'}": "600000x60"
    },
    "ReberthExtenderDown": {"!reberth_extender_notes": "0x10 _x50"},
    "ReberthExtenderNotAsked": {"!reberth_extender_pods_placed_unasked{part='avoid'}": "30x60"},
    "ReberthExtenderNeutral": {
        "!reberth_extender_neutral_answers_total{cause='stale'}": "0+10x60",
        "!reberth_extender_requests_total": "0+20x60",
    },
    "ReberthExtenderSlow": {
        "!reberth_extender_request_duration_seconds_bucket{le='0.1'}": "0x60",
        "!reberth_extender_request_duration_seconds_bucket{le='1.0'}": "0+9x60",
        "!reberth_extender_request_duration_seconds_bucket{le='+Inf'}": "0+9x60",
    },
    "ReberthMemberTokenOld": {
        "!reberth_federation_member_token_issued_seconds{member='m1',instance='a'}": "-300000x60"
    },
    "ReberthHandoverTimedOut": {"!reberth_federation_handovers_total{result='timeout'}": "0+1x60"},
    "ReberthMembersLost": {"!reberth_federation_loss_brake_on": "1x60"},
    "ReberthWorkloadsDown": {"!reberth_federation_workloads_without_ready_copy": "2x60"},
    "ReberthMemberSilent": {"!reberth_federation_member_word_age_seconds{member='m1'}": "0+60x60"},
    "ReberthEvictionTimedOut": {
        "!reberth_federation_evictions_total{cause='TaintUntolerated',outcome='timedOut'}": "0+1x60"
    },
    "ReberthFailoverStorm": {"!reberth_federation_application_failover_storm": "1x60"},
    "ReberthFailoverHeld": {
        "!reberth_federation_application_failover_workloads{reason='NoSubstitute'}": "1x60"
    },
    "ReberthReplicasWithoutNode": {"!reberth_federation_pending_replicas": "2x60"},
    "ReberthOneMemberTwice": {"!reberth_federation_clusters{state='sameMember'}": "1x60"},
    "ReberthFederationBesideKarmada": {
        "!reberth_federation_karmada_running{lease='karmada-scheduler'}": "1x60"
    },
    "ReberthInterpretersFail": {"!reberth_interpreter_failing_customizations": "1x60"},
    "ReberthRebalanceStuck": {
        "!reberth_federation_rebalance_waiting_workloads{reason='Unschedulable'}": "1x60"
    },
}
WELL = {"leading": "1x60", "!reberth_extender_notes": "0x60"}
# What another installation that is well shows: it would hide the failing one in a ratio, minimum or maximum.
HEALTHY = {
    "leading": "1xN",
    "!reberth_extender_notes": "0xN",
    "last_cycle_timestamp_seconds": "0+60xN",
    "returns_total": "0xN",
    "outcomes_total{outcome='Better'}": "0+2xN",
    "scheduler_agreement_ratio": "1xN",
    "brake_on{rule='NodesNotReady'}": "0xN",
    "paused": "0xN",
    "given_up_workloads": "0xN",
    "moves_unacknowledged_total": "0xN",
    "!reberth_api_requests_total{code='200',verb='patch',resource='nodes'}": "0+9xN",
    "!reberth_watch_staleness_seconds{instance='a',resource='pods'}": "0xN",
    "!reberth_extender_clock_offset_seconds{instance='a'}": "0xN",
    "!reberth_settings_valid{instance='a'}": "1xN",
    "!reberth_faults_total{instance='a',place='plan'}": "0xN",
    "!reberth_certificate_valid{instance='a'}": "1xN",
    "!reberth_certificate_not_after_seconds{certificate='tls.crt',use='server'}": "9000000xN",
    "!reberth_extender_pods_placed_unasked{part='avoid'}": "0xN",
    "!reberth_extender_neutral_answers_total{cause='stale'}": "0xN",
    "!reberth_extender_requests_total": "0+900xN",
    "!reberth_extender_request_duration_seconds_bucket{le='0.1'}": "0+2000xN",
    "!reberth_extender_request_duration_seconds_bucket{le='1.0'}": "0+2000xN",
    "!reberth_extender_request_duration_seconds_bucket{le='+Inf'}": "0+2000xN",
    "!reberth_federation_handovers_total{result='timeout'}": "0xN",
    "!reberth_federation_loss_brake_on": "0xN",
    "!reberth_federation_workloads_without_ready_copy": "0xN",
    "!reberth_federation_member_word_age_seconds{member='m1'}": "5xN",
    "!reberth_federation_evictions_total{cause='TaintUntolerated',outcome='timedOut'}": "0xN",
    "!reberth_federation_application_failover_storm": "0xN",
    "!reberth_federation_application_failover_workloads{reason='NoSubstitute'}": "0xN",
    "!reberth_federation_pending_replicas": "0xN",
    "!reberth_federation_clusters{state='sameMember'}": "0xN",
    "!reberth_federation_karmada_running{lease='karmada-scheduler'}": "0xN",
    "!reberth_interpreter_failing_customizations": "0xN",
    "!reberth_federation_rebalance_waiting_workloads{reason='Unschedulable'}": "0xN",
}
# Each is below its threshold, and two of them together would be above it.
ALMOST = {
    "ReberthTwoLeaders": {"leading": "1x60"},
    "ReberthReturns": {"returns_total": "0 2x60"},
    "ReberthNotHelping": {
        "outcomes_total{outcome='Better'}": "0+0.001x1500",
        "outcomes_total{outcome='Returned'}": "0+0.004x1500",
    },
}
DOWN = {"ReberthReschedulerDown": "leading", "ReberthExtenderDown": "!reberth_extender_notes"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_on_its_condition_and_on_nothing_else(alert: Alert, tmp_path: Path) -> None:
    ask(tmp_path, alert.name, {**WELL, **RAISED[alert.name]}, firing=1)
    ask(tmp_path, alert.name, WELL, firing=0)


@pytest.mark.parametrize("name", DOWN)
def test_a_program_that_was_never_there_is_down(name: str, tmp_path: Path) -> None:
    ask(tmp_path, name, {**WELL, DOWN[name]: "_x60"}, firing=1)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_installation_that_fails_is_not_hidden_by_one_that_is_well(alert: Alert, tmp_path: Path) -> None:
    """The one that is well has another label, or none."""
    raised = {**WELL, **RAISED[alert.name]}
    well = last_as_long_as(raised, HEALTHY)
    for failing, other in (({"cluster": "east"}, {"cluster": "west"}), ({"namespace": "blue"}, {})):
        ((label, value),) = failing.items()
        both = {**label_all(well, other), **label_all(raised, failing)}
        ask(tmp_path, alert.name, both, firing=1, where=f'{label}="{value}"')


def test_two_installations_that_are_well_raise_nothing(tmp_path: Path) -> None:
    well = last_as_long_as(WELL, HEALTHY)
    both = {**label_all(well, {"cluster": "east"}), **label_all(well, {"cluster": "west"})}
    ask(tmp_path, "", both, firing=0)


@pytest.mark.parametrize("name", ALMOST)
def test_two_installations_are_not_added_up(name: str, tmp_path: Path) -> None:
    east, west = (label_all(ALMOST[name], {"cluster": cluster}) for cluster in ("east", "west"))
    ask(tmp_path, name, {**east, **west}, firing=0)


def ask(folder: Path, name: str, series: dict[str, str], *, firing: int, where: str = "") -> None:
    """Let promtool count what fires of an alert, or of all; `where` is a label that it must have."""
    rules, file = folder / "rules.yaml", folder / "test.yaml"
    rules.write_text(yaml.safe_dump(write_alerts(tuple(one for one in ALERTS if name in ("", one.name)))))
    file.write_text(yaml.safe_dump(_test_of(str(rules), series, firing=firing, where=where)))
    done = subprocess.run([promtool(), "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def last_as_long_as(others: dict[str, str], series: dict[str, str]) -> dict[str, str]:
    return {name: values.replace("xN", f"x{_last(others)}") for name, values in series.items()}


def label_all(series: dict[str, str], labels: dict[str, str]) -> dict[str, str]:
    """Add the labels of an installation to its series."""
    added = ",".join(f"{name}='{value}'" for name, value in labels.items())
    return {_add(name, added): values for name, values in series.items()}


def _add(series: str, added: str) -> str:
    name, _, held = series.partition("{")
    both = ",".join(filter(None, (held.rstrip("}"), added)))
    return f"{name}{{{both}}}" if both else name


def _test_of(rules: str, series: dict[str, str], *, firing: int, where: str) -> Any:
    firing_ones = 'alertstate="firing"'
    counts = [f"count(ALERTS{{{firing_ones}}})", f"count(ALERTS{{{firing_ones},{where}}})"]
    samples = [{"value": firing, "labels": "{}"}] if firing else []
    return {
        "rule_files": [rules],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": _name(one), "values": values} for one, values in series.items()],
                "promql_expr_test": [
                    {"expr": count, "eval_time": f"{_last(series)}m", "exp_samples": samples}
                    for count in counts
                ],
            }
        ],
    }


def _last(series: dict[str, str]) -> int:
    """The minute in which the longest of the series ends."""
    return max(sum(int(count) for count in re.findall(r"x(\d+)", values)) for values in series.values())


def _name(series: str) -> str:
    """The full name: of the rescheduler, unless it is marked as a name of its own."""
    written = series.replace("'", '"')
    return written[1:] if written.startswith("!") else f"reberth_rescheduler_{written}"
