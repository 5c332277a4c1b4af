"""One concept, one name: no class name stands twice in a program, and no folder is too full."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository import ROOT, parse_source

LIBRARY = "reberth"
PROGRAMS = ("extender", "rescheduler", "federation")
MOST_MODULES = 13

# Names that stand twice, and why. An entry that is no longer needed makes the test fail: the list shrinks.
TWICE: dict[str, str] = {}
# Folders with more modules, and why.
FULL: dict[str, str] = {}


def list_classes(package: str) -> Iterator[tuple[str, str]]:
    """List each public class of a package with its file."""
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = parse_source(file.read_text())
        for found in ast.walk(tree):
            if isinstance(found, ast.ClassDef) and not found.name.startswith("_"):
                yield found.name, str(file.relative_to(ROOT))


def find_repeated(*packages: str) -> dict[str, list[str]]:
    files = defaultdict(list)
    for package in packages:
        for name, file in list_classes(package):
            files[name].append(file)
    return {name: found for name, found in files.items() if len(found) > 1}


def count_modules(folder: Path) -> int:
    return sum(file.name != "__init__.py" for file in folder.glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_no_class_name_stands_twice_in_a_program_and_the_library(program: str) -> None:
    repeated = find_repeated(LIBRARY, program)
    assert {name: files for name, files in repeated.items() if name not in TWICE} == {}


def test_every_exception_is_still_needed() -> None:
    repeated = {name for program in PROGRAMS for name in find_repeated(LIBRARY, program)}
    assert TWICE.keys() <= repeated
    assert {name for name in FULL if count_modules(ROOT / name) <= MOST_MODULES} == set()


def test_no_folder_has_more_than_thirteen_modules() -> None:
    folders = [folder for package in (LIBRARY, *PROGRAMS) for folder in (ROOT / package).rglob("*")]
    counts = {str(folder.relative_to(ROOT)): count_modules(folder) for folder in folders if folder.is_dir()}
    full = {name: count for name, count in counts.items() if count > MOST_MODULES}
    assert {name: count for name, count in full.items() if name not in FULL} == {}
