"""WorkloadRebalancers in a plan: the steps that they ask for, and the answers."""

from msgspec.structs import replace

from federation.api import RebalancerStatus
from federation.planning.plan import Action, HubPlan
from tests.support.federation.clusters import DYNAMIC
from tests.support.federation.objects import template
from tests.support.federation.planned import (
    DEPLOYMENT,
    DONE,
    SPACIOUS,
    ours,
    plan_of,
    steps_of,
)
from tests.support.federation.rebalancers import at, rebalancer, well


def test_a_rebalancer_moves_its_workloads_one_after_the_other() -> None:
    bindings = [
        ours(name, 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status={**DONE, **well(m2=4)})
        for name in ("a", "b")
    ]
    one = rebalancer("a", "b", "none", maxMovingReplicas=4)
    plan = plan_of(SPACIOUS, bindings, rebalancers=[one])
    assert steps_of(plan) == [("Rebalance", "a-deployment", {"m1": 3, "m2": 1})]
    results = {each.workload.name: (each.result, each.message) for each in plan.rebalancers["demo"]}
    assert results["b"] == (None, "Waiting until fewer replicas are moving.")
    assert results["none"][0] == "Failed"


def test_a_dry_run_is_answered_without_a_step() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    plan = plan_of(SPACIOUS, [web], rebalancers=[rebalancer("web", dryRun=True)])
    assert plan.steps == ()
    (entry,) = plan.rebalancers["demo"]
    assert (entry.reason, [each.name for each in entry.to or ()]) == ("DryRun", ["m1", "m2"])
    answered = replace(rebalancer("web", dryRun=True), status=plan_status(plan))
    assert plan_of(SPACIOUS, [web], rebalancers=[answered]).rebalancers == plan.rebalancers


def plan_status(plan: HubPlan) -> RebalancerStatus:
    return RebalancerStatus(plan.rebalancers["demo"], 1, at(0))


def test_a_rebalancer_that_nobody_has_created_yet_is_created_now() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    new = rebalancer("web")
    new = replace(new, metadata=replace(new.metadata, creation_timestamp=None))
    plan = plan_of(SPACIOUS, [web], rebalancers=[new])
    assert (steps_of(plan)[0][0], plan.warnings) == ("Rebalance", ())


def test_a_step_that_cannot_be_decided_says_why() -> None:
    only = {**DYNAMIC, "clusterAffinity": {"clusterNames": ["m9"]}}
    web = ours("web", 4, only, at={"m2": 4}, applied=only, status=DONE)
    plan = plan_of(SPACIOUS, [web], rebalancers=[rebalancer("web")])
    (step, *_) = plan.steps
    assert step.action is Action.REBALANCE
    assert "it stays: 0/2 clusters are available" in step.reason


def test_a_rebalancer_selects_by_the_labels_of_the_templates() -> None:
    web = ours("web", 4, DYNAMIC, at={"m2": 4}, applied=DYNAMIC, status=DONE)
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"a": "b"}}}
    asked = rebalancer(workloadSelectors=[selector])
    found = [
        (DEPLOYMENT, template(labels={"a": "b"})),
        (DEPLOYMENT._replace(name="other"), template("other")),
    ]
    plan = plan_of(SPACIOUS, [web], templates=found, rebalancers=[asked])
    assert [each[0] for each in steps_of(plan)] == ["Rebalance"]
