"""Which victims a budget is charged for: the rules of the Eviction API, case by case."""

from typing import Any

import pytest

from extender.answers.preemption import BUDGET_WOULD_BREAK, limit_by_budgets
from reberth.cluster.rows import PodRow, make_pod_row
from reberth.cluster.templates import Templates
from reberth.records import Pod, PodDisruptionBudget
from tests.support import builders

TEMPLATES = Templates(version=(1, 36))
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def victim(name: str = "db-0", *, status: Any = READY, **fields: Any) -> PodRow:
    given = {"node": "n1", "labels": {"app": "db"}, "created": "2026-11-18T11:00:00Z"}
    made = builders.pod(name, **given | fields, status=status)
    made["metadata"]["resourceVersion"] = "1"
    return make_pod_row(builders.as_record(Pod, made), TEMPLATES)


def budget(allowed: int = 0, name: str = "db", *, generation: int = 1, seen: int = 1, **fields: Any) -> Any:
    status = {"disruptionsAllowed": allowed, "observedGeneration": seen, **fields.pop("status", {})}
    made = builders.pdb(name, "db", max_unavailable=1, status=status, **fields)
    made["metadata"]["generation"] = generation
    return builders.as_record(PodDisruptionBudget, made)


def breaks(victims: list[PodRow], *budgets: Any) -> bool:
    limit = limit_by_budgets(lambda namespace: budgets if namespace == "default" else ())
    refused = limit(victims)
    assert refused in (None, BUDGET_WOULD_BREAK)
    return refused is not None


@pytest.mark.parametrize(
    ("pod", "limits", "broken"),
    [
        ({}, {}, True),
        ({}, {"allowed": 1}, False),
        ({}, {"allowed": -1}, True),
        ({"labels": {"app": "web"}}, {}, False),
        ({"namespace": "shop"}, {}, False),
        ({"phase": "Pending"}, {}, False),
        ({"phase": "Succeeded"}, {}, False),
        ({"phase": "Failed"}, {}, False),
        ({"deleted": "2026-11-18T12:00:00Z"}, {}, False),
        ({}, {"status": {"disruptedPods": {"db-0": "2026-11-18T12:00:00Z"}}}, False),
        ({}, {"allowed": 1, "generation": 2}, True),
        ({"status": {}}, {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, False),
        ({"status": {}}, {"unhealthyPodEvictionPolicy": "IfHealthyBudget"}, True),
        ({"status": {}}, {"status": {"currentHealthy": 2, "desiredHealthy": 2}}, False),
        ({"status": {}}, {"status": {"currentHealthy": 1, "desiredHealthy": 2}}, True),
        ({"status": {}}, {"status": {"currentHealthy": 0, "desiredHealthy": 0}}, True),
        ({}, {"selector": None}, False),
        ({"labels": None}, {"selector": {}}, True),
        ({}, {"selector": {"matchExpressions": [{"key": "app", "operator": "Wrong"}]}}, False),
    ],
)
def test_a_victim_breaks_a_matching_budget_without_room(pod: Any, limits: Any, broken: bool) -> None:  # noqa: FBT001 - a table
    assert breaks([victim(**pod)], budget(**limits)) is broken


def test_victims_are_counted_together_and_every_budget_must_hold() -> None:
    two = [victim("db-0"), victim("db-1")]
    assert breaks(two, budget(1))
    assert not breaks(two, budget(2))
    assert breaks(two, budget(2), budget(1, "other"))
    assert not breaks([], budget(0))
