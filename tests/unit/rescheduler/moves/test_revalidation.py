"""The rules that can stop a move right before its eviction."""

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.identity import Signature
from reberth.cluster.snapshot import Snapshot
from reberth.memory.notes import ANNOTATION, Notes, compose_note, render_notes
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import (
    Node,
    OpenMove,
    Pod,
)
from reberth.values.duration import Duration
from reberth.values.pod_limit import PodLimit
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import NOT_WATCHED, ClusterHealth, find_brakes
from rescheduler.budgets.limits import CandidateMove, begin_limits
from rescheduler.model.guardrails import LimitSettings, ProtectionSettings
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.moves.revalidation import (
    NOT_MIRRORED,
    Reasons,
    Revalidation,
    choose_usable,
    refuse_by_budgets,
)
from rescheduler.observe.rule_context import RuleContext
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.protections import refuse_protected
from tests.support import builders
from tests.support.memory.objects import NOW, WEB
from tests.support.rescheduler.guardrails import context_of, history, open_move, past_move, place_of, replica
from tests.support.rescheduler.plans import MODEL, VERSION

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def web(**fields: Any) -> Pod:
    given = {"node": "n1", "labels": {"app": "web"}, "status": READY} | fields
    return builders.as_record(Pod, builders.pod("web-0", **given))


ALLOWED = {"disruptionsAllowed": 1, "observedGeneration": 1}
EXHAUSTED = {"disruptionsAllowed": 0, "observedGeneration": 1}


def budget(status: Any, name: str = "web") -> dict[str, Any]:
    return builders.pdb(name, "web", min_available=1, status=status)


LABELS = {"app": "web"}


def guard(*objects: Any) -> Snapshot:
    """A cluster of two replicas of one workload on n1, and another node."""
    replicas = [replica("web-1", labels=LABELS, uid="uid-web-1"), replica("web-2", labels=LABELS)]
    return context_of(builders.node("n2"), *replicas, *objects).snapshot


@pytest.mark.parametrize(
    ("budgets", "rule"),
    [
        ([], None),
        ([budget(ALLOWED)], None),
        ([budget(EXHAUSTED)], "PDB"),
        ([budget(ALLOWED, "a"), budget(ALLOWED, "b")], "SeveralBudgets"),
    ],
)
def test_an_eviction_that_a_person_requested_is_checked_against_the_budgets(
    budgets: list[Any], rule: str | None
) -> None:
    refused = refuse_by_budgets("uid-web-1", guard(*budgets))
    assert (refused.rule if refused else None) == rule


def test_a_pod_that_is_not_cached_is_refused() -> None:
    assert refuse_by_budgets("uid-new", guard()) == NOT_MIRRORED
    assert ask_rules(guard(), move=opened(podUID="uid-new")) == NOT_MIRRORED
    assert ask_rules(guard(), destination="n9") == NOT_MIRRORED


def opened(**fields: Any) -> OpenMove:
    return msgspec.convert(open_move(policy="underUtilisedNodes", **fields), OpenMove)


def ask_rules(
    snapshot: Snapshot,
    *,
    move: OpenMove | None = None,
    destination: str = "n2",
    policy: ReschedulerPolicy | None = None,
    health: ClusterHealth = NOT_WATCHED,
) -> Refused | None:
    return revalidate(snapshot, policy, health).refuse(move or opened(), destination)


def revalidate(
    snapshot: Snapshot, policy: ReschedulerPolicy | None = None, health: ClusterHealth = NOT_WATCHED
) -> Revalidation:
    return Revalidation(
        snapshot,
        policy=policy or ReschedulerPolicy(protections=ProtectionSettings(min_age=Duration(0))),
        schedulers=frozenset({"default-scheduler"}),
        health=health,
    )


def debited(*moves: str) -> dict[str, Any]:
    made = {"time": "2027-01-15T07:58:00.000000Z", "state": "Tentative"}
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "MoveLedger",
        "metadata": {"name": "default"},
        "status": {"debits": [{"move": move, **made} for move in moves]},
    }


