"""Whom a refusal concerns: for every rule, in one table, which the page shows too."""

import re
from collections import Counter

import pytest

from reberth.records import RememberedRefusal
from reberth.values.refusal import Refused
from rescheduler.model import rules
from rescheduler.model.refusal_scopes import CONCERNED, Scope, find_key, find_scope, is_disproved
from tests.support.repository import DOCS

SECTION = (DOCS / "refusals.md").read_text().split("\n### What a refusal teaches\n")[1].split("\n## ")[0]


def test_the_table_has_every_rule_that_refuses_a_move_once() -> None:
    listed = Counter(rule for named in CONCERNED.values() for rule in named)
    assert set(listed) == set(rules.MOVE_RULES)
    assert {rule for rule, times in listed.items() if times > 1} == set()


def test_the_page_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\w+) \| .*? \| (.*) \|$", SECTION, re.MULTILINE)[1:]
    assert {scope: set(re.findall(r"`(\w+)`", named)) for scope, named in rows} == {
        str(scope): set(named) for scope, named in CONCERNED.items() if scope is not Scope.NOTHING
    }


@pytest.mark.parametrize(
    ("refused", "key"),
    [
        (Refused("PodMoved", ""), "uid-1"),
        (Refused("NodeMarked", ""), "n1"),
        (Refused("Forbidden", ""), "shop"),
        (Refused("WebhookFailing", "", key="hook.example"), "hook.example"),
        (Refused("EvictionRefused", "", key="hook.example"), ""),
        (Refused("NotSeen", ""), ""),
        (Refused("OfANewerVersion", ""), ""),
    ],
)
def test_the_key_is_what_a_refusal_concerns(refused: Refused, key: str) -> None:
    assert find_key(refused, "shop", uid="uid-1", node="n1") == key


def test_a_rule_of_a_newer_version_concerns_the_workload() -> None:
    assert find_scope("OfANewerVersion") is Scope.WORKLOAD


@pytest.mark.parametrize(
    ("rule", "key", "disproved"),
    [
        ("EvictionRefused", "", True),
        ("WebhookFailing", "hook.example", True),
        ("NotSeen", "", True),
        ("Forbidden", "shop", True),
        ("PodMoved", "uid-1", True),
        ("PodMoved", "uid-2", False),
        ("NodeMarked", "n1", True),
        ("NodeMarked", "n2", False),
    ],
)
def test_a_granted_eviction_says_nothing_about_other_pods_and_nodes(
    rule: str, key: str, *, disproved: bool
) -> None:
    noted = RememberedRefusal(rule, "", "", key)
    assert is_disproved(noted, uid="uid-1", node="n1") == disproved
