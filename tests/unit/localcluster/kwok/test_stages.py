"""The stages of kwok: a faithful pod is none of the cheap stages' business, and every life is documented."""

from typing import Any

import pytest
import yaml

from localcluster import kwok
from localcluster.kwok import faithful
from localcluster.kwok.stage import LIFE
from tests.support.repository import DOCS

STAGES: dict[str, Any] = {
    each["metadata"]["name"]: each["spec"]
    for each in yaml.safe_load_all(kwok.configuration())
    if each["kind"] == "Stage"
}
CHEAP = [
    name for name, spec in STAGES.items() if spec["resourceRef"]["kind"] == "Pod" and "faithful" not in name
]


def test_every_stage_has_a_name_of_its_own() -> None:
    written = [each for each in yaml.safe_load_all(kwok.configuration()) if each["kind"] == "Stage"]
    assert len(written) == len(STAGES)


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_stage_fits_no_faithful_life(name: str) -> None:
    about = [each for each in STAGES[name]["selector"]["matchExpressions"] if each["key"] == LIFE]
    refused = {life for each in about if each["operator"] == "NotIn" for life in each["values"]}
    wanted = [each["values"] for each in about if each["operator"] == "In"]
    assert refused >= set(faithful.LIVES) or (wanted and not set(wanted[0]) & set(faithful.LIVES))


@pytest.mark.parametrize("life", faithful.LIVES)
def test_a_faithful_life_is_documented_and_ends(life: str) -> None:
    assert f"`{life}`" in (DOCS / "localcluster.md").read_text()
    about = [
        life in each["values"]
        for name, spec in STAGES.items()
        if "faithful" in name and spec["next"].get("delete")
        for each in spec["selector"]["matchExpressions"]
        if each["key"] == LIFE
    ]
    assert all(about)
