"""Every module of the forecast that follows kube-scheduler names its source, and the source is there.

A citation is a path of Kubernetes in backticks, then a colon and the functions and constants in it, in Go's
notation: (*Type).Method for a method with a pointer receiver.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from localcluster.build.products import KUBERNETES_VERSIONS
from reberth import forecast
from reberth.cluster.pods.requests import read_version
from reberth.forecast.plugin_registry import FILTERS, SCORES

FORECAST = Path(str(forecast.__file__)).parent
REGISTRY = (FORECAST / "plugin_registry.py").read_text()
MODULES = sorted(path for path in FORECAST.rglob("*.py") if path.name != "__init__.py")
REGISTERED = [
    path
    for path in MODULES
    if f"from {'.'.join(path.relative_to(FORECAST.parents[1]).with_suffix('').parts)} import" in REGISTRY
    and path.parent.name in {"plugins", "volumes"}
]

NAME = r"(?:\(\*?\w+\)\.)?\w+"
CITATION = re.compile(rf"`((?:pkg|plugin|k8s\.io)/[\w./-]+\.go)`: (`{NAME}`(?:, `{NAME}`)*)")
PATH = re.compile(r"\b(?:pkg|plugin)/[\w./-]+\.go|\bk8s\.io/[\w./-]+\.go")

MODULE_CACHE = Path(os.environ.get("GOMODCACHE") or Path.home() / "go" / "pkg" / "mod")
NEWEST = max(KUBERNETES_VERSIONS, key=read_version)
KUBERNETES_SOURCES = MODULE_CACHE / f"k8s.io/kubernetes@v{NEWEST}"


def read_unwrapped(path: Path) -> str:
    """Give the text of a module with its lines joined, and without the marks of comments."""
    return re.sub(r"\s*\n\s*(?:#\s)?", " ", path.read_text())


def list_citations(path: Path) -> Iterator[tuple[str, list[str]]]:
    for source, names in CITATION.findall(read_unwrapped(path)):
        yield source, re.findall(NAME, names.replace("`", ""))


def find_sources(source: str) -> Path:
    """Give the file in Go's module cache; the modules beside kubernetes 1.x have the version 0.x."""
    if not source.startswith("k8s.io/"):
        return KUBERNETES_SOURCES / source
    _, module, rest = source.split("/", maxsplit=2)
    return MODULE_CACHE / f"k8s.io/{module}@v0{NEWEST.removeprefix('1')}" / rest


def list_undefined(source: str, names: Iterable[str]) -> list[str]:
    file = find_sources(source)
    defined = set(list_definitions(file.read_text())) if file.is_file() else set()
    return [f"{source}: {name}" for name in names if name not in defined]


def list_definitions(text: str) -> Iterator[str]:
    """List the functions, methods, types, variables and constants of a file in Go."""
    for receiver, name in re.findall(r"^func (?:\((?:\w+ )?(\*?\w+)\) )?(\w+)", text, re.MULTILINE):
        yield f"({receiver}).{name}" if receiver else name
    yield from re.findall(r"^(?:var |const |type |\t)(\w+)", text, re.MULTILINE)


def test_the_registry_finds_its_modules() -> None:
    assert len(REGISTERED) >= 10
    assert len(FILTERS | SCORES) >= len(REGISTERED)


@pytest.mark.parametrize("path", REGISTERED, ids=lambda path: path.stem)
def test_a_module_that_registers_a_plugin_cites_the_plugin(path: Path) -> None:
    sources = [source for source, _ in list_citations(path)]
    assert any(source.startswith("pkg/scheduler/framework/plugins/") for source in sources)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_path_of_kubernetes_is_cited_with_names(path: Path) -> None:
    cited = [source for source, _ in list_citations(path)]
    assert cited == PATH.findall(read_unwrapped(path))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_cited_functions_and_constants_exist(path: Path) -> None:
    """Where Kubernetes' sources are not in Go's module cache, the other tests check the form."""
    undefined = [each for citation in list_citations(path) for each in list_undefined(*citation)]
    assert not undefined or not KUBERNETES_SOURCES.is_dir()


def test_an_invented_function_is_found_out() -> None:
    source = "pkg/scheduler/schedule_one.go"
    assert list_undefined(source, ["inventedFunction", "(*Scheduler).invented"]) == [
        f"{source}: inventedFunction",
        f"{source}: (*Scheduler).invented",
    ]
