"""The examples in docs/policies do what they say."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from reberth.cluster.kinds import ALL_RESOURCES
from rescheduler.model.plan import PolicyName
from tests.support.rescheduler.plans import ROOT, WITH_EXTENDER, run_command

DOCUMENTS = sorted(path for path in (ROOT / "docs" / "policies").glob("*.md") if path.name != "README.md")
_BLOCK = re.compile(r"^```yaml (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.stem)
def test_the_example_of_a_policy_is_true(document: Path, tmp_path: Path) -> None:
    blocks = dict(_BLOCK.findall(document.read_text()))
    assert set(blocks) == {"objects", "policy", "plan"}
    for name in ("objects", "policy"):
        (tmp_path / f"{name}.yaml").write_text(blocks[name])
    files = ("--cluster", tmp_path / "objects.yaml", "--policy", tmp_path / "policy.yaml")
    known = ("--scheduler-config", WITH_EXTENDER, "--now", "2026-11-18T12:00:00Z")
    found = yaml.safe_load(run_command(*files, *known, "-o", "yaml"))
    assert yaml.safe_load(blocks["plan"]) == {
        "moves": {move["pod"]: move["destinations"][0]["node"] for move in found["moves"]},
        "refused": {refused["pod"]: refused["rule"] for refused in found["refused"]},
    }


def test_the_command_that_prints_a_cluster_names_every_kind_that_a_plan_looks_at() -> None:
    short = {"persistentvolumeclaims": "pvc", "persistentvolumes": "pv"}
    written = (ROOT / "docs" / "policies" / "README.md").read_text()
    asked = re.search(r"kubectl get (\S+(?:\\\n\s+\S+)*) -A -o json", written)
    assert asked
    named = "".join(asked[1].replace("\\\n", "").split()).split(",")
    everywhere = [each.name for each in ALL_RESOURCES if not each.is_optional]
    assert sorted(named) == sorted(short.get(name, name) for name in everywhere)
    added = re.findall(r"is installed, add `([\w,]+)`", written)
    assert ",".join(added).split(",") == [each.name for each in ALL_RESOURCES if each.is_optional]


def test_there_is_a_document_for_every_policy() -> None:
    names = {re.sub("-([a-z])", lambda found: found[1].upper(), document.stem) for document in DOCUMENTS}
    assert names == set(get_args(PolicyName))
