"""The image: what it copies is there, and what the manifests start is in it."""

import re
import tomllib
from collections.abc import Iterator

import yaml

from reberth import __version__
from tests.support.repository import ROOT

PACKAGES = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
)


DOCKERFILE = (ROOT / "Dockerfile").read_text()


def copied() -> list[str]:
    lines = re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def containers() -> Iterator[dict[str, list[str]]]:
    for file in (ROOT / "manifests").rglob("*.yaml"):
        for one in yaml.safe_load_all(file.read_text()):
            if one and one["kind"] in ("Deployment", "CronJob"):
                spec = one["spec"].get("jobTemplate", one)["spec"]
                yield from spec["template"]["spec"]["containers"]


def test_everything_the_image_copies_exists_and_is_in_the_build_context() -> None:
    sources = copied()
    assert all((ROOT / source).exists() for source in sources)
    assert set(sources) >= PACKAGES
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == {re.sub(r"^requirements/.*", "requirements/*.txt", source) for source in sources}


def test_the_manifests_start_programs_of_the_image() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    assert entry.endswith('"-m"]')
    started = [container["args"][0] for container in containers()]
    assert set(started) == PACKAGES - {"kubectl_reberth"}
    assert all((ROOT / program / "__main__.py").exists() for program in started)


def test_the_manifests_name_the_image_of_this_version() -> None:
    assert {one["image"] for one in containers()} == {f"reberth:{__version__}"}


def test_who_builds_the_image_can_pin_its_base() -> None:
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE}"] * 2
    assert re.findall(r"^ARG (\w+)=", DOCKERFILE, re.MULTILINE) == ["BASE"]


def test_the_image_contains_nothing_that_installs() -> None:
    final = DOCKERFILE.rpartition("FROM ")[2]
    assert "pip uninstall --yes" in final
    assert "ensurepip" in final
    (made,) = re.findall(r"venv (.*)/app\b", DOCKERFILE)
    assert made == "--without-pip "


def test_packages_are_installed_only_with_their_hashes() -> None:
    installs = re.findall(r"pip\b.* install (.*)", DOCKERFILE)
    assert len(installs) == 3
    assert all("--require-hashes" in each or "--no-deps /dist/" in each for each in installs)
