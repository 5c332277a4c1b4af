"""Plans and moves as metrics."""

import pytest

from reberth.cluster.object_files import load_objects
from reberth.memory.history import Ending
from reberth.records import Outcome
from reberth.runtime.metrics import REGISTRY
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.moves.outcome import Landing, MoveReport
from rescheduler.planning import planner
from rescheduler.planning.cycle import begin_cycle
from rescheduler.planning.planner import write_plan
from rescheduler.policies.better_preferences import BetterPreferences
from rescheduler.telemetry.recording import count_end, count_plan, count_remembered, forget_state, show_state
from tests.support.builders import node
from tests.support.memory.objects import move
from tests.support.metrics import read_metric, rescheduler_metric
from tests.support.rescheduler.guardrails import history
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, make_plan, policy, replica

POLICY = "underUtilisedNodes"


@pytest.mark.parametrize(
    ("report", "landing", "metric", "labels"),
    [
        (
            MoveReport(move(policy=POLICY), Ending(Outcome.BETTER, "n2", 10, 70, 2.0)),
            Landing(as_forecast=True),
            "outcomes_total",
            {"policy": POLICY, "outcome": "Better"},
        ),
        (
            MoveReport(move(policy=POLICY), Ending(Outcome.BETTER, "n2", 10, 70, 2.0)),
            Landing(as_forecast=True),
            "landings_total",
            {"forecast": "hit"},
        ),
        (
            MoveReport(move(policy=POLICY), Ending(Outcome.RETURNED, "n1")),
            Landing(as_forecast=False, cause="returned"),
            "returns_total",
            {"policy": POLICY},
        ),
        (
            MoveReport(move(policy=POLICY), Ending(Outcome.RETURNED, "n1")),
            Landing(as_forecast=False, cause="returned"),
            "landing_misses_total",
            {"cause": "returned"},
        ),
        (
            MoveReport(move(policy="somebody's own"), Ending(Outcome.GONE)),
            None,
            "moves_total",
            {"policy": "other", "result": "evicted"},
        ),
        (
            MoveReport(move(policy=POLICY), Ending(Outcome.REFUSED), Refused("NotSeen", "n1 is silent")),
            None,
            "moves_refused_total",
            {"rule": "NotSeen"},
        ),
    ],
)
def test_the_end_of_a_move_is_counted(
    report: MoveReport, landing: Landing | None, metric: str, labels: dict[str, str]
) -> None:
    before = rescheduler_metric(metric, **labels)
    count_end(report, landing)
    assert rescheduler_metric(metric, **labels) == before + 1


def test_a_plan_and_the_state_of_its_cluster_are_shown() -> None:
    full = [replica(f"web-{n}", f"web-{n}", "n1", cpu="1") for n in range(7)]
    lost = history("lost", givenUpUntil="2027-01-15T09:00:00Z")
    settings = policy(
        mode="recommend",
        limits={"rates": {"cluster": ["7 per 10m", "50% per 1h"]}},
        policies={POLICY: {"hotFor": "0s", "low": {"cpu": "30%"}, "high": {"cpu": "50%"}}},
    )
    reading = load_objects([node("n1"), node("n2"), *full, lost], now=NOW, version=VERSION)
    cycle = begin_cycle(reading.snapshot, settings, None, MODEL)
    plan, _ = write_plan(cycle)
    before = rescheduler_metric("proposals_total", policy=POLICY, result="refused")
    count_plan(plan)
    show_state(cycle, ["one", "two"])
    refused = len(plan.refused)
    assert refused > 0
    assert rescheduler_metric("proposals_total", policy=POLICY, result="refused") == before + refused
    assert rescheduler_metric("plan_moves", mode="recommend") == len(plan.moves)
    assert rescheduler_metric("plan_refused_proposals", rule=next(iter(plan.refused)).rule) > 0
    assert rescheduler_metric("cluster_score", part="excess", when="now") == plan.score.before.excess > 0
    assert rescheduler_metric("utilisation_nodes", resource="cpu", le="0.1") == 1
    assert rescheduler_metric("utilisation_nodes", resource="cpu", le="0.9") == 2
    assert rescheduler_metric("utilisation_nodes", resource="memory", le="+Inf") == 2
    assert rescheduler_metric("rate_remaining_disruptions", rate="7 per 600s") == 7
    assert rescheduler_metric("rate_remaining_disruptions", rate="50% per 3600s") == 3  # of 7 pods
    assert rescheduler_metric("given_up_workloads") == 1
    assert rescheduler_metric("plan_warnings") == 2


