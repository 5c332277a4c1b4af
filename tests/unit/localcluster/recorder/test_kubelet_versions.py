"""The page's table of differences between two versions of the kubelet is what the recordings say."""

import re

from tests.live.support.kubelet_cases import CASES
from tests.live.support.kubelet_versions import Difference, compare, read_lines
from tests.support.repository import DOCS, ROOT

ONE, OTHER = (
    read_lines(ROOT / f"tests/support/kubelet_versions/{version}.jsonl") for version in ("1.36.3", "1.37.1")
)
PAGE = (DOCS / "localcluster.md").read_text()
TABLE = PAGE.partition("### Kubernetes 1.37.1 beside 1.36.3")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (1\.\S+) \| `([^`]+)` \| (.*?) \| (.*?) \| (.+) \|$", TABLE, re.MULTILINE)


def read_cases(text: str) -> list[str]:
    """`all`, `all but A, B`, or the cases themselves."""
    named = re.findall(r"c\d\d-[\w-]+", text)
    return [case for case in sorted(CASES) if case not in named] if text.startswith("all") else sorted(named)


def test_every_case_is_recorded_for_both_versions() -> None:
    assert ONE.keys() == OTHER.keys() == CASES.keys()
    assert {line["kubernetes"] for line in ONE.values()} == {"v1.36.3"}
    assert {line["kubernetes"] for line in OTHER.values()} == {"v1.37.1"}


def test_the_table_lists_every_difference_and_no_other() -> None:
    told = {
        Difference(f"v{version}", field, value.strip("`")): read_cases(cases)
        for version, field, value, cases, _ in ROWS
    }
    assert told == compare(ONE, OTHER)
