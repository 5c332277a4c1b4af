"""The forecast for the executor."""

import json
from pathlib import Path
from typing import Any

import pytest

from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import View
from reberth.records import OpenMove, Phase, Pod
from reberth.values.errors import SettingsError
from reberth.values.refusal import Refused
from rescheduler.model.plan import LandingScores
from rescheduler.observe.forecaster import Forecaster
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.settings import SchedulerSettings, read_forecaster
from tests.support.builders import as_record, node, owner, pod
from tests.support.forecast.worlds import world

VERSION = (1, 36)
FORECAST = Forecaster(SchedulerModel(VERSION, default_scheduler(VERSION)))
OWNED = owner("ReplicaSet", "web-1", uid="rs-1")
OLD = pod("old", node="a", cpu="2", owned_by=OWNED, uid="u-old")


def noted(name: str) -> dict[str, Any]:
    entry = {
        "podSignature": {"podController": OWNED},
        "evictionTime": "1970-01-01T00:00:00Z",
        "reason": "why not",
        "reberth": {
            "id": "m-1",
            "namespace": "default",
            "policy": "manual",
            "expiresAt": "1970-01-01T01:00:00Z",
        },
    }
    text = json.dumps({"preferAvoidPods": [entry]})
    return node(name, annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods": text})


def find(view: View) -> tuple[str, ...] | Refused:
    return FORECAST.look_at(view.facts.snapshot).find_destinations(as_record(Pod, OLD))


def refuse(view: View, *destinations: str) -> Refused | None:
    return FORECAST.look_at(view.facts.snapshot).refuse_destinations(as_record(Pod, OLD), destinations)


def landed(landed_on: str, view: View, policy: str = "underUtilisedNodes") -> LandingScores | None:
    move = OpenMove(
        id="m-1", pod="old", pod_uid="u", controller_uid="rs-1", from_="a", phase=Phase.EVICTED,
        policy=policy, planned_at="1970-01-01T00:00:00Z", expires_at="1970-01-01T01:00:00Z",
    )  # fmt: skip
    return FORECAST.look_at(view.facts.snapshot).score_landing(move, landed_on)


def test_destinations_are_the_other_feasible_nodes_the_best_first() -> None:
    busy = pod("busy", node="b", cpu="4", memory="16Gi")
    view = world(node("a"), node("b"), node("c"), node("d", cpu="1"), busy, OLD)
    assert find(view) == ("c", "b")


def test_nodes_leaving_or_noted_are_no_destinations() -> None:
    leaving = node("b", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "PreferNoSchedule"}])
    view = world(node("a"), leaving, noted("c"), OLD)
    assert find(view) == Refused("NoFeasibleDestination", "the pod fits on no node that may be a destination")


def test_a_pod_that_fits_nowhere_has_no_destination() -> None:
    found = find(world(node("a", cpu="2"), OLD))
    assert isinstance(found, Refused)
    assert found.rule == "NoFeasibleDestination"


def test_a_pod_that_was_not_seen_has_none_either() -> None:
    found = find(world(node("a")))
    assert isinstance(found, Refused)
    assert found.reason == "the pod is not in the cache yet"


def test_named_nodes_are_refused_if_none_of_them_is_feasible() -> None:
    view = world(node("a"), node("b"), node("c", cpu="1"), node("d", pods=0), OLD)
    assert refuse(view, "c", "b") is None
    assert refuse(view, "c", "d") == Refused("NoFeasibleDestination", "Insufficient cpu; Too many pods")
    assert refuse(view, "x") == Refused("NoFeasibleDestination", "no such nodes")


def test_a_landing_is_scored_in_one_list_without_the_pod() -> None:
    replacement = pod("new", node="b", cpu="2", owned_by=OWNED)
    busy = pod("busy", node="a", cpu="4", memory="16Gi")
    scores = landed("b", world(node("a"), node("b"), busy, replacement))
    assert scores is not None
    assert scores.before is not None
    assert scores.after > scores.before


@pytest.mark.parametrize(
    ("policy", "taint", "is_told"),
    [("brokenRules", True, False), ("brokenRules", False, True), ("underUtilisedNodes", True, True)],
)
def test_a_node_that_broke_a_rule_has_no_points_that_the_new_one_could_fall_short_of(
    policy: str, *, taint: bool, is_told: bool
) -> None:
    left = node("a", taints=[{"key": "team", "value": "red", "effect": "NoSchedule"}] if taint else [])
    replacement = pod("new", node="b", cpu="2", owned_by=OWNED)
    busy = pod("busy", node="b", cpu="4", memory="16Gi")
    scores = landed("b", world(left, node("b"), busy, replacement), policy)
    assert scores is not None
    assert (scores.before is not None) == is_told


def test_a_landing_that_cannot_be_seen_is_not_scored() -> None:
    view = world(node("a"), node("b"), OLD)
    assert landed("b", view) is None
    assert landed("x", view) is None


def test_the_names_of_the_schedulers_are_those_of_the_profiles() -> None:
    assert FORECAST.schedulers == {"default-scheduler"}


def test_a_pod_that_was_not_seen_is_refused_wherever_it_is_to_go() -> None:
    refused = Refused("NoFeasibleDestination", "the pod is not in the cache yet")
    assert refuse(world(node("a")), "a") == refused


def test_a_landing_of_a_scheduler_that_is_not_known_is_not_scored() -> None:
    replacement = pod("new", node="b", owned_by=OWNED, schedulerName="somebody-elses")
    assert landed("b", world(node("a"), node("b"), replacement)) is None


def test_a_landing_whose_preferences_cannot_be_read_is_not_scored() -> None:
    terms = [{"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Near"}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    replacement = pod("new", node="b", owned_by=OWNED, affinity=affinity)
    assert landed("b", world(node("a"), node("b"), replacement)) is None


def test_the_scheduler_is_read_from_its_files(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 4\n"
    )
    found = read_forecaster(SchedulerSettings(configuration=str(file), kubernetes="1.35"))(VERSION)
    model = found.model
    assert (model.version, model.scheduler.parallelism) == ((1, 35), 4)
    assert read_forecaster(SchedulerSettings())(VERSION) == FORECAST


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingsError, match="/nowhere: cannot be read"):
        read_forecaster(SchedulerSettings(extender="/nowhere"))
