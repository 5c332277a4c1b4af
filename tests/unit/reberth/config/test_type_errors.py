from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from reberth.config.settings import Section
from reberth.config.type_errors import find_faults
from reberth.config.yaml_document import read_document
from reberth.values.duration import Duration, Percentage


class Nodes(Section, frozen=True):
    thresholds: dict[str, Percentage] = msgspec.field(default_factory=dict)
    number: Annotated[int, Meta(ge=0, le=10)] = 0


class Balance(Section, frozen=True, tag_field="name", tag="Balance"):
    under_utilised_nodes: Nodes
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


class Duplicates(Section, frozen=True, tag_field="name", tag="Duplicates"):
    every: Duration = Duration(30)


class Everything(Section, frozen=True):
    policies: tuple[Balance | Duplicates, ...] = ()
    mode: Literal["off", "prefer", "require"] = "off"
    level: Literal[1, 2] = 1
    dry_run: bool = False
    limit: Annotated[int, Meta(ge=1, description="most at once")] | None = None
    names: Annotated[list[Annotated[str, Meta(pattern="^[a-z]+$")]], Meta(min_length=1)] | None = None
    rate: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    step: Annotated[int, Meta(multiple_of=5)] = 5
    one: Nodes | None = None
    mixed: int | str = 0
    keyed: dict[Annotated[str, Meta(max_length=3)], int] = msgspec.field(default_factory=dict)


def told(content: str, kind: Any = Everything) -> list[str]:
    root = read_document(content.encode()).root
    assert root is not None
    return [str(fault) for fault in find_faults(root, kind)]


def test_a_valid_document_has_no_fault() -> None:
    assert told("{mode: off, dryRun: true, limit: null, names: [a], one: {thresholds: {cpu: 10%}}}") == []


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("[]", "line 1: expected a mapping, found a list of length 0"),
        ("abc", 'line 1: expected a mapping, found "abc"'),
        ("mode: of", 'mode (line 1): expected one of off, prefer, require, found "of", did you mean off?'),
        ("mode: true", "mode (line 1): expected one of off, prefer, require, found true"),
        ("level: 3", "level (line 1): expected one of 1, 2, found 3"),
        ("dryRun: yes", 'dryRun (line 1): expected true or false, found "yes", did you mean true?'),
        ("dryRun: off", 'dryRun (line 1): expected true or false, found "off", did you mean false?'),
        ("dryRun: 1", "dryRun (line 1): expected true or false, found 1"),
        ("dryRun: [1]", "dryRun (line 1): expected true or false, found a list of length 1"),
        ("limit: 0", "limit (line 1): expected a whole number at least 1, found 0"),
        ("limit: 1.5", "limit (line 1): expected a whole number at least 1, found 1.5"),
        ("limit: true", "limit (line 1): expected a whole number at least 1, found true"),
        ("rate: 1", "rate (line 1): expected a number above 0 and below 1, found 1"),
        ("rate: .nan", 'rate (line 1): expected a number above 0 and below 1, found ".nan"'),
        ("step: 7", "step (line 1): expected a whole number divisible by 5, found 7"),
        ("names: []", "names (line 1): expected a list of length at least 1, found a list of length 0"),
        ("names: [a, B]", 'names[1] (line 1): expected text matching ^[a-z]+$, found "B"'),
        ("one: 3", "one (line 1): expected a mapping, found 3"),
        (
            "one: {number: 11}",
            "one.number (line 1): expected a whole number at least 0 and at most 10, found 11",
        ),
        ("one:\n  tresholds: {}", "one.tresholds (line 2): unknown field, did you mean thresholds?"),
        ("dry_run: true", "dry_run (line 1): unknown field, did you mean dryRun?"),
        ("xyz: true", "xyz (line 1): unknown field"),
        (
            "one: {thresholds: {cpu: 10}}",
            "one.thresholds.cpu (line 1): expected a percentage from 0% to 100%, found 10",
        ),
        (
            'one: {thresholds: {"a.b/c": x}}',
            'one.thresholds["a.b/c"] (line 1): expected a percentage from 0% to 100%, found "x"',
        ),
        ("mixed: [1]", "mixed (line 1): expected a whole number or text, found a list of length 1"),
        ("mixed: {a: 1}", "mixed (line 1): expected a whole number or text, found a mapping"),
        ("keyed: {abcd: 1}", "keyed (line 1): Expected `str` of length <= 3"),
        ("policies:", "policies (line 1): expected a list, found nothing"),
        ("policies: [7]", "policies[0] (line 1): expected a mapping, found 7"),
    ],
)
def test_a_fault_names_the_field_and_the_expected_and_found_value(content: str, fault: str) -> None:
    assert told(content) == [fault]


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (
            "{name: Duplicate}",
            '.name (line 2): expected one of Balance, Duplicates, found "Duplicate", did you mean',
        ),
        ("{every: 3s}", ".name (line 2): is missing, expected one of Balance, Duplicates"),
        ("{name: [x]}", ".name (line 2): expected one of Balance, Duplicates, found a list of length 1"),
        ("{name: Duplicates, every: 3}", ".every (line 2): expected a duration such as 30s, 1h30m or 250ms"),
        ("{name: Balance}", ".underUtilisedNodes (line 2): is missing, expected a mapping"),
        (
            "{name: Balance, underUtilisedNodes: {threshold: 1}}",
            ".underUtilisedNodes.threshold (line 2): unknown field, did you mean thresholds?",
        ),
        ("{name: Balance, underUtilisedNodes: {}, low: 3}", " (line 2): low is above high"),
    ],
)
def test_a_variant_is_judged_by_the_struct_that_its_tag_names(policy: str, fault: str) -> None:
    (found,) = told(f"policies:\n- {policy}")
    assert found.startswith(f"policies[0]{fault}")


def test_all_faults_of_a_document_are_found_at_once() -> None:
    found = told("{mode: of, limit: 0, policies: [{name: Duplicates, every: x}, {name: X}], zzz: 1}")
    assert [fault.split(" ")[0] for fault in found] == [
        "mode", "limit", "policies[0].every", "policies[1].name", "zzz",
    ]  # fmt: skip


def test_a_long_value_is_cut_and_a_wild_one_stays_on_its_line() -> None:
    (cut,) = told(f"limit: {'x' * 500}")
    (wild,) = told('limit: "a\\nb\\e[31m"')
    assert len(cut) < 150
    assert wild.isprintable()


def test_an_unsupported_type_is_still_refused() -> None:
    assert told("[]", bytes) == ["line 1: expected another value, found a list of length 0"]


def test_bounds_of_a_whole_mapping_do_not_hide_the_faults_of_its_parts() -> None:
    assert told("{a: x}", Annotated[dict[str, int], Meta(min_length=1)]) == [
        'a (line 1): expected a whole number, found "x"'
    ]
