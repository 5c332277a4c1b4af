"""Why candidates are refused, and what a plan promises."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from reberth.cluster.pods.identity import name_history
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import View
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.model.plan import Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning import planner
from rescheduler.planning.candidate import try_move
from rescheduler.planning.cycle import Cycle
from rescheduler.planning.draft import AcceptedMove, PlanDraft
from rescheduler.policies.better_preferences import BetterPreferences
from rescheduler.policies.proposal import Policy, Proposal, Proposals
from rescheduler.policies.under_utilised_nodes import UtilisationSettings
from tests.support import builders
from tests.support.rescheduler.plans import (
    MODEL,
    NOW,
    PLAIN_MODEL,
    VERSION,
    Object,
    carry_out,
    make_plan,
    moves_of,
    policy,
    refusals_of,
    replica,
)

WEB = WorkloadIdentity("apps/v1", "ReplicaSet", "web")
SSD = {"disk": "ssd"}
PREFERS_SSD = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            }
        ]
    }
}
RED = {"key": "team", "value": "red", "effect": "NoSchedule"}


def hot_node(count: int = 7, **fields: Any) -> list[Object]:
    """A node with seven pods of one CPU on its eight, and two empty ones."""
    pods = [
        replica(f"web-{number}", "web", "hot", cpu="1", memory="4Gi", **fields) for number in range(count)
    ]
    return [builders.node("hot"), builders.node("cold-1"), builders.node("cold-2"), *pods]


def tainted(*pods: Object) -> list[Object]:
    return [builders.node("old", taints=[RED]), builders.node("new"), *pods]


def wanting_ssd(**fields: Any) -> list[Object]:
    pods = [replica("db-1", "db", "hdd", affinity=PREFERS_SSD, **fields), replica("db-2", "db", "hdd")]
    return [builders.node("hdd"), builders.node("ssd", labels=SSD), *pods]


def rules_of(objects: list[Object], **fields: Any) -> dict[str, str]:
    made, _ = make_plan(objects, policy(**fields))
    return refusals_of(made)


def test_nothing_to_do_is_a_plan_too() -> None:
    made, memory = make_plan([builders.node("a")])
    assert (made.moves, [*made.refused], made.warnings) == ((), [], ())
    assert memory == PlanMemory()


def test_no_node_at_all_is_a_plan_too() -> None:
    made, _ = make_plan([replica("web-1", "web", "gone")])
    assert made.moves == ()


def test_the_destination_is_reserved_for_the_move_before() -> None:
    made, _ = make_plan(hot_node(8), policy(limits={"perWorkload": None}))
    assert sorted(moves_of(made).values()) == ["cold-1", "cold-2"]


def test_candidates_after_the_last_move_of_a_cycle_are_refused_by_limit() -> None:
    found = rules_of(hot_node(8), limits={"perWorkload": None, "perCycle": 1})
    assert set(found.values()) == {"Limit"}
    assert len(found) == 7


def test_a_fault_about_one_pod_refuses_that_pod_and_the_others_move(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    def stumble(proposal: Proposal, policy: Policy, cycle: Cycle, draft: PlanDraft) -> AcceptedMove | Refused:
        if cycle.context.row(proposal.pod).name == "web-0":
            raise ValueError("year 13434 is out of range")
        return try_move(proposal, policy, cycle, draft)

    monkeypatch.setattr(planner, "try_move", stumble)
    made, _ = make_plan(hot_node(8), policy(limits={"perWorkload": None}))
    assert len(made.moves) == 2
    assert refusals_of(made)["default/web-0"] == "Fault"
    reasons = {one.pod: one.reason for one in made.refused}
    assert reasons["default/web-0"].startswith("ValueError: year 13434 is out of range (test_planner.py:")
    assert faults
    faults.clear()


def test_a_fault_of_one_policy_is_a_warning_and_the_others_propose(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    def stumble(_policy: BetterPreferences, _view: View) -> Iterator[Proposals]:
        raise RecursionError

    monkeypatch.setattr(BetterPreferences, "propose", stumble)
    made, _ = make_plan(tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new")))
    assert moves_of(made) == {"default/web-1": "new"}
    assert made.warnings[0].startswith("Fault: betterPreferences proposes nothing: RecursionError (test_")
    assert faults
    faults.clear()


def test_level_one_makes_only_demanded_moves() -> None:
    assert set(rules_of(hot_node(), level=1).values()) == {"Level"}
    made, _ = make_plan(
        tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new")), policy(level=1)
    )
    assert moves_of(made) == {"default/web-1": "new"}
    assert made.moves[0].level == 1


def test_a_move_must_be_worth_the_minimum_of_the_level() -> None:
    assert set(rules_of(hot_node(), worth=5000).values()) == {"NotWorthIt"}


def test_a_gain_too_small_to_count_as_better_is_refused() -> None:
    objects = [builders.node("a"), builders.node("b"), *hot_node(0)[:0]]
    pods = [replica(f"web-{number}", "web", "a", cpu="1") for number in range(4)]
    settings = {"underUtilisedNodes": {"low": {"memory": "90%"}, "high": {"memory": "0%"}}}
    with pytest.raises(Exception, match="low must not be above high"):
        policy(policies=settings)
    thresholds = {"low": {"cpu": "45%"}, "high": {"cpu": "45%"}}
    full = [replica(f"db-{number}", "db", "b", cpu="1") for number in range(3)]
    found = rules_of([*objects, *pods, *full], policies={"underUtilisedNodes": thresholds})
    assert set(found.values()) == {"NoBetterNode"}


ONLY_DUPLICATES = {"brokenRules": {"duplicates": True}, "underUtilisedNodes": {"enabled": False}}


def test_a_pod_that_would_come_back_stays() -> None:
    """Without our extender nobody draws it away from the node that is best for it."""
    pods = [replica(f"web-{number}", "web", "large", cpu="10m") for number in range(2)]
    full = [replica(f"db-{number}", "db", "small", cpu="1") for number in range(2)]
    objects = [builders.node("large", cpu="64"), builders.node("small", cpu="4"), *pods, *full]
    settings = policy(policies=ONLY_DUPLICATES, limits={"perWorkload": None})
    drawn, _ = make_plan(objects, settings)
    alone, _ = make_plan(objects, settings, model=PLAIN_MODEL)
    assert moves_of(drawn) == {"default/web-0": "small", "default/db-0": "large"}
    assert refusals_of(alone) == dict.fromkeys(("default/web-0", "default/web-1"), "LandsOnItsNode")


def test_a_pod_stays_if_its_forecast_gives_an_unwanted_node() -> None:
    """The emptiest node has too many of its kind already, and without our extender it would go there."""
    many = [replica(f"web-{number}", "web", "a", cpu="1", memory="4Gi") for number in range(4)]
    some = [replica(f"web-{number}", "web", "b", cpu="1", memory="4Gi") for number in range(4, 7)]
    other = [replica(f"db-{name}", "db", name, cpu="6", memory="20Gi") for name in "ac"]
    objects = [
        builders.node("a", cpu="16"),
        builders.node("b", cpu="64", memory="256Gi"),
        builders.node("c"),
        *many,
    ]
    settings = policy(policies=ONLY_DUPLICATES)
    alone, _ = make_plan([*objects, *some, *other], settings, model=PLAIN_MODEL)
    assert refusals_of(alone)["default/web-0"] == "UncertainLanding"


def test_no_pod_leaves_a_node_to_which_the_plan_moves_a_pod_of_its_controller() -> None:
    pods = [replica(f"web-{number}", "web", "new", cpu="1", memory="4Gi") for number in range(1, 7)]
    more = (
        replica("etl-1", "etl", "new", cpu="1", memory="4Gi"),
        replica("etl-2", "etl", "old", tolerations=[{"operator": "Exists"}]),
    )
    objects = tainted(replica("web-0", "web", "old", cpu="100m"), *pods, *more)
    found = rules_of(objects, limits={"perWorkload": None})
    assert {found[f"default/web-{number}"] for number in range(1, 7)} == {"Undoes"}
    assert found["default/etl-1"] == "NoBetterNode"


def test_a_node_that_the_workload_is_to_avoid_is_no_destination() -> None:
    note = {
        "podSignature": {
            "podController": {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": "uid-default-web",
                "controller": True,
            }
        },
        "evictionTime": "2026-11-18T11:50:00Z",
        "reason": "poor service",
    }
    objects = tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new"))
    objects[1]["metadata"]["annotations"] = {
        "scheduler.alpha.kubernetes.io/preferAvoidPods": json.dumps({"preferAvoidPods": [note]})
    }
    assert rules_of(objects) == {"default/web-1": "Avoided"}


def test_a_limit_may_be_full_at_the_destination_alone() -> None:
    objects = [builders.node("new")]
    for name in ("old-1", "old-2"):
        objects += [
            builders.node(name, taints=[RED]),
            replica(f"{name}-a", name, name),
            replica(f"{name}-b", name, "new"),
        ]
    found = rules_of(objects, limits={"perNode": 1})
    assert found == {"default/old-2-a": "NodeInFlight"}


def test_a_leaving_node_is_no_destination() -> None:
    objects = wanting_ssd()
    objects[1]["spec"]["unschedulable"] = True
    assert make_plan(objects)[0].moves == ()
    objects = tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new"))
    soft = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}
    objects[1]["spec"]["taints"] = [soft]
    assert rules_of(objects) == {"default/web-1": "DestinationLeaving"}


def test_no_pod_leaves_a_node_that_is_going() -> None:
    objects = tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new"))
    objects[0]["spec"]["unschedulable"] = True
    assert rules_of(objects) == {"default/web-1": "SourceLeaving"}


def test_a_scheduler_that_is_not_known_cannot_be_forecast() -> None:
    pods = [replica(f"web-{n}", "web", node, schedulerName="other") for n, node in ((1, "old"), (2, "new"))]
    assert rules_of(tainted(*pods)) == {"default/web-1": "CannotForecast"}


def test_a_brake_stops_everything_and_is_named() -> None:
    objects = hot_node()
    objects[2]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    made, _ = make_plan(objects)
    assert set(refusals_of(made).values()) == {"NodesNotReady"}
    assert any(warning.startswith("NodesNotReady: 1 of 3 nodes") for warning in made.warnings)


def test_a_pause_stops_balance_and_not_repairs() -> None:
    drained = builders.node("gone", taints=[{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}])
    objects = [*hot_node(), drained, builders.node("old", taints=[RED])]
    objects += [replica("api-1", "api", "old"), replica("api-2", "api", "cold-1")]
    made, _ = make_plan(objects)
    assert [move.pod for move in made.moves] == ["default/api-1"]
    assert set(refusals_of(made).values()) == {"AutoscalerDrains"}


def test_another_rescheduler_is_warned_of() -> None:
    mark = {"key": "nodeutilization.descheduler.openshift.io/overutilized", "effect": "PreferNoSchedule"}
    made, _ = make_plan([builders.node("a", taints=[mark])])
    assert made.warnings == (f"another rescheduler is active: taint {mark['key']}",)


def test_a_scheduler_without_our_extender_is_warned_of() -> None:
    made, _ = make_plan([builders.node("a")], model=PLAIN_MODEL)
    assert made.warnings[0].startswith("the scheduler does not call Reberth's extender")


def test_a_version_that_nobody_has_proven_is_warned_of() -> None:
    made, _ = make_plan([builders.node("a")], model=replace(MODEL, version=(1, 38)))
    assert made.warnings == ("forecasts are not proven for Kubernetes 1.38, only for 1.35, 1.36 and 1.37",)


def test_a_rate_that_reaches_back_to_what_the_ledger_has_forgotten_is_warned_of() -> None:
    ledger = {
        "apiVersion": "reberth.dev/v1alpha2",
        "kind": "MoveLedger",
        "metadata": {"name": "default"},
        "status": {"forgotten": {"clusterUntil": write_time(NOW - 300)}},
    }
    rates = policy(limits={"rates": {"cluster": ["10 per 10m", "9 per 1m"]}})
    made, _ = make_plan([builders.node("a"), ledger], rates)
    told = f"does not count disruptions up to {write_time(NOW - 300)}: it was not configured then"
    assert made.warnings == (f"the rate 10 per 600s {told}",)


HOT_FOR = UtilisationSettings().hot_for


def test_a_node_must_have_been_hot_for_some_time_however_many_cycles_there_were() -> None:
    """Cycles come every few seconds where nodes change and moves end."""
    memory: PlanMemory | None = PlanMemory()
    moves = []
    for seconds in (0, 5, 10, 15, HOT_FOR - 1, HOT_FOR):
        made, memory = make_plan(hot_node(), memory=memory, now=NOW + seconds)
        moves.append(len(made.moves))
    assert moves == [0, 0, 0, 0, 0, 1]


def test_the_time_of_a_hot_node_begins_anew_after_a_gap() -> None:
    _, memory = make_plan(hot_node(), memory=PlanMemory())
    assert memory.hot_since == {"hot": NOW}
    _, memory = make_plan(hot_node(4), memory=memory, now=NOW + 1)
    assert memory.hot_since == {}
    made, memory = make_plan(hot_node(), memory=memory, now=NOW + HOT_FOR)
    assert (len(made.moves), memory.hot_since) == (0, {"hot": NOW + HOT_FOR})


def test_without_a_memory_a_hot_node_has_always_been_hot() -> None:
    made, memory = make_plan(hot_node(), memory=None)
    again, _ = make_plan(hot_node(), memory=PlanMemory(memory.hot_since), now=NOW + 1)
    assert len(made.moves) == len(again.moves) == 1


AT_ONCE = {"brokenRules": {"taints": {"for": "0s"}}}


def test_a_pod_is_not_moved_again_until_its_move_has_paid_for_its_cost() -> None:
    objects = tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new"))
    made, memory = make_plan(objects)
    after = carry_out(objects, made)
    after[1]["spec"]["taints"] = [RED]
    del after[0]["spec"]["taints"]
    again, _ = make_plan(
        [*after, builders.node("third")],
        policy(protections={"minAge": "0s"}, policies=AT_ONCE),
        memory,
        now=NOW + 60,
    )
    assert refusals_of(again)["default/web-1.1"] == "NotPaidBack"
    assert [each.reason for each in again.refused] == [
        "its last move has not paid for its cost yet: the pod stays until 2026-11-18T13:00:00Z"
    ]
    later, _ = make_plan([*after, builders.node("third")], policy(policies=AT_ONCE), memory, now=NOW + 90_000)
    assert "default/web-1.1" in moves_of(later)


def test_no_pod_is_sent_back_to_where_one_of_its_owner_came_from() -> None:
    objects = tainted(replica("web-1", "web", "old"), replica("web-2", "web", "new"))
    made, memory = make_plan(objects)
    after = carry_out(objects, made)
    after[1]["spec"]["taints"] = [RED]
    del after[0]["spec"]["taints"]
    again, _ = make_plan(after, policy(policies=AT_ONCE), memory, now=NOW + 90_000)
    assert set(refusals_of(again).values()) == {"Undoes"}
    forgotten, _ = make_plan(after, policy(), None, now=NOW + 90_000)
    assert len(forgotten.moves) == 1


def test_an_eviction_history_keeps_a_pod_where_it_landed() -> None:
    history = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {"name": name_history(WEB), "namespace": "default"},
        "spec": {"workload": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}},
        "status": {
            "past": [
                {
                    "id": "m-1",
                    "pod": "web-0",
                    "podUID": "u",
                    "from": "new",
                    "landedOn": "old",
                    "outcome": "Better",
                    "evictedAt": "2026-11-18T11:30:00Z",
                    "closedAt": "2026-11-18T11:31:00Z",
                }
            ]
        },
    }
    young = replica("web-1", "web", "old", created="2026-11-18T11:30:05Z")
    objects = [*tainted(young, replica("web-2", "web", "new")), history]
    assert rules_of(objects) == {"default/web-1": "NotPaidBack"}


def test_others_must_not_break_more_rules() -> None:
    """The emptiest domain must not lose a pod that others' spread counts."""
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"tier": "front"}},
        }
    ]
    objects = [
        builders.node("hdd"),
        builders.node("ssd", labels=SSD),
        replica("db-1", "db", "hdd", affinity=PREFERS_SSD, labels={"tier": "front"}),
        replica("db-2", "db", "hdd"),
        replica("web-1", "web", "ssd", labels={"tier": "front"}, topologySpreadConstraints=spread),
        replica("web-2", "web", "ssd", labels={"tier": "front"}, topologySpreadConstraints=spread),
    ]
    assert rules_of(objects)["default/db-1"] == "WorsensCluster"


