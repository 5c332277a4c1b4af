"""The table of what was proven on which version."""

import pytest

from generating.support_matrix import put_matrix, write_matrix
from reberth.forecast.state.proven_versions import ProofResult

RESULTS = {
    "1.38.0": {"forecast": ProofResult(500, 500, "2026-12-09")},
    "1.37.1": {"forecast": ProofResult(1499, 1500, "2026-11-20"), "live": ProofResult(9, 9, "2026-11-20")},
}
TABLE = """\
| proof | 1.38.0 | 1.37.1 |
| --- | --- | --- |
| forecast | 500 of 500, 2026-12-09 | 1,499 of 1,500, 2026-11-20 |
| live | not run | 9 of 9, 2026-11-20 |
"""


def test_each_proof_has_a_row_and_each_release_a_column() -> None:
    assert write_matrix(RESULTS) == TABLE


def test_the_table_is_put_between_its_marks() -> None:
    begin = "<!-- The table is made by `make generate`, from reberth/forecast/state/proven_versions.json. -->"
    page = f"before\n{begin}\nold\n<!-- The end of the table. -->\nafter\n"
    made = put_matrix(page, RESULTS)
    assert made == f"before\n{begin}\n\n{TABLE}\n<!-- The end of the table. -->\nafter\n"
    assert put_matrix(made, RESULTS) == made


def test_a_page_without_marks_is_an_error() -> None:
    with pytest.raises(ValueError, match="the marks of the table are missing"):
        put_matrix("nothing\n", RESULTS)
