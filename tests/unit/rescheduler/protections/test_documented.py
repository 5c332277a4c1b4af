"""The docs name exactly the rules, annotations and settings that exist."""

import re

import pytest
from msgspec import structs

from reberth.config.settings import Section
from rescheduler.model.guardrails import BrakeSettings, LimitSettings, ProtectionSettings
from rescheduler.protections import RULES
from rescheduler.protections.annotations import DELETION_COST, LOCAL_VOLUMES, MARKS
from rescheduler.protections.ownership import GANG_KEYS
from tests.support.repository import DOCS

PAGE = (DOCS / "protections.md").read_text()


def rows(title: str) -> list[str]:
    """Give the first cells of the table under a title."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)


def test_the_documented_table_lists_the_protections_in_their_order() -> None:
    assert rows("Protections") == [f"`{rule.name}`" for rule in RULES]


@pytest.mark.parametrize("key", [*(mark.key for mark in MARKS), DELETION_COST, LOCAL_VOLUMES])
def test_every_mark_has_its_row(key: str) -> None:
    assert any(f"`{key}`" in row for row in rows("Marks of other tools"))


@pytest.mark.parametrize("key", GANG_KEYS)
def test_every_sign_of_a_group_is_named(key: str) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize(
    ("section", "kind"),
    [("protections", ProtectionSettings), ("limits", LimitSettings), ("brakes", BrakeSettings)],
)
def test_every_setting_is_named_and_no_other(section: str, kind: type[Section]) -> None:
    named = set(re.findall(rf"`{section}\.(\w+)", PAGE))
    assert named == {field.encode_name for field in structs.fields(kind)}