def test_a_preference_must_not_overfill_a_node() -> None:
    full = [replica(f"etl-{number}", "etl", "ssd", cpu="2", memory="8Gi") for number in range(3)]
    objects = [*wanting_ssd(cpu="1", memory="4Gi"), *full]
    assert rules_of(objects)["default/db-1"] == "WorsensCluster"


def test_a_plan_shows_touched_nodes_before_and_after() -> None:
    made, _ = make_plan(hot_node())
    assert set(made.nodes) == {"hot", "cold-1"}
    assert (made.nodes["hot"].before["cpu"], made.nodes["hot"].after["cpu"]) == (87.5, 75.0)
    assert made.score.after < made.score.before


def test_equal_input_gives_equal_bytes() -> None:
    def write(made: tuple[Plan, PlanMemory]) -> bytes:
        return msgspec.json.encode(made, order="deterministic", enc_hook=list)

    assert write(make_plan(hot_node())) == write(make_plan(list(reversed(hot_node()))))


def test_a_large_fleet_lists_as_many_destinations_as_are_surely_seen() -> None:
    """Above a hundred nodes kube-scheduler does not look at all of them."""
    nodes = [builders.node(f"n{number:03}", labels=SSD) for number in range(300)]
    objects = [*nodes, builders.node("hdd"), *wanting_ssd()[2:]]
    made, _ = make_plan(objects)
    (move,) = made.moves
    assert 3 < len(move.destinations) <= 64
    assert sum(each.chance for each in move.destinations) > 0.99


def test_the_version_of_kubernetes_is_the_schedulers() -> None:
    made, _ = make_plan(hot_node(), model=SchedulerModel((1, 35), default_scheduler(VERSION)))
    assert len(made.moves) == 1


def test_a_plan_forecasts_no_more_than_it_may_and_the_next_one_begins_with_the_others() -> None:
    """All want to an SSD that is worth nothing to them: who was looked at in vain comes last."""
    soft = {"key": "busy", "effect": "PreferNoSchedule"}
    pods = [replica(f"db-{number}", "db", "hdd", affinity=PREFERS_SSD) for number in range(4)]
    objects = [builders.node("hdd"), builders.node("ssd", labels=SSD, taints=[soft]), *pods]
    settings, memory, view = policy(forecasts=2), None, []
    for _ in range(4):
        made, memory = make_plan(objects, settings, memory)
        view.append(sorted(pod for pod, rule in refusals_of(made).items() if rule != "Limit"))
    first, second = ["default/db-0", "default/db-1"], ["default/db-2", "default/db-3"]
    assert view == [first, second, first, second]
    assert make_plan(objects, policy(), memory)[1].looked_at == frozenset()
