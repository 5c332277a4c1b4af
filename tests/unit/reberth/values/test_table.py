"""Tables as text."""

from reberth.values.table import align, wrap_table

ROWS = [("NAME", "COUNT", "TEXT"), ("a-long-name", "7", "fine"), ("b", "120", "")]


def test_columns_are_aligned_and_lines_end_without_spaces() -> None:
    assert list(align(ROWS, indent="  ")) == [
        "  NAME         COUNT  TEXT",
        "  a-long-name  7      fine",
        "  b            120",
    ]


def test_numbers_are_aligned_to_the_right() -> None:
    assert list(align(ROWS, right=[1])) == [
        "NAME         COUNT  TEXT",
        "a-long-name      7  fine",
        "b              120",
    ]


def test_a_cell_that_is_too_wide_goes_below_its_row() -> None:
    rows = [("web-1", "node-a", "a reason of some length for which there is no room beside the others")]
    assert list(wrap_table(rows, width=45)) == [
        "web-1  node-a  a reason of some length for",
        "               which there is no room beside",
        "               the others",
    ]
    assert list(wrap_table(rows, width=20)) == [
        "web-1  node-a",
        "    a reason of some",
        "    length for which",
        "    there is no room",
        "    beside the",
        "    others",
    ]
    assert list(wrap_table([("a-name-of-some-length", "x", "y")], width=12)) == [
        "a-name-of-so",
        "me-length",
        "    x",
        "    y",
    ]
