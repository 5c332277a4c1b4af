"""Shows a rebalance: a member that was down when replicas were placed gets its share when it is back.

The federation does not move running replicas by itself. They stay in the wrong cluster until a
WorkloadRebalancer asks for it.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from localcluster.client import Client, Object
from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localproduct.member_join import admit
from localproduct.ready_pods import ReadyPods, counting
from localproduct.rebalance_view import RebalanceSnapshot, draw, look, summarize, tell_news
from localproduct.terminal import Screen

LATE = "member1"
REBALANCER = Path(__file__).parent / "rebalancer.yaml"
_SHOP = Path(__file__).parent / "federated.yaml"
_DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/shop"
_POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
_BINDING = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings/shop-deployment"
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
_REBALANCERS = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"
_LONGEST = 120.0
_PAUSE = 0.25

Tell = Callable[[str], None]


async def show(hub: Cluster, members: Mapping[str, Cluster], tell: Tell) -> None:
    """Place a workload while a member is missing, and have its replicas come there later."""
    async with hub.client() as client, counting(members, "shop") as pods:
        for each in members.keys() - {LATE}:
            await client.wait(f"{_CLUSTERS}/{each}", _is_known, seconds=_LONGEST)
        for wanted in yaml.safe_load_all(_SHOP.read_text()):
            await client.create(_collection(wanted), wanted)
        await client.wait(_DEPLOYMENT, _is_available, seconds=_LONGEST)
        tell(f"Deployment shop was created while {LATE} was down; its policy wants two thirds there:")
        await _tell_places(client, members, tell)
        await admit(client, LATE, members[LATE])
        await client.wait(f"{_CLUSTERS}/{LATE}", _is_known, seconds=_LONGEST)
        tell(f"{LATE} is back. Nothing moves until a WorkloadRebalancer asks for it:")
        binding = await client.get(_BINDING)
        await pods.become({each["name"]: each["replicas"] for each in binding["spec"]["clusters"]})
        pods.fewest = binding["spec"]["replicas"]
        made = await client.create(_REBALANCERS, yaml.safe_load(REBALANCER.read_text()))
        sight = await _follow(client, f"{_REBALANCERS}/{made['metadata']['name']}", pods, members)
        tell(f"rebalanced: {summarize(sight)}")
        await client.wait(_DEPLOYMENT, _is_available, seconds=_LONGEST)
        await _tell_places(client, members, tell)


async def _follow(
    client: Client, path: str, pods: ReadyPods, members: Mapping[str, Cluster]
) -> RebalanceSnapshot:
    """Show what happens until everything is at home; gives the last sight."""
    screen: Screen[RebalanceSnapshot] = Screen(sys.stdout, draw, tell_news)
    last: RebalanceSnapshot | None = None
    try:
        async with asyncio.timeout(_LONGEST):
            while last is None or not last.is_home:
                binding, rebalancer = await asyncio.gather(client.get(_BINDING), client.get(path))
                sight = look(binding, rebalancer, ready=pods.places, fewest=pods.fewest, clusters=members)
                if sight != last:
                    screen.show(sight)
                last = sight
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        raise LocalClusterError(f"the replicas were not rebalanced within {_LONGEST:g} s") from error
    return last


async def _tell_places(client: Client, members: Mapping[str, Cluster], tell: Tell) -> None:
    tell(f"Deployment shop on the hub: {_count(await client.get(_DEPLOYMENT))}")
    given = {each["name"]: each for each in (await client.get(_BINDING))["spec"]["clusters"]}
    for name, member in members.items():
        if name not in given:
            tell(f"  in {name}: nothing")
            continue
        async with member.client() as way:
            tell(f"  in {name}: {_count(await way.get(_DEPLOYMENT))}")


def _collection(wanted: Object) -> str:
    kinds = {"Deployment": _DEPLOYMENT.rpartition("/")[0], "PropagationPolicy": _POLICIES}
    return kinds.get(wanted["kind"], "/api/v1/namespaces/default/configmaps")


def _is_known(cluster: Object) -> bool:
    """Tell whether the federation has seen the member's capacity; before that it gets no replicas."""
    return bool(cluster.get("status", {}).get("apiEnablements"))


def _is_available(found: Any) -> bool:  # noqa: ANN401 - an object of the API
    """Tell whether just the wanted replicas are there: for a moment old ones count beside the new ones."""
    return bool(found["status"].get("availableReplicas", 0) == found["spec"]["replicas"])


def _count(found: Any) -> str:  # noqa: ANN401 - an object of the API
    return f"{found['status'].get('availableReplicas', 0)} of {found['spec']['replicas']} replicas available"
