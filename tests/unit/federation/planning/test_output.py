"""A plan as text: every step, every wait, and the reason of everything that stays."""

import json

import msgspec
import yaml

from federation.api import TargetCluster
from federation.planning.output import write_json, write_table, write_yaml
from federation.planning.plan import Action, BindingForecast, HubPlan, PlannedStep, PlannedWait, WaitsFor
from tests.support.federation.rebalancers import entry

ONE, TWO = (TargetCluster("m1", 2),), (TargetCluster("m2", 2),)
KEPT = "{m1:2} stays until the new copies are ready, at most until 2026-11-18T12:10:00Z"
WAITING = PlannedWait(WaitsFor.EVICTION, "new copies")
PLAN = HubPlan(
    kind="Plan",
    now="2026-11-18T12:00:00Z",
    steps=(
        PlannedStep(Action.EVICT, "default/web", "a taint", ONE),
        PlannedStep(Action.MOVE, "default/web", "it is evicted", ONE, TWO, ONE, "2026-11-18T12:10:00Z"),
    ),
    bindings={
        "default/big": BindingForecast("Deployment default/big", (), (), "", "Unschedulable", "too little"),
        "default/web": BindingForecast(
            "Deployment default/web",
            ONE,
            TWO,
            "",
            "Success",
            "ok",
            (PlannedWait(WaitsFor.EVICTION, "new copies"),),
        ),
    },
    rebalancers={"demo": (entry("web", result="Failed", message="No binding\nfound."), entry("b"))},
    warnings=(),
)


def test_the_table_has_steps_waits_what_stays_and_rebalancers() -> None:
    assert write_table(PLAN, width=200).splitlines() == [
        "2 steps for 2 bindings at 2026-11-18T12:00:00Z",
        "",
        "STEP   BINDING      CLUSTERS          WHY",
        "Evict  default/web  {m1:2}            a taint",
        f"Move   default/web  {{m1:2}} -> {{m2:2}}  it is evicted; {KEPT}",
        "",
        "BINDING      WAITS FOR  UNTIL  WHY",
        "default/web  Eviction   -      new copies",
        "",
        "BINDING      CLUSTERS  WHY",
        "default/big  -         Unschedulable: too little",
        "",
        "REBALANCER  WORKLOAD                RESULT  WHY",
        "demo        Deployment default/web  Failed  No binding\\nfound.",
        "demo        Deployment default/b    -       -",
    ]


def test_an_empty_plan_says_so() -> None:
    empty = HubPlan("Plan", "2026-11-18T12:00:00Z", PLAN.steps[:1], {}, {}, ())
    assert write_table(empty, width=80).startswith("1 step for 0 bindings at 2026-11-18T12:00:00Z\n")
    assert write_table(msgspec.structs.replace(empty, steps=()), width=80) == (
        "0 steps for 0 bindings at 2026-11-18T12:00:00Z"
    )


def test_json_and_yaml_say_the_same() -> None:
    values = json.loads(write_json(PLAN))
    assert yaml.safe_load(write_yaml(PLAN)) == values
    assert (values["kind"], values["steps"][1]["kept"]) == ("Plan", [{"name": "m1", "replicas": 2}])
    assert values["bindings"]["default/web"]["from"] == [{"name": "m1", "replicas": 2}]
