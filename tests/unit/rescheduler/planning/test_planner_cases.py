"""The cases in tests/cases: the expected plan, and no further move after it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reberth.config.settings import load
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.plans import NOW, ROOT, WITH_EXTENDER, carry_out, make_plan, run_command

CASES = sorted((ROOT / "tests" / "cases").iterdir())
HOURS = 3600.0
POLICIES = ("brokenRules", "betterPreferences", "underUtilisedNodes")

# What each plan must come to: moves by pod, and the rules that refused others.
EXPECTED: dict[str, tuple[dict[str, str], set[str]]] = {
    "a10-terminating-pod-marked-for-eviction": ({}, {"Terminating"}),
    "a2-preferred-node-full": ({}, {"NoBetterNode"}),
    "a2-preferred-node-with-room": ({"shop/web-1": "ssd-1"}, set()),
    "a3-pod-too-large-for-every-target": ({}, {"NoBetterNode"}),
    "a4-room-for-one-of-four": ({"shop/web-1": "ssd-1"}, {"NoFeasibleNode"}),
    "a5-zones-balanced-by-protected-pods": ({}, set()),
    "a6-anti-affinity-across-namespaces": ({"green/web-0": "n-2"}, set()),
    "a7-one-toleration-for-two-taints": ({"shop/web-1": "n-2"}, set()),
    "a8-budget-allows-nothing": ({}, {"PDB"}),
}


def ask(case: Path, *arguments: str) -> Any:
    """What the black box answers, as the case has it."""
    files = ("--cluster", case / "objects.yaml", "--policy", case / "policy.yaml")
    known = ("--scheduler-config", WITH_EXTENDER, "--now", "2026-11-18T12:00:00Z")
    return yaml.safe_load(run_command(*files, *known, "-o", "yaml", *arguments))


def test_every_case_is_expected() -> None:
    assert [case.name for case in CASES] == sorted(EXPECTED)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_is_the_expected_one(case: Path) -> None:
    found = ask(case)
    moves, rules = EXPECTED[case.name]
    assert {move["pod"]: move["destinations"][0]["node"] for move in found["moves"]} == moves
    assert {refused["rule"] for refused in found["refused"]} == rules
    assert found == yaml.safe_load((case / "plan.yaml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_after_the_plan_is_carried_out_all_is_quiet(case: Path) -> None:
    objects = list(yaml.safe_load_all((case / "objects.yaml").read_text()))
    settings = load(case / "policy.yaml", ReschedulerPolicy)
    made, memory = make_plan(objects, settings)
    after = carry_out(objects, made)
    for later in (0.0, 1 * HOURS, 24 * HOURS, 72 * HOURS):
        again, memory = make_plan(after, settings, memory, now=NOW + later)
        forgetful, _ = make_plan(after, settings, now=NOW + later)
        assert not again.moves
        assert not forgetful.moves


def test_a_blocked_budget_is_named_by_the_black_box_and_nothing_is_promised() -> None:
    found = ask(ROOT / "tests" / "cases" / "a8-budget-allows-nothing")
    assert found["moves"] == []
    assert len(found["refused"]) == 14
    assert {refused["reason"] for refused in found["refused"]} == {
        "PDB web allows 0: it needs 14 healthy pods and has 14"
    }


def test_why_lists_the_verdict_of_every_rule_and_policy() -> None:
    found = ask(ROOT / "tests" / "cases" / "a8-budget-allows-nothing", "--why", "shop/web-01")
    against = [word["who"] for word in (*found["rules"], *found["plan"]) if word["against"]]
    assert against == [*(f"limits of {name}" for name in POLICIES), "underUtilisedNodes"]
    assert [word["who"] for word in found["policies"]] == list(POLICIES)


def test_a_memory_is_a_plain_file(tmp_path: Path) -> None:
    case = ROOT / "tests" / "cases" / "a2-preferred-node-with-room"
    memory = tmp_path / "memory.json"
    first = ask(case, "--remember", str(memory))
    assert ask(case, "--memory", str(memory)) == first
    kept = msgspec.json.decode(memory.read_bytes(), type=PlanMemory)
    assert [moved.left for moved in kept.moved] == ["hdd-1"]
