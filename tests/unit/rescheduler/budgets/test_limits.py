"""Each limit by its name; moves already in the plan count."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.memory.ledger import MOST_DEBITS
from reberth.memory.notes import ANNOTATION, MOST_NOTES
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.values.duration import Percentage
from reberth.values.pod_limit import PodLimit
from reberth.values.refusal import Refused
from rescheduler.budgets.limits import CandidateMove, Limits, begin_limits
from rescheduler.model.guardrails import LimitSettings, ProtectionSettings
from rescheduler.model.quiet_hours import QuietHours, TimeOfDay
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import node, owner, pdb
from tests.support.rescheduler.guardrails import (
    NOW,
    Object,
    context_of,
    history,
    keep_ledger,
    open_move,
    past_move,
    place_of,
    quota,
    replica,
)

FREE = LimitSettings(
    per_cycle=None, per_node=None, per_namespace=None, per_workload=None, rates=DisruptionLimits(cluster=())
)
APP = {"app": "web"}
HELD = "2027-01-15T08:30:00Z"
WEBS = [replica(f"web-{n}", labels=APP, uid=f"uid-web-{n}") for n in range(1, 6)]
ALLOWED = {"disruptionsAllowed": 2, "currentHealthy": 5, "desiredHealthy": 3, "expectedPods": 5}


def settings(**fields: Any) -> LimitSettings:
    given = {
        name: PodLimit(value) if isinstance(value, int) and name != "per_node" else value
        for name, value in fields.items()
    }
    return LimitSettings(**{**{name: getattr(FREE, name) for name in FREE.__struct_fields__}, **given})


def budget(name: str = "web", status: Object | None = None, generation: int = 1, **spec: Any) -> Object:
    made = pdb(
        name, "web", max_unavailable=1, status={"observedGeneration": 1, **ALLOWED, **(status or {})}, **spec
    )
    return made | {"metadata": made["metadata"] | {"generation": generation}}


def cluster(*objects: Object, limits: LimitSettings | None = None) -> RuleContext:
    """A cluster in which a workload may lose its last Ready replica."""
    return context_of(*objects, limits=limits, protections=ProtectionSettings(last_ready=False))


def spend_all(
    context: RuleContext, *names: str, policy: str = "underUtilisedNodes", destination: int | None = None
) -> list[str | None]:
    """Spend one move after another; name the rule that refuses each."""
    limits, rules = begin_limits(context), []
    for name in names:
        move = CandidateMove(place_of(context, name), 0, policy, destination)
        left = limits.spend(move)
        assert (limits.refuse(move) is None) == isinstance(left, Limits)
        rules.append(left.rule if isinstance(left, Refused) else None)
        limits = left if isinstance(left, Limits) else limits
    return rules


def only(context: RuleContext, name: str = "web-1", policy: str = "underUtilisedNodes") -> Refused | None:
    return begin_limits(context).refuse(CandidateMove(place_of(context, name), 0, policy))


THREE = ("web-1", "web-2", "web-3")


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"per_cycle": 2}, "Limit"),
        ({"per_node": 2}, "NodeInFlight"),
        ({"per_namespace": 2}, "NamespaceInFlight"),
        ({"per_workload": 2}, "WorkloadInFlight"),
        ({"rates": DisruptionLimits(cluster=(Rate((2, 60.0)),))}, "ClusterRate"),
        ({"rates": DisruptionLimits((), namespace=(Rate((2, 60.0)), Rate((9, 600.0))))}, "NamespaceRate"),
        ({"rates": DisruptionLimits((), workload=(Rate((2, 60.0)),))}, "WorkloadRate"),
        ({"rates": DisruptionLimits((Rate((3, 60.0)),)), "rate_reserve": Percentage(0.5)}, "ClusterRate"),
    ],
)
def test_moves_already_in_the_plan_count(fields: dict[str, Any], rule: str) -> None:
    context = cluster(*WEBS, limits=settings(**fields))
    assert spend_all(context, *THREE) == [None, None, rule]


def test_without_limits_nothing_is_refused() -> None:
    context = cluster(*WEBS, limits=FREE)
    assert spend_all(context, "web-1", "web-2", "web-3", "web-4", "web-5") == [None] * 5


def test_a_limit_of_a_node_holds_for_arrivals_too() -> None:
    sources = [replica(f"web-{n}", node=f"n{n}", labels=APP) for n in (1, 2)]
    context = cluster(*sources, node("n2"), node("n3"), limits=settings(per_node=1))
    limits = begin_limits(context).spend(
        CandidateMove(place_of(context, "web-1"), 0, "underUtilisedNodes", 2)
    )
    assert isinstance(limits, Limits)
    refused = limits.refuse(CandidateMove(place_of(context, "web-2"), 1, "underUtilisedNodes", 2))
    assert refused == Refused("NodeInFlight", "no more than perNode 1")
    assert limits.refuse(CandidateMove(place_of(context, "web-2"), 1, "underUtilisedNodes")) is None


@pytest.mark.parametrize(("per_node", "full"), [(1, [1]), (2, []), (None, [])])
def test_nodes_that_nothing_more_may_be_moved_onto_are_known(per_node: int | None, full: list[int]) -> None:
    context = cluster(node("n1"), node("n2"), *WEBS, limits=settings(per_node=per_node))
    limits = begin_limits(context).spend(
        CandidateMove(place_of(context, "web-1"), 0, "underUtilisedNodes", destination=1)
    )
    assert isinstance(limits, Limits)
    assert limits.list_full() == full


def test_spending_returns_a_new_value_and_does_not_change_the_old_one() -> None:
    context = cluster(*WEBS, limits=settings(per_cycle=1))
    limits, move = begin_limits(context), CandidateMove(place_of(context), 0, "underUtilisedNodes")
    assert isinstance(limits.spend(move), Limits)
    assert isinstance(limits.spend(move), Limits)


def test_limits_per_workload_are_independent() -> None:
    other = replica("db-1", owned_by=owner("ReplicaSet", "db"))
    rates = DisruptionLimits((), workload=(Rate((1, 60.0)),))
    context = cluster(*WEBS, other, limits=settings(per_workload=1, rates=rates))
    assert spend_all(context, "web-1", "db-1", "web-2") == [None, None, "WorkloadInFlight"]


@pytest.mark.parametrize(
    ("count", "rules"),
    [(MOST_DEBITS - 2, [None, None, "LedgerFull"]), (MOST_DEBITS, ["LedgerFull"] * 3)],
)
def test_a_plan_makes_no_more_moves_than_the_ledger_has_room_for(count: int, rules: list[str | None]) -> None:
    open_ = {"time": "2027-01-15T07:59:30.000000Z", "state": "Tentative"}
    old = {"move": "old", "time": "2027-01-15T06:00:00.000000Z", "state": "Spent"}
    ledger = keep_ledger([old, *({"move": f"m{number}", **open_} for number in range(count))])
    rates = DisruptionLimits((Rate((9999, 60.0)),))
    assert spend_all(cluster(*WEBS, ledger, limits=settings(rates=rates)), "web-1", "web-2", "web-3") == rules


@pytest.mark.parametrize(
    ("held", "expires", "rules"),
    [
        (MOST_NOTES, HELD, ["NotesFull"] * 2),
        (MOST_NOTES - 1, HELD, [None, "NotesFull"]),
        (MOST_NOTES, "2027-01-15T07:59:59Z", [None, None]),
        (0, HELD, [None, None]),
    ],
)
def test_a_plan_makes_no_more_moves_off_a_node_than_its_annotation_has_room_for(
    held: int, expires: str, rules: list[str | None]
) -> None:
    """Only the notes of open moves are kept: others give way."""
    entries = [
        {
            "podSignature": {"podController": owner("ReplicaSet", "db")},
            "evictionTime": "2027-01-15T07:58:00Z",
            "reberth": {"id": f"m-{number}", "namespace": "default", "expiresAt": expires},
        }
        for number in range(MOST_NOTES)
    ]
    moves = [open_move("db-1", id=f"m-{number}") for number in range(held)]
    noted = node("n0", annotations={ANNOTATION: json.dumps({"preferAvoidPods": entries})})
    webs = [replica(f"web-{number}", node="n0", uid=f"uid-web-{number}") for number in (1, 2)]
    context = cluster(*webs, noted, history("db", open=moves), limits=FREE)
    assert spend_all(context, "web-1", "web-2") == rules


def test_no_pod_is_moved_off_a_node_whose_notes_cannot_be_read() -> None:
    noted = node("n0", annotations={ANNOTATION: "{"})
    refused = only(cluster(replica(node="n0", uid="uid-web-1"), noted, limits=FREE))
    assert refused == Refused("NoteUnreadable", "n0: the node's annotation preferAvoidPods cannot be read")


def test_a_used_up_rate_names_the_time_when_it_opens() -> None:
    debit = {"move": "m", "time": "2027-01-15T07:59:30.000000Z", "state": "Spent", "namespace": "default"}
    ledger = keep_ledger([debit])
    rates = DisruptionLimits((Rate((1, 60.0)),))
    refused = only(cluster(*WEBS, ledger, limits=settings(rates=rates)))
    assert refused == Refused("ClusterRate", "no more than 1 per 60s", NOW - 30 + 65)


@pytest.mark.parametrize(
    ("status", "spec", "rules"),
    [
        ({}, {}, [None, None, "PDB"]),
        ({"disruptionsAllowed": 0}, {}, ["PDB"] * 3),
        ({"disruptionsAllowed": -1}, {}, ["PDB"] * 3),
        ({"observedGeneration": 0}, {}, ["BudgetUnobserved"] * 3),
        ({}, {"unhealthyPodEvictionPolicy": "Whenever"}, ["PDB"] * 3),
        ({}, {"selector": {"matchLabels": {"app": "db"}}}, [None] * 3),
        ({"disruptionsAllowed": 0}, {"selector": None}, [None] * 3),
        ({"disruptionsAllowed": 0}, {"selector": {}}, ["PDB"] * 3),
        ({"disruptionsAllowed": 0}, {"selector": {"matchLabels": {"a b": "c"}}}, [None] * 3),
    ],
)
def test_a_disruption_budget_is_spent_as_a_number(
    status: Object, spec: dict[str, Any], rules: list[str | None]
) -> None:
    context = cluster(*WEBS, budget(status=status, **spec), limits=FREE)
    assert spend_all(context, *THREE) == rules


def test_the_refusal_names_the_budget() -> None:
    context = cluster(*WEBS, budget(status={"disruptionsAllowed": 0, "currentHealthy": 3}), limits=FREE)
    assert only(context) == Refused("PDB", "PDB web allows 0: it needs 3 healthy pods and has 3")


def test_several_budgets_are_named() -> None:
    context = cluster(*WEBS, budget(), budget("all"), limits=FREE)
    reason = "more than one PodDisruptionBudget selects the pod: all, web"
    assert only(context) == Refused("SeveralBudgets", reason)


@pytest.mark.parametrize(
    ("reserve", "allowed", "moves"), [(0.0, 4, 4), (0.5, 4, 2), (0.5, 1, 1), (0.9, 2, 1), (1.0, 4, 0)]
)
def test_part_of_a_budget_is_left_to_others(reserve: float, allowed: int, moves: int) -> None:
    limits = settings(budget_reserve=Percentage(reserve))
    context = cluster(*WEBS, budget(status={"disruptionsAllowed": allowed}), limits=limits)
    assert spend_all(context, *(f"web-{n}" for n in range(1, 6))).count(None) == moves


UNREADY = replica("sick", labels=APP, status={})
SICK_CASES: list[tuple[Object, dict[str, Any], str | None]] = [
    ({"disruptionsAllowed": 0}, {}, None),
    ({"disruptionsAllowed": 0, "currentHealthy": 2}, {}, "PDB"),
    ({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0}, {}, "PDB"),
    ({"disruptionsAllowed": 0, "currentHealthy": 2}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, None),
    (
        {"disruptionsAllowed": 0, "currentHealthy": 2},
        {"unhealthyPodEvictionPolicy": "IfHealthyBudget"},
        "PDB",
    ),
]


@pytest.mark.parametrize(("status", "spec", "rule"), SICK_CASES)
def test_the_budgets_policy_decides_about_a_pod_that_is_not_ready(
    status: Object, spec: dict[str, Any], rule: str | None
) -> None:
    refused = only(cluster(UNREADY, budget(status=status, **spec), limits=FREE), "sick")
    assert (refused.rule if refused else None) == rule


def test_a_pod_that_has_not_begun_to_run_asks_no_budget() -> None:
    starting = replica("new", labels=APP, phase="Pending")
    assert only(cluster(starting, budget(status={"disruptionsAllowed": 0}), limits=FREE), "new") is None


def test_a_budget_that_selects_one_replica_by_its_own_label_is_its_alone() -> None:
    own = "statefulset.kubernetes.io/pod-name"
    pods = [replica(name, labels=APP | {own: name}) for name in ("web-1", "web-2")]
    alone = budget(status={"disruptionsAllowed": 0}, selector={"matchLabels": {own: "web-2"}})
    assert spend_all(cluster(*pods, alone, limits=FREE), "web-1", "web-2") == [None, "PDB"]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"per_workload": 1}, "WorkloadInFlight"),
        ({"per_namespace": 1}, "NamespaceInFlight"),
        ({"per_node": 1}, "NodeInFlight"),
        ({}, None),
    ],
)
def test_our_own_open_moves_are_under_way(fields: dict[str, Any], rule: str | None) -> None:
    opened = history(open=[open_move("web-1", destinations=["n9"])])
    refused = only(cluster(*WEBS, opened, limits=settings(**fields)), "web-2")
    assert (refused.rule if refused else None) == rule


@pytest.mark.parametrize(
    ("moved", "rule"),
    [
        (open_move("web-1"), "PDB"),
        (open_move("web-1", podUID="another"), None),
        (open_move("web-0"), None),
    ],
)
def test_the_pod_of_an_open_move_still_counts_against_its_budget(moved: Object, rule: str | None) -> None:
    one_left = budget(status={"disruptionsAllowed": 1})
    refused = only(cluster(*WEBS, one_left, history(open=[moved]), limits=FREE), "web-2")
    assert (refused.rule if refused else None) == rule


def test_a_pod_that_is_leaving_has_taken_of_its_budget_already() -> None:
    gone = replica("web-9", labels=APP, uid="uid-web-9", deleted="2027-01-15T08:10:00Z")
    one_left = budget(status={"disruptionsAllowed": 1})
    context = cluster(*WEBS, gone, one_left, history(open=[open_move("web-9")]), limits=FREE)
    assert only(context) is None


@pytest.mark.parametrize("where", ["n1", "unknown"])
def test_evictions_started_by_others_count(where: str) -> None:
    going = replica(
        "vm", node=where, labels=APP, annotations={"descheduler.alpha.kubernetes.io/eviction-in-progress": ""}
    )
    objects = (*WEBS, going, budget(status={"disruptionsAllowed": 1}))
    refused = only(cluster(*objects, limits=settings(per_workload=1)))
    assert refused is not None
    assert refused.rule == "PDB"
    without = only(cluster(*WEBS, going, limits=settings(per_workload=1)))
    assert without is not None
    assert without.rule == "WorkloadInFlight"


def test_replacements_of_one_plan_share_the_room_of_a_quota() -> None:
    pods = [replica(f"web-{n}", cpu="500m", labels=APP) for n in range(1, 5)]
    context = cluster(*pods, quota({"requests.cpu": "3"}, {"requests.cpu": "2"}), limits=FREE)
    assert spend_all(context, "web-1", "web-2", "web-3") == [None, None, "Quota"]
    unread = cluster(*pods, quota({"pods": "many"}, {}), limits=FREE)
    assert spend_all(unread, "web-1") == [None]


@pytest.mark.parametrize(
    ("status", "rule", "until"),
    [
        ({"givenUpUntil": "2027-01-15T09:00:00Z"}, "GivenUp", NOW + 3600),
        ({"past": [past_move("Same")]}, "WorkloadBackOff", NOW - 600 + 900),
        ({"past": [past_move("Same", blockUntil="2027-01-15T08:20:00Z")]}, "PairBackOff", NOW + 1200),
        ({"past": [past_move("Better")]}, None, None),
    ],
)
def test_an_eviction_history_can_forbid_moves_of_its_workload(
    status: dict[str, Any], rule: str | None, until: float | None
) -> None:
    refused = only(cluster(*WEBS, history(**status), limits=FREE))
    assert (refused and refused.rule, refused and refused.until) == (rule, until)


def test_the_history_of_an_earlier_workload_of_that_name_is_ignored() -> None:
    earlier = history(uid="another", givenUpUntil="2027-01-15T09:00:00Z")
    assert only(cluster(*WEBS, earlier, limits=FREE)) is None


def test_a_policy_keeps_its_quiet_hours() -> None:
    rest = QuietHours(TimeOfDay(7 * 60), TimeOfDay(9 * 60), policies=("underUtilisedNodes",))
    context = cluster(*WEBS, limits=settings(quiet_hours=(rest,)))
    refused = only(context)
    assert refused is not None
    assert (refused.rule, refused.until) == ("QuietHours", NOW + 3600)
    assert only(context, policy="repair") is None


def test_a_node_that_is_going_is_neither_left_nor_entered() -> None:
    cordoned = node("n2")
    cordoned["spec"] = {"unschedulable": True}
    context = cluster(*WEBS, cordoned, limits=FREE)
    assert spend_all(context, "web-1", destination=1) == ["DestinationLeaving"]
    assert spend_all(cluster(cordoned | {"metadata": {"name": "n0"}}, *WEBS, limits=FREE), "web-1") == [
        "SourceLeaving"
    ]


def test_the_defaults_let_one_pod_of_a_workload_go_at_a_time_and_ten_in_ten_minutes() -> None:
    pods = [replica(f"p-{n:02}", owned_by=owner("ReplicaSet", f"rs-{n}")) for n in range(12)]
    context = cluster(*pods)
    rules = spend_all(context, *(f"p-{n:02}" for n in range(12)))
    assert rules == [None] * 10 + ["NodeInFlight"] * 2
    assert spend_all(cluster(*WEBS), "web-1", "web-2") == [None, "WorkloadInFlight"]


def test_a_plan_leaves_one_ready_replica_where_it_is() -> None:
    context = context_of(*WEBS[:3], limits=FREE)
    assert spend_all(context, *THREE) == [None, None, "LastReady"]
    assert spend_all(cluster(*WEBS[:3], limits=FREE), *THREE) == [None, None, None]


def test_the_pod_of_an_open_move_is_no_ready_replica_to_count_on() -> None:
    context = context_of(*WEBS[:2], history(open=[open_move("web-1")]), limits=FREE)
    assert only(context, "web-2") == Refused("LastReady", "no other replica would be Ready")


TRAIN = {"podGroupName": "train"}
GANG = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "train", "namespace": "default", "uid": "pg"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}
MEMBERS = [
    replica(f"{of}-{n}", owned_by=owner("ReplicaSet", of), uid=f"uid-{of}-{n}", schedulingGroup=TRAIN)
    for of in ("a", "b")
    for n in (1, 2)
]


def test_a_plan_leaves_a_gang_as_many_pods_as_it_needs() -> None:
    context = context_of(*MEMBERS, GANG, limits=FREE)
    assert spend_all(context, "a-1", "b-1") == [None, "Gang"]
    careless = context_of(*MEMBERS, GANG, limits=FREE, protections=ProtectionSettings(gangs=False))
    assert spend_all(careless, "a-1", "b-1") == [None, None]


def test_the_pod_of_an_open_move_counts_as_lost_to_its_gang_while_it_is_ready() -> None:
    context = context_of(*MEMBERS, GANG, history("a", open=[open_move("a-1")]), limits=FREE)
    said = "schedulingGroup train: fewer than minCount 3 would be Ready"
    assert only(context, "b-1") == Refused("Gang", said)
    unready = MEMBERS[0] | {
        "metadata": {**MEMBERS[0]["metadata"], "name": "a-3", "uid": "uid-a-3"},
        "status": {},
    }
    opened = history("a", open=[open_move("a-3")])
    assert only(context_of(*MEMBERS, unready, GANG, opened, limits=FREE), "b-1") is None


most = st.none() | st.integers(0, 4)


@given(
    pods=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=14),
    caps=st.tuples(most, most, most, most),
    allowed=st.integers(0, 4),
    rate=st.integers(0, 6),
)
def test_no_plan_exceeds_a_limit(
    pods: list[tuple[int, int, bool]],
    caps: tuple[int | None, int | None, int | None, int | None],
    allowed: int,
    rate: int,
) -> None:
    """Counted anew from the accepted moves alone."""
    nodes = [node(f"n{number}") for number in (2, 3)]
    objects = [
        replica(
            f"p-{number:02}",
            node=f"n{at + 1}",
            owned_by=owner("ReplicaSet", f"rs-{of}"),
            labels={"app": f"a{guarded}"},
        )
        for number, (at, of, guarded) in enumerate(pods)
    ]
    per_cycle, per_node, per_namespace, per_workload = caps
    limits = settings(
        per_cycle=per_cycle,
        per_node=per_node,
        per_namespace=per_namespace,
        per_workload=per_workload,
        rates=DisruptionLimits((Rate((rate, 60.0)),)),
    )
    guard = budget(status={"disruptionsAllowed": allowed}, selector={"matchLabels": {"app": "aTrue"}})
    context = context_of(*objects, *nodes, guard, limits=limits)
    left, accepted = begin_limits(context), []
    for number, (at, of, guarded) in enumerate(pods):
        onto = (at + 1) % 3
        spent = left.spend(CandidateMove(place_of(context, f"p-{number:02}"), at, "underUtilisedNodes", onto))
        if isinstance(spent, Limits):
            accepted.append((at, of, guarded, onto))
            left = spent
    owners = Counter(of for _, of, _ in pods)
    for count, cap in (
        (len(accepted), per_cycle),
        (len(accepted), per_namespace),
        (len(accepted), rate),
        (sum(guarded for _, _, guarded, _ in accepted), allowed),
        *((count, per_node) for count in Counter(at for at, *_ in accepted).values()),
        *((count, per_node) for count in Counter(onto for *_, onto in accepted).values()),
        *((count, per_workload) for count in Counter(of for _, of, *_ in accepted).values()),
        *((count, owners[of] - 1) for of, count in Counter(of for _, of, *_ in accepted).items()),
    ):
        assert cap is None or count <= cap
