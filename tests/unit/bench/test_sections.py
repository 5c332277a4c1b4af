"""A measurement replaces only its own section of a document."""

import pytest

from bench.sections import exchange

READING = "<!-- reading: begin -->\nold\n<!-- reading: end -->\n"
OTHER = "<!-- other: begin -->\nof others\n<!-- other: end -->\n"


def test_a_new_section_is_added_at_the_end() -> None:
    assert exchange(f"# Title\n\n{OTHER}", "reading", "old\n") == f"# Title\n\n{OTHER}\n{READING}"


@pytest.mark.parametrize("document", [f"# Title\n\n{READING}\n{OTHER}", f"# Title\n\n{OTHER}\n{READING}"])
def test_only_the_own_section_is_replaced(document: str) -> None:
    assert exchange(document, "reading", "new") == document.replace("old", "new")


def test_writing_twice_is_writing_once() -> None:
    once = exchange("# Title\n", "reading", "text")
    assert exchange(once, "reading", "text") == once


def test_a_section_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="reading: end"):
        exchange("<!-- reading: begin -->\nold\n", "reading", "new")
