"""What the product is shown on, and how it is set up there."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import yaml

from localcluster.cluster import Cluster
from localproduct import scenario
from localproduct.rescheduler_process import write_settings
from reberth.config.settings import load
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from tests.support.repository import ROOT


def test_two_zones_of_thirty_nodes_are_too_full_and_all_of_them_would_do() -> None:
    """Else there is nothing to see, or no end of it."""
    made = [scenario._deployment(place, name) for place, name in enumerate(scenario.SERVICES)]
    asked = sum(_cpu(one) * one["spec"]["replicas"] for one in made)
    assert 0.8 < asked / (20 * 8000) < 0.9
    too_much, room = asked - 20 * 8000 * 0.75, 10 * 8000 * 0.25
    assert 0 < too_much < room


def test_a_budget_lets_every_service_be_moved() -> None:
    for name in scenario.SERVICES:
        assert scenario._budget(name)["spec"]["maxUnavailable"] >= 2  # half of it is left to others


def test_the_policy_of_the_show_is_read_by_the_daemons_own_reader() -> None:
    shown = load(ROOT / "localproduct" / "policy.yaml", ReschedulerPolicy)
    assert shown.mode == "apply"
    assert shown.level == ReschedulerPolicy().level


def test_the_settings_are_those_of_the_manifests_with_other_addresses(tmp_path: Path) -> None:
    cluster = cast("Cluster", SimpleNamespace(folder=tmp_path))
    file = write_settings(
        cluster,
        port=1,
        extenders=["127.0.0.1:2"],
        configuration={"kind": "KubeSchedulerConfiguration"},
        extender_settings=tmp_path / "extender-0.yaml",
    )
    settings = load(file, ReschedulerSettings)
    assert settings.extender_access.addresses == ("127.0.0.1:2",)
    assert settings.extender_access.tls is None
    assert Path(settings.scheduler.configuration).exists()
    manifest = yaml.safe_load((ROOT / "manifests" / "rescheduler" / "20-settings.yaml").read_text())
    theirs, ours = yaml.safe_load(manifest["data"]["settings.yaml"]), yaml.safe_load(file.read_text())
    changed = {key for key in theirs if theirs[key] != ours[key]}
    assert changed == {"extenderAccess", "scheduler", "server"}
    assert theirs.keys() == ours.keys()


def _cpu(deployment: Any) -> int:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return int(container["resources"]["requests"]["cpu"].removesuffix("m"))
