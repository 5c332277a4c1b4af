"""python -m localproduct.federated up|down: a hub and two members beside a local cluster that is up.

Each has an API server of its own on the cluster's etcd; the members have nodes, too. The federation works
with the accounts of the manifests. A Deployment on the hub is divided between the members. All of it is taken
down before the cluster is.
"""

import argparse
import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import yaml

from localcluster import folders, manifests, processes
from localcluster.client import Object
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError
from localproduct.joining import FEDERATION_ACCOUNT, MANIFESTS, join, open_member
from localproduct.replicas import HOST, start, write_settings

NAME = "federation"
HUB = "hub"
MEMBERS = {"member1": 3, "member2": 2}
"""With so many nodes each."""
_SHOP = Path(__file__).parent / "federated.yaml"
_DEFINITIONS = MANIFESTS.parent / "crds" / "federation"
_DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/shop"
_POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
_QUICK = {"members": {"probeEvery": "2s", "threshold": "5s"}}
_LONGEST = 120.0

_NEXT = """
Try next:

  export KUBECONFIG={hub}
  kubectl get clusters.cluster.karmada.io,resourcebindings,deployments,works -A
  kubectl scale deployment/shop --replicas 12          divided anew, two to one
  kubectl set image deployment/shop shop=shop:2        rolled out in both members
  kubectl patch configmap/shop -p '{{"data": {{"COLOUR": "red"}}}}'   follows, though no policy names it
  kubectl describe resourcebinding shop-deployment     why it is where it is
  kubectl --kubeconfig {member} scale deployment/shop --replicas 1   put back at once
  kubectl --kubeconfig {member} get pods -o wide

logs: {logs}   metrics: http://{host}:{port}/metrics
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m localproduct.federated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (("up", _up, "bring it up"), ("down", _down, "take it down again")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--name", default="reberth", help="of the cluster (default reberth)")
        command.set_defaults(run=run)
    arguments = parser.parse_args()
    try:
        asyncio.run(arguments.run(arguments.name))
    except LocalClusterError as error:
        sys.stderr.write(f"localproduct: {error}\n")
        return 1
    return 0


async def _up(name: str) -> None:
    cluster = folders.load(name)
    if _is_up(name):
        _say(name, "the federation is up already")
        return
    began = time.monotonic()
    await _down(name, is_quiet=True)  # what a failed start may have left
    try:
        hub, members = await _bring_up(cluster)
        await _show(name, hub, members)
    except BaseException:
        await _down(name, is_quiet=True)
        raise
    _say(name, f"a hub and {len(members)} members after {time.monotonic() - began:.0f} s")
    sys.stdout.write(_tell_next(hub, members))


async def _down(name: str, *, is_quiet: bool = False) -> None:
    """Whoever knows the members goes first, so that nothing of it is missed."""
    there = set(folders.names())
    for part in (HUB, *MEMBERS):
        if f"{name}-{part}" in there:
            await folders.remove(f"{name}-{part}")
            if not is_quiet:
                _say(name, f"{part} gone")


def _is_up(name: str) -> bool:
    return any(each.name == NAME for each in processes.find(folders.clusters_folder() / f"{name}-{HUB}"))


async def _bring_up(cluster: Cluster) -> tuple[Cluster, dict[str, Cluster]]:
    name = cluster.folder.name
    alone = [CONTROLLERS, SCHEDULER, KWOK]
    hub = folders.create(f"{name}-{HUB}", without=alone, shares_etcd_of=cluster)
    members = {each: folders.create(f"{name}-{each}", shares_etcd_of=cluster) for each in MEMBERS}
    await asyncio.gather(*(each.up() for each in (hub, *members.values())))
    await asyncio.gather(*(members[each].add_nodes(count) for each, count in MEMBERS.items()))
    async with hub.client() as client:
        for folder in (_DEFINITIONS, MANIFESTS / "hub"):
            await manifests.apply(client, folder)
        for each, member in members.items():
            async with member.client() as way:
                token = await open_member(way)
            await join(client, each, member, token=token, labels={})
    _start_federation(hub)
    return hub, members


def _start_federation(hub: Cluster) -> None:
    """One process with the rights of the manifests; its settings are quicker than they would be."""
    file = hub.folder / f"{NAME}.yaml"
    server = {"host": HOST, "port": hub.spare_port()}
    write_settings(file, "FederationSettings", {"server": server, **_QUICK})
    way = hub.user(FEDERATION_ACCOUNT)
    start(hub, NAME, NAME, "run", "--settings", str(file), "--kubeconfig", str(way))


async def _show(name: str, hub: Cluster, members: dict[str, Cluster]) -> None:
    """Put a workload on the hub, wait until it runs, and say where."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(hub.client())
        for each in members:
            await client.wait(f"{_CLUSTERS}/{each}", _is_known, seconds=_LONGEST)
        for wanted in yaml.safe_load_all(_SHOP.read_text()):
            await client.create(_collection(wanted), wanted)
        whole = await client.wait(_DEPLOYMENT, _is_available, seconds=_LONGEST)
        _say(name, f"Deployment shop on the hub: {_count(whole)}")
        for each, member in members.items():
            way = await stack.enter_async_context(member.client())
            _say(name, f"  in {each}: {_count(await way.get(_DEPLOYMENT))}")


def _collection(wanted: Object) -> str:
    kinds = {"Deployment": "/apis/apps/v1/namespaces/default/deployments", "PropagationPolicy": _POLICIES}
    return kinds.get(wanted["kind"], "/api/v1/namespaces/default/configmaps")


def _is_known(cluster: Object) -> bool:
    """Tell whether the federation has seen what the member offers; before it gets nothing."""
    return bool(cluster.get("status", {}).get("apiEnablements"))


def _is_available(found: Object) -> bool:
    return bool(found["status"].get("availableReplicas", 0) >= found["spec"]["replicas"])


def _count(found: Object) -> str:
    return f"{found['status'].get('availableReplicas', 0)} of {found['spec']['replicas']} replicas available"


def _tell_next(hub: Cluster, members: dict[str, Cluster]) -> str:
    first = next(iter(members.values()))
    return _NEXT.format(
        hub=hub.kubeconfig,
        member=first.kubeconfig,
        logs=hub.folder / "logs",
        host=HOST,
        port=hub.spare_port(),
    )


def _say(name: str, text: str) -> None:
    sys.stdout.write(f"{name}: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
