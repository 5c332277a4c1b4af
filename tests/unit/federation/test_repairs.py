"""The tests that docs/federation-repairs.md names are there, and so are the files."""

import ast
import re

import pytest

from tests.support.repository import DOCS, ROOT, parse_source

PAGE = (DOCS / "federation-repairs.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if "::test_" in line]
_PATH, _TEST = re.compile(r"`([\w/.-]+\.\w+)`"), re.compile(r"(live )?`([\w/.]+)::(\w+)`")


def list_functions(path: str) -> set[str]:
    tree = parse_source((ROOT / path).read_text())
    return {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def find_file(folder: str, path: str) -> str:
    return next(each for each in (path, f"{folder}/{path}") if (ROOT / each).is_file())


def test_the_page_has_its_rows() -> None:
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=[row[0].removeprefix("| ")[:40] for row in ROWS])
def test_what_a_row_names_is_there(row: list[str]) -> None:
    *_, code, noticed = row
    assert [find_file("federation", path) for path in _PATH.findall(code)]
    [(live, path, name)] = _TEST.findall(noticed)
    folder = "tests/live/federation" if live else "tests/unit/federation"
    assert name in list_functions(find_file(folder, path))
