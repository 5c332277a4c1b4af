"""What forbids a move."""

from typing import Any

import pytest
from msgspec.structs import replace

from reberth.avoiding import ANNOTATION, Notes, compose_note, render_notes
from reberth.records import Node, Pod, PodDisruptionBudget
from reberth.refusals import Refused
from reberth.signature import Signature
from rescheduler.validating import (
    FINISHED,
    NOT_BOUND,
    TERMINATING,
    choose_usable,
    refuse_by_budgets,
    refuse_pod,
)
from tests import builders
from tests.reberth.remembering import NOW, WEB

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def web(**fields: Any) -> Pod:
    given = {"node": "n1", "labels": {"app": "web"}, "status": READY} | fields
    return builders.as_record(Pod, builders.pod("web-0", **given))


def budget(name: str = "b", *, allowed: int = 0, generation: int = 1, **fields: Any) -> PodDisruptionBudget:
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed} | fields.pop("status", {})
    made = builders.pdb(name, "web", min_available=1, status=status, **fields)
    made["metadata"]["generation"] = generation
    return builders.as_record(PodDisruptionBudget, made)


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        (web(), None),
        (web(deleted="2026-11-18T12:00:00Z"), TERMINATING),
        (web(phase="Succeeded"), FINISHED),
        (web(phase="Failed"), FINISHED),
        (web(node=None), NOT_BOUND),
    ],
)
def test_a_pod_is_moved_only_while_it_runs_somewhere(pod: Pod, refused: Refused | None) -> None:
    assert refuse_pod(pod) == refused


HEALTHY = {"currentHealthy": 2, "desiredHealthy": 2}
SICK = {"currentHealthy": 1, "desiredHealthy": 2}
NONE_WANTED = {"currentHealthy": 0, "desiredHealthy": 0}


@pytest.mark.parametrize(
    ("pod", "budgets", "rule"),
    [
        (web(), [], None),
        (web(), [budget(allowed=1)], None),
        (web(), [budget()], "BudgetExhausted"),
        (web(), [budget(allowed=-1)], "BudgetExhausted"),
        (web(), [budget(allowed=1, generation=2)], "BudgetUnobserved"),
        (web(), [budget("b", allowed=1), budget("c", allowed=1)], "SeveralBudgets"),
        (web(labels={"app": "api"}), [budget()], None),
        (web(phase="Pending"), [budget(), budget("c")], None),
        (web(status={}), [budget(status=HEALTHY)], None),
        (web(status={}), [budget(status=SICK)], "BudgetExhausted"),
        (web(status={}), [budget(status=NONE_WANTED)], "BudgetExhausted"),
        (web(status={}), [budget(status=SICK, unhealthyPodEvictionPolicy="AlwaysAllow")], None),
        (web(), [budget(status=SICK, unhealthyPodEvictionPolicy="AlwaysAllow")], "BudgetExhausted"),
    ],
)
def test_a_budget_forbids_what_the_eviction_api_would_refuse(
    pod: Pod, budgets: list[PodDisruptionBudget], rule: str | None
) -> None:
    refused = refuse_by_budgets(pod, budgets)
    assert (refused.rule if refused else None) == rule


def test_a_budget_is_named() -> None:
    assert refuse_by_budgets(web(), [budget("web-budget")]) == Refused(
        "BudgetExhausted", "PodDisruptionBudget web-budget allows 0"
    )


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


def test_each_node_that_will_not_do_is_said_with_its_reason() -> None:
    assert choose("n1", "off", "new", "n3", "noted", source="n1") == Refused(
        "NoFeasibleDestination",
        "n1: the pod is there; off: leaving (unschedulable); "
        "new: young (karpenter.sh/initialized is missing); n3: no such node; "
        "noted: a note keeps the workload away until 2026-11-18T13:00:00Z",
    )
    assert choose(source="n1") == Refused("NoFeasibleDestination", "no node to go to")


def test_notes_that_are_over_for_others_or_unreadable_keep_nobody_away() -> None:
    assert choose("noted", now=NOW + 3600) == ("noted",)
    assert choose("noted-for-another", "spoilt") == ("noted-for-another", "spoilt")