ONE_AN_HOUR = DisruptionLimits(cluster=(Rate((1, 3600.0)),))
LIMITED = ReschedulerPolicy(
    level=5,
    protections=ProtectionSettings(min_age=Duration(0)),
    limits=LimitSettings(rates=ONE_AN_HOUR),
)


def test_a_move_does_not_count_against_itself() -> None:
    mine = history(open=[open_move()])
    assert ask_rules(guard(mine, debited("m-1")), policy=LIMITED) is None


@pytest.mark.parametrize(
    ("objects", "changes", "rule"),
    [
        ((history(open=[open_move(), open_move("web-2", id="m-2")]),), {}, "WorkloadInFlight"),
        ((debited("m-1", "m-2"),), {"policy": LIMITED}, "ClusterRate"),
        ((), {"policy": ReschedulerPolicy(protections=ProtectionSettings(min_replicas=9))}, "MinReplicas"),
        ((builders.node("n3", unschedulable=True),), {"destination": "n3"}, "DestinationLeaving"),
    ],
)
def test_the_rules_of_the_plan_are_checked_again(
    objects: tuple[Any, ...], changes: dict[str, Any], rule: str
) -> None:
    refused = ask_rules(guard(*objects), **changes)
    assert refused is not None
    assert refused.rule == rule