def test_what_waits_after_a_refusal_is_shown_by_whom_it_concerns() -> None:
    time = {"refusedAt": "2026-11-18T11:59:30.000000Z", "until": "2026-11-18T12:00:30.000000Z"}
    over = {"rule": "PDB", "refusedAt": time["refusedAt"], "until": time["refusedAt"]}
    histories = [
        history("web", refused=[{"rule": "EvictionRefused", **time}, over]),
        history("db", refused=[{"rule": "WebhookFailing", "key": "hook", **time}]),
        history("cache", refused=[{"rule": "WebhookFailing", "key": "hook", **time}]),
    ]
    reading = load_objects([node("n1"), *histories], now=NOW, version=VERSION)
    show_state(begin_cycle(reading.snapshot, policy(), None, MODEL), [])
    waiting = {("EvictionRefused", "workload"): 1, ("WebhookFailing", "webhook"): 1, ("PDB", "workload"): 0}
    for (rule, scope), count in waiting.items():
        assert rescheduler_metric("waiting_refusals", rule=rule, scope=scope) == count
    forget_state()
    assert rescheduler_metric("waiting_refusals", rule="EvictionRefused", scope="workload") == 0
    before = rescheduler_metric("refusals_remembered_total", rule="NotSeen", scope="everything")
    count_remembered("NotSeen")
    assert rescheduler_metric("refusals_remembered_total", rule="NotSeen", scope="everything") == before + 1


def test_the_mode_of_every_policy_is_shown() -> None:
    snapshot = load_objects([node("n1")], now=NOW, version=VERSION).snapshot
    asked = policy(mode="recommend", policies={POLICY: {"mode": "apply"}, "brokenRules": {"mode": "off"}})
    show_state(begin_cycle(snapshot, asked, None, MODEL), [])
    assert rescheduler_metric("mode", policy=POLICY, mode="apply") == 1
    assert rescheduler_metric("mode", policy="brokenRules", mode="off") == 1
    assert rescheduler_metric("mode", policy="betterPreferences", mode="recommend") == 1
    show_state(begin_cycle(snapshot, policy(mode="off"), None, MODEL), [])
    assert rescheduler_metric("mode", policy=POLICY, mode="apply") == 0
    assert rescheduler_metric("mode", policy=POLICY, mode="off") == 1


def test_a_process_that_lost_the_lease_shows_no_brake() -> None:
    snapshot = load_objects([node("n1")], now=NOW, version=VERSION).snapshot
    health = ClusterHealth(brakes=(Refused("ExtendersUnreachable", "no answer"),))
    show_state(begin_cycle(snapshot, policy(), None, MODEL, health), ["one"])
    assert (
        rescheduler_metric("brake_on", rule="ExtendersUnreachable")
        == rescheduler_metric("plan_warnings")
        == 1
    )
    forget_state()
    assert (
        rescheduler_metric("brake_on", rule="ExtendersUnreachable")
        == rescheduler_metric("plan_warnings")
        == 0
    )
    assert REGISTRY.get_sample_value("reberth_rescheduler_mode", {"policy": POLICY, "mode": "off"}) is None


def test_faults_of_a_plan_are_noted_with_their_pods(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    def stumble(*_: object) -> None:
        raise ValueError("no such day")

    monkeypatch.setattr(planner, "try_move", stumble)
    monkeypatch.setattr(BetterPreferences, "propose", stumble)
    full = [replica(f"web-{n}", f"web-{n}", "n1", cpu="1") for n in range(7)]
    made, _ = make_plan([node("n1"), node("n2"), *full])
    faults.clear()
    before = read_metric("reberth_faults_total", place="plan")
    count_plan(made)
    assert read_metric("reberth_faults_total", place="plan") == before + len(made.refused) > before
    assert sorted(each.partition(": ")[0] for each in faults) == [
        *(f"plan default/web-{n}" for n in range(7)),
        "policy ",
    ]
    faults.clear()
