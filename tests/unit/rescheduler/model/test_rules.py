"""Every rule that refuses a move is declared once, and the docs list all of them."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rescheduler import protections
from rescheduler.model import rules
from tests.support.repository import DOCS, ROOT, parse_source

GROUPS = {
    "Protections": rules.PROTECTIONS,
    "Nodes": rules.NODES,
    "Limits": rules.LIMITS,
    "Worth": rules.WORTH,
    "Brakes": rules.BRAKES,
    "Pauses": rules.PAUSES,
    "Execution": rules.EXECUTION,
    "Commands": rules.COMMANDS,
}
DECLARED = {name for group in GROUPS.values() for name in group}
# Of scores and of the extender's answers: these refuse no move.
NOT_OF_MOVES = {
    *("StrictlyNoted", "Missing", "NotANumber", "OutOfRange", "BadValidity", "ValidForTooLong"),
    "BadScoreWeights",
}
# What makes a refusal, and which of its arguments is the rule. The private ones pass it on.
MAKERS = {
    "Refused": 0,
    "Charge": 0,
    "TemplateRule": 0,
    "PodRule": 0,
    "_count": 0,
    "_refused": 0,
    "_refuse_signature": 2,
}
PAGE = (DOCS / "refusals.md").read_text()


def list_sources() -> list[Path]:
    return sorted(path for name in ("rescheduler", "reberth") for path in (ROOT / name).rglob("*.py"))


def evaluate(expression: ast.expr, module: Any) -> Iterator[str]:
    """Give the names that an argument may be; what a function was given is checked where it comes from."""
    if isinstance(expression, ast.IfExp):
        yield from evaluate(expression.body, module)
        yield from evaluate(expression.orelse, module)
        return
    try:
        yield eval(compile(ast.Expression(expression), "rule", "eval"), vars(module))
    except NameError:
        return


def list_used_rules() -> Iterator[tuple[str, str]]:
    """Give each rule that the source refuses by, with its place."""
    for path in list_sources():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        module = importlib.import_module(name.removesuffix(".__init__"))
        for call in ast.walk(parse_source(path.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MAKERS:
                place = MAKERS[call.func.id]
                for rule in evaluate(call.args[place], module) if len(call.args) > place else ():
                    yield rule, f"{path.relative_to(ROOT)}:{call.lineno}"


def list_texts() -> set[str]:
    """Give all texts in the source but those that declare the rules."""
    return {
        node.value
        for path in list_sources()
        if path != Path(rules.__file__)
        for node in ast.walk(parse_source(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_rule_that_the_source_refuses_by_is_declared() -> None:
    used = list(list_used_rules())
    assert len(used) > 100
    assert [(rule, place) for rule, place in used if rule not in DECLARED | NOT_OF_MOVES] == []


def test_every_declared_rule_is_used() -> None:
    assert DECLARED - list_texts() == set()


def test_a_rule_is_declared_once() -> None:
    assert sum(len(group) for group in GROUPS.values()) == len(DECLARED)


def test_the_protections_are_checked_in_the_order_in_which_they_are_declared() -> None:
    assert [rule.name for rule in protections.RULES] == list(rules.PROTECTIONS)


@pytest.mark.parametrize("title", GROUPS)
def test_the_documented_rules_of_a_group_match_the_code(title: str) -> None:
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE) == list(GROUPS[title].items())


def test_the_page_has_no_other_group() -> None:
    assert re.findall("^## (.*)$", PAGE, re.MULTILINE) == list(GROUPS)