def test_a_brake_stops_a_move_that_is_already_open() -> None:
    sick = [builders.node(f"sick-{number}") for number in range(3)]
    for each in sick:
        each["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    refused = ask_rules(guard(*sick))
    assert refused is not None
    assert refused.rule == "NodesNotReady"


ASTRAY = history(
    past=[past_move("Better", f"2027-01-15T07:{n}:00Z", asForecast=n % 6 > 0) for n in range(20, 32)],
)


@pytest.mark.parametrize(("drawn", "rule"), [(True, "ForecastAstray"), (False, None)])
def test_landings_brake_a_move_as_they_brake_the_plan(drawn: bool, rule: str | None) -> None:  # noqa: FBT001 - a column of the table
    """A plan that makes moves which this check then refuses would begin and undo them again and again."""
    snapshot, health = guard(ASTRAY), ClusterHealth(drawn=drawn)
    context = RuleContext(snapshot)
    planned = find_brakes(context, health).refuse(place_of(context), context)
    assert (planned.rule if planned else None) == rule
    assert ask_rules(snapshot, health=health) == planned


def draw_fleet(dice: Random) -> tuple[list[dict[str, Any]], list[OpenMove]]:
    """A cluster full of limits that are nearly reached, and moves that are about to be made at once."""
    apps, nodes = [f"app{number}" for number in range(dice.randint(1, 3))], ["n1", "n2", "n3"]
    objects = [builders.node(each, annotations=_note(dice, each)) for each in nodes[1:]]
    moves: list[OpenMove] = []
    for app in apps:
        uid = f"uid-of-replicaset-{app}"
        for number in range(dice.randint(2, 5)):
            pod, where = f"{app}-{number}", dice.choice(nodes)
            is_pending = dice.random() < 0.15
            objects.append(
                replica(
                    pod,
                    labels={"app": app},
                    node=None if is_pending else where,
                    uid=f"uid-{pod}",
                    owned_by=builders.owner("ReplicaSet", app),
                    created="2027-01-15T07:30:00Z",
                    status={"phase": "Pending"} if is_pending else READY if dice.random() < 0.9 else {},
                )
            )
            if not is_pending and dice.random() < 0.6:
                to = dice.choice([each for each in nodes if each != where])
                fields = {"podUID": f"uid-{pod}", "controllerUID": uid, "from": where, "destinations": [to]}
                planned = f"2027-01-15T07:{dice.choice((20, 58))}:00.000000Z"
                raw = open_move(pod, id=f"m-{pod}", policy="underUtilisedNodes", plannedAt=planned, **fields)
                moves.append(msgspec.convert(raw, OpenMove))
        if dice.random() < 0.5:
            status = {"disruptionsAllowed": dice.randint(0, 2), "observedGeneration": 1}
            objects.append(builders.pdb(app, app, min_available=1, status=status))
    objects.append(debited(*(move.id for move in moves if dice.random() < 0.9), "other"))
    dice.shuffle(moves)
    return objects, moves


def _note(dice: Random, node: str) -> dict[str, str]:
    del node
    held = [compose_note(WEB, f"old-{n}", policy="p", reason="", now=NOW) for n in range(dice.choice((0, 1)))]
    return {ANNOTATION: render_notes(Notes(tuple(held))) or ""} if held else {}


def write_histories(dice: Random, objects: list[Any], moves: Sequence[OpenMove]) -> list[Any]:
    """The histories of all workloads, with these moves open; some have fruitless or evicted moves, too."""
    apps = sorted({each["metadata"]["name"].rpartition("-")[0] for each in objects if each["kind"] == "Pod"})
    written = []
    for app in apps:
        mine = [msgspec.to_builtins(move) for move in moves if move.pod.rpartition("-")[0] == app]
        evicted = open_move("gone", id=f"e-{app}", controllerUID=f"uid-of-replicaset-{app}", phase="Evicted")
        evicted["evictedAt"] = "2027-01-15T07:25:00.000000Z"
        earlier = [evicted] if dice.random() < 0.2 else []
        past = [past_move("Same")] if dice.random() < 0.1 else []
        if mine or earlier or past:
            written.append(history(app, open=[*earlier, *mine], past=past))
    return written


def check_alone(objects: list[Any], move: OpenMove, policy: ReschedulerPolicy) -> Refused | None:
    """Check one move by itself, on a cluster from which it and its debit were taken by hand."""
    left = copy.deepcopy(objects)
    for each in left:
        status = each.get("status", {})
        for name, key in (("open", "id"), ("debits", "move")):
            if name in status:
                status[name] = [one for one in status[name] if one[key] != move.id]
    context = context_of(
        *left, protections=policy.protections, limits=policy.limits_with_buffer(), brakes=policy.brakes
    )
    nodes, place = context.snapshot.nodes.index, place_of(context, move.pod)
    candidate = CandidateMove(place, nodes[move.from_], move.policy, nodes[(move.destinations or ())[0]])
    return (
        find_brakes(context).refuse(place, context)
        or refuse_protected(place, context)
        or begin_limits(context).refuse(candidate)
    )


@pytest.mark.parametrize("seed", range(300))
def test_moves_that_are_checked_together_get_the_answers_that_they_get_one_by_one(seed: int) -> None:
    """The cache may not have seen the histories of some; those before a move count for it all the same."""
    dice = Random(seed)
    objects, moves = draw_fleet(dice)
    policy = ReschedulerPolicy(
        level=5,
        protections=ProtectionSettings(min_age=Duration(0), last_ready=dice.random() < 0.5),
        limits=LimitSettings(
            per_workload=dice.choice((PodLimit(1), PodLimit(2), None)),
            per_namespace=dice.choice((PodLimit(2), PodLimit(4), None)),
            per_node=dice.choice((1, 2, None)),
            rates=DisruptionLimits(cluster=(Rate((dice.randint(1, 9), 3600.0)),)),
        ),
    )
    seen = [move for move in moves if dice.random() < 0.6]
    state = dice.getstate()
    together = revalidate(context_of(*objects, *write_histories(dice, objects, seen)).snapshot, policy)
    for number, move in enumerate(moves):
        said = together.refuse(move, (move.destinations or ())[0])
        together.count_open(move)
        dice.setstate(state)
        opened = [*seen, *(one for one in moves[: number + 1] if one not in seen)]
        alone = check_alone([*objects, *write_histories(dice, objects, opened)], move, policy)
        assert said == alone


def test_a_gang_spares_no_more_pods_to_moves_that_are_checked_together() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default", "uid": "pg"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    members = [
        replica(
            f"{of}-{n}",
            owned_by=builders.owner("ReplicaSet", of),
            uid=f"uid-{of}-{n}",
            schedulingGroup={"podGroupName": "train"},
        )
        for of in ("a", "b")
        for n in (1, 2)
    ]
    together = revalidate(context_of(builders.node("n2"), *members, group).snapshot)
    first, second = (opened(id=f"m-{of}", pod=f"{of}-1", podUID=f"uid-{of}-1") for of in ("a", "b"))
    assert together.refuse(first, "n2") is None
    together.count_open(first)
    refused = together.refuse(second, "n2")
    assert refused is not None
    assert refused.rule == "Gang"


