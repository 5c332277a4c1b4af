"""A move reserves its disruption by the number that a percentage comes to, which is that of the plan."""

import asyncio
import dataclasses

import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import DEPLOYMENT, HISTORIES, PODS
from reberth.cluster.snapshot import build
from reberth.memory.history import start_history
from reberth.records import HistoryStatus, ObjectMeta, Owner
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.observe.rule_context import RuleContext
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.memory.objects import WEB, web_pod
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context
from tests.support.rescheduler.plans import policy

pytestmark = pytest.mark.looptime


def crowd(pods: int) -> World:
    """A workload of so many pods on one node."""
    world = World()
    for number in range(2, pods + 1):
        world.put(PODS, web_pod(f"web-0{number}", node="n1", age=60.0))
    return world


def context_of(world: World, asked: ReschedulerPolicy) -> ExecutionContext:
    return dataclasses.replace(make_context(world, FakeApi(world)), policy=lambda: asked)


async def move(context: ExecutionContext, name: str) -> Refused | None:
    order = await compose_order(context, "shop", name, to=("n2", "n3"), reason="why not")
    assert isinstance(order, MoveOrder)
    report = await Executor(context).move(order)
    assert isinstance(report, MoveReport)
    return report.refused


def refuse_by_plan(context: ExecutionContext) -> str | None:
    """What the plan would say of the next move of the workload."""
    snapshot = build(context.mirror.cache.contents(), now=context.clock())
    rules = RuleContext(snapshot, limits=context.policy().limits)
    place = next(n for n, row in enumerate(snapshot.pods.rows) if row.node == "n1")
    root = rules.identify(place)
    planned = rules.limits_of("shop", root)
    assert planned.rates == context.find_rates("shop", root)
    assert planned.per_workload
    assert context.find_most_moves(snapshot.pods.rows[place].uid) == planned.per_workload.number
    return ", ".join(map(str, (*planned.rates.cluster, *planned.rates.namespace, *planned.rates.workload)))


@pytest.mark.parametrize(
    ("scope", "rule"),
    [("cluster", "ClusterRate"), ("namespace", "NamespaceRate"), ("workload", "WorkloadRate")],
)
async def test_a_rate_in_percent_is_kept(scope: str, rule: str) -> None:
    world = crowd(5)
    asked = policy(limits={"rates": {"cluster": [], scope: ["40% per 1h"]}, "perWorkload": "50%"})
    context = context_of(world, asked)
    assert refuse_by_plan(context) == "40% per 3600s (2 of 5 pods)"
    for name in ("web-1", "web-02"):
        assert await move(context, name) is None
    refused = await move(context, "web-03")
    assert refused is not None
    assert (refused.rule, refused.reason) == (rule, "no more than 40% per 3600s (2 of 5 pods)")
    assert len(world.evictions) == len(world.debits()) == 2
    await asyncio.sleep(3700)
    assert await move(context, "web-03") is None


@pytest.mark.parametrize(("text", "rule"), [("40%", "WorkloadRate"), ("40% min 1", None)])
async def test_a_workload_of_one_pod_is_moved_only_by_a_minimum(text: str, rule: str | None) -> None:
    world = crowd(1)
    asked = policy(limits={"rates": {"cluster": [], "workload": [f"{text} per 1h"]}})
    refused = await move(context_of(world, asked), "web-1")
    assert (refused.rule if refused else None) == rule
    assert len(world.evictions) == (rule is None)


async def test_the_disruption_of_a_deployment_that_is_known_by_its_name_counts_for_its_uid() -> None:
    world = crowd(5)
    unnamed = replace(WEB, root=replace(WEB.root, uid=""))
    world.put(HISTORIES, replace(start_history(unnamed), status=HistoryStatus()))
    context = context_of(world, policy(limits={"rates": {"cluster": [], "workload": ["40% per 1h"]}}))
    found = Owner(ObjectMeta(WEB.root.name, WEB.namespace, uid=WEB.root.uid, resource_version="1"))
    context.mirror.cache.replace(DEPLOYMENT, [found], "1")
    assert await move(context, "web-1") is None
    assert {debit.workload_uid for debit in world.debits().values()} == {WEB.root.uid}


async def test_moves_of_a_pod_that_has_gone_are_limited_by_the_minimum() -> None:
    context = context_of(crowd(5), policy(limits={"perWorkload": "100% min 3"}))
    assert context.find_most_moves("uid-unknown") == 3
    free = context_of(crowd(5), policy(limits={"perWorkload": None}))
    assert free.find_most_moves("uid-unknown") is None
