"""The dry run of a replacement before an eviction: when it is asked for, and what is asked after it."""

from collections.abc import Callable
from dataclasses import replace as with_fields
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from reberth.cluster.kinds import BUDGETS, PODS, Resource
from reberth.records import PodDisruptionBudget
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.dry_runs.guard import ACCOUNT, BINDING, POLICY
from rescheduler.execution.executor import Executor
from rescheduler.execution.orders import compose_order
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.outcome import MoveReport
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.crash_simulator import (
    REPLICA_SETS,
    STATEFUL_SETS,
    FakeApi,
    FakeMirror,
    World,
    make_context,
)

_GUARD = {"validatingadmissionpolicies": POLICY, "validatingadmissionpolicybindings": BINDING}


def begin(*, names_return: bool) -> World:
    """A world in which the owner of the pod has the template that the pod was made from."""
    world = World(names_return=names_return, budgeted=True)
    pod = msgspec.to_builtins(world.objects[PODS.name, "shop", "web-1"])
    template = {"metadata": {}, "spec": {**pod["spec"], "nodeName": None}}
    spec = replace(world.replica_set.spec, template=msgspec.Raw(msgspec.json.encode(template)))
    owners = STATEFUL_SETS if names_return else REPLICA_SETS
    world.put(owners, replace(world.replica_set, spec=spec))
    return world


class ConfirmingApi(FakeApi):
    """It has the guard of dry runs. While a replacement is created as a dry run, something happens."""

    def __init__(self, world: World, meanwhile: Callable[[], None]) -> None:
        super().__init__(world)
        self.tried = 0
        self._meanwhile = meanwhile

    async def get(self, resource: Resource[Any], name: str, *, namespace: str = "") -> Any:
        if resource.name in _GUARD:
            return SimpleNamespace(spec=_GUARD[resource.name])
        found = await super().get(resource, name, namespace=namespace)
        if resource.name in (REPLICA_SETS.name, STATEFUL_SETS.name):
            whole = SimpleNamespace(template={}, service_name="", volume_claim_templates=None)
            return SimpleNamespace(metadata=found.metadata, spec=whole)
        return found

    async def create(self, resource: Resource[Any], body: Any, *, namespace: str = "") -> Any:
        if resource.name == "selfsubjectreviews":
            return SimpleNamespace(status=SimpleNamespace(user_info=SimpleNamespace(username=ACCOUNT)))
        return await super().create(resource, body, namespace=namespace)

    async def try_create(self, *_: Any, **__: Any) -> Any:
        self.tried += 1
        self._meanwhile()
        return self._find(PODS, "web-1", namespace="shop")


async def order_and_move(context: ExecutionContext) -> MoveReport:
    order = await compose_order(context, "shop", "web-1", to=("n2", "n3"), reason="why not")
    assert isinstance(order, MoveOrder)
    report = await Executor(context).move(order)
    await context.ledger.flush()
    return report


@pytest.mark.looptime
@pytest.mark.parametrize("names_return", [False, True])
async def test_a_move_is_validated_after_the_dry_run_of_its_replacement(*, names_return: bool) -> None:
    """The cache sees that the budget is exhausted; the API server would grant the eviction."""
    world = begin(names_return=names_return)

    def exhaust() -> None:
        budget = cast("PodDisruptionBudget", world.objects[BUDGETS.name, "shop", "all"])
        world.put(
            BUDGETS, replace(budget, status=replace(budget.status, disruptions_allowed=0, current_healthy=0))
        )
        cast("FakeMirror", context.mirror).sync()

    api = ConfirmingApi(world, exhaust)
    context = with_fields(make_context(world, api), policy=lambda: ReschedulerPolicy(confirm="dryRun"))
    report = await order_and_move(context)
    assert api.tried == 1
    assert report.refused is not None
    assert report.refused.rule == "PDB"
    assert world.evictions == []
