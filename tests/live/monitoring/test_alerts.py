"""The alert rules, run by promtool: each fires for its cause and for nothing else."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from generating.alerts import ALERTS, Alert
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
    "ReberthReschedulerDown": {"leading": "_x60"},
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
    "ReberthCertificateRefused": {"!reberth_certificate_valid{instance='a'}": "0x60"},
    "ReberthExtenderDown": {"!reberth_extender_notes": "_x60"},
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
    "ReberthHandoverTimedOut": {"!reberth_federation_handovers_total{result='timeout'}": "0+1x60"},
    "ReberthRebalanceStuck": {
        "!reberth_federation_rebalance_waiting_workloads{reason='Unschedulable'}": "1x60"
    },
}
WELL = {"leading": "1x60", "!reberth_extender_notes": "0x60"}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_on_its_condition_and_on_nothing_else(alert: Alert, tmp_path: Path) -> None:
    raised = {**WELL, **RAISED[alert.name]}
    for series, firing in ((raised, True), (WELL, False)):
        file = tmp_path / f"{firing}.yaml"
        file.write_text(yaml.safe_dump(_test_of(alert, series, firing=firing)))
        done = subprocess.run(
            [promtool(), "test", "rules", file], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout


def _test_of(alert: Alert, series: dict[str, str], *, firing: bool) -> Any:
    """Written so that promtool fails where the alert is not as awaited: its labels are not compared."""
    minutes = max(int(values.rpartition("x")[2]) for values in series.values())
    count = f'count(ALERTS{{alertname="{alert.name}", alertstate="firing"}}) > bool 0'
    samples = [{"value": 1, "labels": "{}"}] if firing else []
    return {
        "rule_files": [str(ALERT_RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": _name(name), "values": values} for name, values in series.items()
                ],
                "promql_expr_test": [{"expr": count, "eval_time": f"{minutes}m", "exp_samples": samples}],
            }
        ],
    }


def _name(series: str) -> str:
    """The full name: of the rescheduler, unless it is marked as a name of its own."""
    written = series.replace("'", '"')
    return written[1:] if written.startswith("!") else f"reberth_rescheduler_{written}"
