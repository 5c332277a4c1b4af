"""The policy file: safe defaults, and invalid values refused with their path."""

import ast
import inspect
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import fields

from reberth.config.settings import parse
from reberth.memory import backoff, rates
from reberth.values.errors import SettingsError
from rescheduler.model import guardrails, quiet_hours
from rescheduler.model.plan import PolicyName
from rescheduler.planning import cooldown, policy_file, worth
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.policies import better_preferences, broken_rules, proposal, under_utilised_nodes
from tests.support.repository import parse_source

HEAD = "apiVersion: reberth.dev/v1alpha1\nkind: ReschedulerPolicy\n"


def read(text: str) -> ReschedulerPolicy:
    return parse(f"{HEAD}{text}".encode(), ReschedulerPolicy)


def test_the_defaults_are_safe() -> None:
    settings = read("")
    assert (settings.mode, settings.level) == ("recommend", 2)
    assert settings == ReschedulerPolicy()
    assert not settings.policies.broken_rules.duplicates
    assert settings.limits_with_buffer().budget_reserve == 0.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("levle: 3", "level"),
        ("level: 6", "level"),
        ("mode: aply", "apply"),
        ("worth: -1", "worth"),
        ("policies: {underUtilizedNodes: {}}", "underUtilisedNodes"),
        ("policies: {underUtilisedNodes: {low: {cpu: 20%}}}", "low and high must name the same resources"),
        (
            "policies: {underUtilisedNodes: {low: {cpu: 90%}, high: {cpu: 20%}}}",
            "low must not be above high",
        ),
        ("policies: {underUtilisedNodes: {hotFor: 3}}", "hotFor"),
        ("policies: {brokenRules: {gain: lots}}", "gain"),
        ("prices: {lasting: soon}", "a duration such as"),
        ("limits: {perCycle: -1}", "perCycle"),
        ("policies: {brokenRules: {mode: aply}}", r"policies\.brokenRules\.mode .*did you mean apply"),
        (
            'limits: {quietHours: [{start: "08:00", end: "09:00", policies: [brokenRule]}]}',
            r"limits\.quietHours\[0\]\.policies\[0\] .*did you mean brokenRules",
        ),
    ],
)
def test_wrong_settings_are_refused_with_their_path_and_a_suggestion(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(text)


def test_quiet_hours_know_every_policy() -> None:
    names = {field.encode_name for field in fields(policy_file.PolicySettings)}
    assert names == set(get_args(PolicyName))


def test_around_the_mean_low_may_be_larger() -> None:
    text = "policies: {underUtilisedNodes: {aroundMean: true, low: {cpu: 20%}, high: {cpu: 10%}}}"
    assert read(text).policies.under_utilised_nodes.around_mean


def test_the_larger_buffer_counts() -> None:
    assert read("level: 5\nlimits: {budgetReserve: 30%}").limits_with_buffer().budget_reserve == 0.3
    assert read("level: 1\nlimits: {rateReserve: 30%}").limits_with_buffer().rate_reserve == 0.5
    assert read("level: 1\nbuffer: 0%").limits_with_buffer().rate_reserve == 0.0


@pytest.mark.parametrize(
    "module",
    [
        *(policy_file, better_preferences, broken_rules, proposal, under_utilised_nodes),
        *(guardrails, cooldown, worth, quiet_hours, rates, backoff),
    ],
)
def test_every_field_is_documented_in_place(module: object) -> None:
    """A field is followed by a text that says what it means."""
    tree = parse_source(Path(inspect.getfile(module)).read_text())  # type: ignore[arg-type] # a module
    sections = [each for each in tree.body if isinstance(each, ast.ClassDef) and _is_section(each)]
    assert sections
    for section in sections:
        for field, after in zip(section.body, [*section.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign):
                assert isinstance(after, ast.Expr), ast.unparse(field)


def _is_section(made: ast.ClassDef) -> bool:
    """The library's two are no Sections, since nothing else of it knows of settings."""
    return made.name in ("BackOff", "DisruptionLimits") or any(
        isinstance(base, ast.Name) and base.id.endswith("Section") for base in made.bases
    )
