"""What `federation plan` foretells of a drawn hub is what the federation then does with it.

Each binding goes through the clusters that the plan names, in that order, and ends where it says; the same
evictions begin, the same handovers and evictions last, rebalancers and dry runs give the same answers.
"""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster import manifests
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from tests.live.support import planned_hubs
from tests.live.support.hub_paths import POLICIES, REBALANCERS, WORKS
from tests.live.support.rebalancing_members import rebalancer
from tests.support.federation.crds import FOLDER
from tests.support.federation.drawn_hubs import describe, draw_hub
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]
SAMPLE, ROUNDS = 20, 200
NAMESPACES = "/api/v1/namespaces"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> AsyncIterator[tuple[Cluster, Client]]:
    async with (
        running("planned-hub", without=[CONTROLLERS, SCHEDULER, KWOK]) as cluster,
        cluster.client() as client,
    ):
        await manifests.apply(client, FOLDER)
        for number in range(1, 6):
            await client.create(NAMESPACES, {"metadata": {"name": f"karmada-es-m{number}"}})
        for path in (*planned_hubs.KINDS, WORKS):
            await client.wait(path, lambda found: "items" in found)
        yield cluster, client


@pytest.mark.parametrize("seed", range(SAMPLE))
async def test_what_is_foretold_happens(hub: tuple[Cluster, Client], tmp_path: Path, seed: int) -> None:
    await plan_and_compare(*hub, tmp_path, seed)


@pytest.mark.soak
async def test_what_is_foretold_happens_in_two_hundred_hubs(
    hub: tuple[Cluster, Client], tmp_path: Path
) -> None:
    proof = Proof("federation-plan")
    for seed in proof.remaining(range(ROUNDS)):
        steps = await plan_and_compare(*hub, tmp_path, seed)
        print(f"hub {seed:3}: {steps} steps foretold, all of them happened")
        proof.note([seed])


async def test_a_plan_needs_to_list_and_nothing_else(hub: tuple[Cluster, Client]) -> None:
    """A user who may list, and neither get, watch nor write, gets the plan of the administrator."""
    cluster, client = hub
    await planned_hubs.clear(client)
    await planned_hubs.lay_out(client, draw_hub(1, now=time.time()))
    await planned_hubs.allow_to_list(client, "planner", planned_hubs.LISTED)
    whole = await planned_hubs.ask(cluster.kubeconfig)
    assert (whole.code, whole.err) == (0, "")
    assert await planned_hubs.ask(cluster.user("planner")) == whole


async def test_a_plan_says_what_it_may_not_list(hub: tuple[Cluster, Client]) -> None:
    """Templates are left out; without a kind of the federation itself there is no plan."""
    cluster, client = hub
    await planned_hubs.clear(client)
    await client.create(POLICIES, planned_hubs.policy_for("Deployment"))
    groups = {group: kinds for group, kinds in planned_hubs.LISTED.items() if group != "apps"}
    await planned_hubs.allow_to_list(client, "half", groups)
    answer = await planned_hubs.ask(cluster.user("half"))
    assert answer.code == 0
    assert "federation: planned without deployments: list /apis/apps/v1/deployments: " in answer.err
    del groups["cluster.karmada.io"]
    await planned_hubs.allow_to_list(client, "blind", groups)
    refused = await planned_hubs.ask(cluster.user("blind"))
    assert (refused.code, refused.out) == (2, "")
    assert 'cannot list resource "clusters"' in refused.err


async def test_a_dry_run_is_asked_from_the_beginning_and_may_be_carried_out(
    hub: tuple[Cluster, Client],
) -> None:
    _, client = hub
    await planned_hubs.clear(client)
    await client.create(REBALANCERS, rebalancer("real", "web"))
    with pytest.raises(Refused, match="spec.dryRun: Invalid value: cannot be set later"):
        await client.patch(f"{REBALANCERS}/real", {"spec": {"dryRun": True}})
    await client.create(REBALANCERS, rebalancer("asking", "web", dryRun=True))
    made = await client.patch(f"{REBALANCERS}/asking", {"spec": {"dryRun": False}})
    assert made["spec"]["dryRun"] is False


async def plan_and_compare(cluster: Cluster, client: Client, folder: Path, seed: int) -> int:
    drawn = draw_hub(seed, now=time.time())
    await planned_hubs.clear(client)
    await planned_hubs.lay_out(client, drawn)
    answer = await planned_hubs.foretell(cluster, folder)
    differences = await planned_hubs.carry_out(cluster, client, answer)
    context = {"drawn": drawn.describes, "steps": answer["steps"], "warnings": answer["warnings"]}
    assert not differences, "\n".join([*differences, json.dumps(context), describe(drawn)])
    return len(answer["steps"])
