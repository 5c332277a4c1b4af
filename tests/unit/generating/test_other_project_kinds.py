"""The table of kinds of other projects says in words what the rules check."""

from typing import Any

import msgspec
import pytest

from generating.other_project_kinds import put_kinds
from reberth.other_projects.table import OtherKind

PAGE = """\
before
<!-- The table is made by `make generate`, from reberth/other_projects/kinds.yaml. -->
old
<!-- The end of the table. -->
after
"""


def write(**known: Any) -> str:
    kind = msgspec.convert(
        {"kind": "example.com/Game", "documentation": "https://example.com", **known}, OtherKind
    )
    page = put_kinds(PAGE, [kind])
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")
    return next(line for line in page.splitlines() if line.startswith("| [example.com/Game]"))


@pytest.mark.parametrize(
    ("checks", "words"),
    [
        ([{"at": "a.b", "in": ["X", None, True, False]}], "`a.b` is X or missing or true or false"),
        ([{"condition": "Ready", "notIn": ["False"]}], "condition `Ready` is not False"),
        ([{"at": "a", "atLeast": "1"}, {"at": "a", "atLeast": "b.c"}], "`a` ≥ 1, and `a` ≥ `b.c`"),
        ([{"not": [{"current": "a"}]}], "not (`a` is the newest generation)"),
        (
            [{"any": [{"current": "a"}, {"at": "b", "differsFrom": "c"}]}],
            "`a` is the newest generation, or `b` is not `c`",
        ),
        (
            [
                {"current": "x"},
                {"any": [{"at": "a", "in": ["1"]}, {"all": [{"at": "b", "in": ["2"]}, {"current": "c"}]}]},
            ],
            "`x` is the newest generation, and (`a` is 1, or `b` is 2 with `c` is the newest generation)",
        ),
        ([], "its status does not tell: always Healthy, and no failover"),
    ],
)
def test_each_check_is_written_in_words(checks: Any, words: str) -> None:
    assert write(healthy=checks).split(" | ")[1] == words


def test_replicas_pods_and_rollouts_are_written() -> None:
    rollout = {
        "begun": [{"current": "a"}],
        "available": "status.b",
        "wanted": "spec.c",
        "maxUnavailable": "d",
        "default": "20%",
    }
    line = write(replicas="spec.c", templates=["spec.t"], replacesPods=True, rollout=rollout)
    assert line.split(" | ")[2:] == [
        "`spec.c`",
        "`spec.t`, replaced one by one",
        "`a` is the newest generation; it may leave out `d` (20% if not set) of `spec.c` by `status.b` |",
    ]


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="the marks of the table are missing"):
        put_kinds("a page", [])
