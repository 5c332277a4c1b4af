"""The page for contributors names every package, and no file or function that does not exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import parse_source

ROOT = Path(__file__).parents[3]
HOUSE = (ROOT / "docs" / "house.md").read_text()
PATHS = sorted(set(re.findall(r"`([\w/]+(?:\.py|/))`", HOUSE)))
ROWS = re.findall(r"^\|[^|]*\| `([\w/]+\.py)` \|([^|]*)\|$", HOUSE, re.MULTILINE)
DRAWN = ("reberth", "extender", "rescheduler", "federation", "kubectl_reberth", "localcluster")
DRAWN += ("localproduct", "generating")


def read_tree() -> Iterator[str]:
    """The folders of the picture, each by its indentation below the one above."""
    parents: list[str] = []
    for indentation, name in re.findall(r"^( *)(\w+)/ ", HOUSE.partition("```")[2], re.MULTILINE):
        parents[len(indentation) // 2 :] = [name]
        yield "/".join(parents)


def find_packages() -> Iterator[str]:
    for top in DRAWN:
        yield from (str(file.parent.relative_to(ROOT)) for file in (ROOT / top).rglob("__init__.py"))


def find_names(file: Path) -> set[str]:
    nodes = parse_source(file.read_text()).body
    return {
        node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_the_picture_shows_every_package_and_no_other() -> None:
    assert sorted(read_tree()) == sorted(find_packages())


@pytest.mark.parametrize("path", PATHS)
def test_a_path_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("path", "names"), ROWS, ids=[path for path, _ in ROWS])
def test_a_function_is_defined_where_the_page_says(path: str, names: str) -> None:
    assert set(re.findall(r"`(\w+)`", names)) <= find_names(ROOT / path)


@pytest.mark.parametrize("page", ["README.md", "docs/development.md"])
def test_pages_for_newcomers_link_to_house_and_glossary(page: str) -> None:
    links = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()))
    assert {Path(link).name for link in links} >= {"house.md", "glossary.md"}
    assert all((ROOT / page).parent.joinpath(link).exists() for link in links)
