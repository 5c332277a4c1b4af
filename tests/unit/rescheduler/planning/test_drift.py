"""Whether the running scheduler does what the forecast says."""

from typing import Any

import pytest

from reberth.cluster.object_files import load_objects
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.state.profile import parse_scheduler
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.drift import RULE, Binding, DriftSettings, HitRate, Sampler, judge_binding
from tests.support.builders import node, owner, pod
from tests.support.rescheduler.plans import NOW, PLAIN_MODEL, VERSION

PACKING = b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins: {score: {disabled: [{name: NodeResourcesFit}], enabled: [{name: NodeResourcesFit, weight: 10}]}}
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
PACKING_MODEL = SchedulerModel(VERSION, parse_scheduler(PACKING, version=VERSION))


def snapshot(**asked: Any) -> Snapshot:
    """An empty node, a half full one, and a pod that waits."""
    full = pod("full", node="n2", cpu="4", owned_by=owner("ReplicaSet", "full"))
    waiting = pod("web", uid="uid-web", cpu="100m", owned_by=owner("ReplicaSet", "web"), **asked)
    return load_objects([node("n1"), node("n2"), full, waiting], now=NOW, version=VERSION).snapshot


@pytest.mark.parametrize(
    ("model", "landed_on", "agreed"),
    [
        (PLAIN_MODEL, "n1", True),
        (PLAIN_MODEL, "n2", False),
        (PACKING_MODEL, "n1", False),
        (PACKING_MODEL, "n2", True),
    ],
)
def test_a_binding_agrees_where_the_forecast_gives_its_node_a_chance(
    model: SchedulerModel,
    landed_on: str,
    agreed: bool,  # noqa: FBT001 - a column of the table
) -> None:
    assert judge_binding(Binding("uid-web", landed_on), snapshot(), model) is agreed


def test_bindings_without_evidence_are_not_judged() -> None:
    alike = load_objects(
        [node("n1"), node("n2"), pod("web", uid="uid-web", cpu="1")], now=NOW, version=VERSION
    ).snapshot
    foreign = snapshot(schedulerName="theirs")
    assert judge_binding(Binding("uid-web", "n1"), alike, PLAIN_MODEL) is None
    assert judge_binding(Binding("uid-web", "n1"), foreign, PLAIN_MODEL) is None
    assert judge_binding(Binding("uid-web", "n9"), snapshot(), PLAIN_MODEL) is None
    assert judge_binding(Binding("uid-gone", "n1"), snapshot(), PLAIN_MODEL) is None


def agreement(*last: bool, settings: DriftSettings) -> HitRate:
    found = HitRate()
    for agreed in last:
        found.enter(agreed, settings, namespace="default")
    return found


@pytest.mark.parametrize(
    ("last", "rule"),
    [
        ([], None),
        ([False] * 3, None),
        ([False] * 4, RULE),
        ([True, True, True, False], None),
        ([True, True, False, False], RULE),
        ([False] * 4 + [True] * 6, None),
    ],
)
def test_drift_needs_enough_of_the_last_bindings(last: list[bool], rule: str | None) -> None:
    settings = DriftSettings(last=6, fewest=4)
    refused = agreement(*last, settings=settings).find_drift(settings)
    assert (refused.rule if refused else None) == rule


def test_the_refusal_explains_the_share_of_wrong_forecasts() -> None:
    settings = DriftSettings(fewest=2)
    found = agreement(True, False, False, False, settings=settings)
    refused = found.find_drift(settings)
    assert refused is not None
    assert refused.reason == (
        "your scheduler configuration file does not match the running scheduler: 25% of the last 4 pods "
        "landed as forecast, fewer than 60%"
    )
    assert found.share == 0.25
    assert HitRate().share is None


@pytest.mark.parametrize(
    ("others", "rule"),
    [
        ([], RULE),
        ([True], None),
        ([True] * 4, None),
        ([False], RULE),
        ([True] * 2 + [False] * 2, RULE),
        ([True] * 3 + [False], None),
    ],
)
def test_a_single_namespace_is_no_drift_if_the_others_are_as_forecast(
    others: list[bool], rule: str | None
) -> None:
    """A scheduler that is configured differently places the pods of every namespace differently."""
    settings, found = DriftSettings(last=20, fewest=4), HitRate()
    for agreed in others:
        found.enter(agreed, settings, namespace="shop")
    for _ in range(100):
        found.enter(False, settings, namespace="builds")
    refused = found.find_drift(settings)
    assert (refused.rule if refused else None) == rule
    assert found.share == sum(others) / (len(others) + 10)


def test_a_sampler_admits_a_few_at_once_and_so_many_a_minute() -> None:
    sampler = Sampler(burst=3)
    assert [sampler.admit(100.0, 60) for _ in range(5)] == [True, True, True, False, False]
    assert [sampler.admit(101.0, 60) for _ in range(2)] == [True, False]
    assert sum(sampler.admit(102.0 + tenth / 10, 60) for tenth in range(600)) == pytest.approx(60, abs=1)
    assert not Sampler().admit(0.0, 0)