RED = {"key": "team", "value": "red", "effect": "NoSchedule"}
RED_SINCE = PlanMemory(tainted_since={"n1": {"team=red:NoSchedule": NOW - 301}})


def ask_policy(
    policy: str, memory: PlanMemory | None = RED_SINCE, *, pod: str = "uid-web-1", taints: Any = (RED,)
) -> str | None:
    """Ask a policy about a pod of n1, whose cpu is nearly all requested and which may have taints."""
    busy = [replica(f"busy-{number}", uid=f"uid-busy-{number}", cpu="1") for number in range(7)]
    nodes = [builders.node("n1", cpu="8", taints=list(taints)), builders.node("n2")]
    seen = load_objects([*nodes, replica("web-1", uid="uid-web-1"), *busy], now=NOW, version=VERSION)
    move = msgspec.convert(open_move(policy=policy, podUID=pod), OpenMove)
    refused = Reasons(seen.snapshot, memory, policy=ReschedulerPolicy(), model=MODEL).refuse(
        move, resumed=False
    )
    return refused.rule if refused else None


def test_the_policy_of_a_move_must_still_have_a_reason() -> None:
    assert ask_policy("brokenRules") is None
    assert ask_policy("brokenRules", taints=()) == "ReasonGone"
    assert ask_policy("betterPreferences") == "ReasonGone"
    assert ask_policy("brokenRules", pod="uid-new") == "NotMirrored"
    assert ask_policy("of an earlier version") == "ReasonGone"


def test_what_takes_time_is_remembered_and_without_a_memory_it_has_lasted() -> None:
    assert ask_policy("brokenRules", PlanMemory()) == "ReasonGone"
    assert ask_policy("brokenRules", None) is None
    assert ask_policy("underUtilisedNodes", PlanMemory()) == "ReasonGone"
    assert ask_policy("underUtilisedNodes", None) is None


OTHER = replace(WEB, controller=replace(WEB.controller, uid="uid-other"))


def annotation_for(who: Signature) -> str:
    note = compose_note(who, "m0", policy="p", reason="r", now=NOW)
    return render_notes(Notes(ours=(note,))) or ""


NODES = {
    name: builders.as_record(Node, builders.node(name, **fields))
    for name, fields in {
        "n1": {},
        "n2": {},
        "off": {"unschedulable": True},
        "new": {"labels": {"karpenter.sh/nodepool": "a"}},
        "noted": {"annotations": {ANNOTATION: annotation_for(WEB)}},
        "noted-for-another": {"annotations": {ANNOTATION: annotation_for(OTHER)}},
        "spoilt": {"annotations": {ANNOTATION: "not JSON"}},
    }.items()
}


def choose(*names: str, source: str = "s", now: float = NOW) -> tuple[str, ...] | Refused:
    return choose_usable(names, source=source, who=WEB, find=NODES.get, now=now)


def test_usable_destinations_keep_their_order() -> None:
    assert choose("n2", "off", "n1", "new", "n3") == ("n2", "n1")


def test_each_unusable_node_is_named_with_its_reason() -> None:
    assert choose("n1", "off", "new", "n3", "noted", source="n1") == Refused(
        "NoFeasibleDestination",
        "n1: the pod is already there; off: leaving (unschedulable); "
        "new: young (karpenter.sh/initialized is missing); n3: no such node; "
        "noted: a note keeps the workload away until 2026-11-18T13:00:00Z",
    )
    assert choose(source="n1") == Refused("NoFeasibleDestination", "no destination was given")


def test_notes_that_are_expired_for_other_workloads_or_unreadable_keep_no_pod_away() -> None:
    assert choose("noted", now=NOW + 3600) == ("noted",)
    assert choose("noted-for-another", "spoilt") == ("noted-for-another", "spoilt")
