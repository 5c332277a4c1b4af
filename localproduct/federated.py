"""python -m localproduct.federated up|down: a hub and two members beside a running local cluster.

Each has its own API server on the cluster's etcd; the members have nodes. The federation uses the accounts
of the manifests. A Deployment is created while one member is down; when that member is back, a
WorkloadRebalancer brings replicas to it. Take all of it down before the cluster.
"""

import argparse
import asyncio
import sys
import time
from functools import partial

from localcluster import manifests, state_dir
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localproduct.member_join import FEDERATION_ACCOUNT, MANIFESTS, admit
from localproduct.processes import HOST, start, write_settings
from localproduct.rebalance_demo import LATE, REBALANCER, show

NAME = "federation"
HUB = "hub"
MEMBERS = {"member1": 3, "member2": 2}
"""The members, with the number of nodes of each."""
_DEFINITIONS = MANIFESTS.parent / "crds" / "federation"
_QUICK = {"members": {"probeEvery": "2s", "threshold": "5s"}}

_NEXT = """
Try next:

  export KUBECONFIG={hub}
  kubectl get workloadrebalancers -o yaml              the requests and their results
  kubectl describe deployment/shop                     the same, as Events
  kubectl patch clusters.cluster.karmada.io member1 --type merge \\
    -p '{{"spec": {{"taints": [{{"key": "lost", "effect": "NoExecute"}}]}}}}'   all go to member2
  kubectl patch clusters.cluster.karmada.io member1 --type merge -p '{{"spec": {{"taints": []}}}}'
  kubectl create -f {again}   rebalance again
  kubectl get clusters.cluster.karmada.io,resourcebindings,deployments,works -A
  kubectl scale deployment/shop --replicas 12          divided again, two to one
  kubectl set image deployment/shop shop=shop:2        rolled out in both members
  kubectl patch configmap/shop -p '{{"data": {{"COLOUR": "red"}}}}'   propagated with it
  kubectl describe resourcebinding shop-deployment     why it runs where it runs
  kubectl --kubeconfig {member} scale deployment/shop --replicas 1   reverted at once
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
    for name, run, text in (("up", _up, "start it"), ("down", _down, "stop it and delete its folders")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--name", default="reberth", help="name of the cluster (default reberth)")
        command.set_defaults(run=run)
    arguments = parser.parse_args()
    try:
        asyncio.run(arguments.run(arguments.name))
    except LocalClusterError as error:
        sys.stderr.write(f"localproduct: {error}\n")
        return 1
    return 0


async def _up(name: str) -> None:
    cluster = state_dir.load(name)
    if _is_up(name):
        _say(name, "the federation is already running")
        return
    began = time.monotonic()
    await _down(name, is_quiet=True)  # leftovers of a failed start
    try:
        hub, members = await _bring_up(cluster)
        await show(hub, members, partial(_say, name))
    except BaseException:
        await _down(name, is_quiet=True)
        raise
    _say(name, f"a hub and {len(members)} members after {time.monotonic() - began:.0f} s")
    sys.stdout.write(_tell_next(hub, members))


async def _down(name: str, *, is_quiet: bool = False) -> None:
    """Stop the hub first: it knows the members."""
    there = set(state_dir.names())
    for part in (HUB, *MEMBERS):
        if f"{name}-{part}" in there:
            await state_dir.remove(f"{name}-{part}")
            if not is_quiet:
                _say(name, f"{part} deleted")


def _is_up(name: str) -> bool:
    return any(each.name == NAME for each in processes.find(state_dir.clusters_folder() / f"{name}-{HUB}"))


async def _bring_up(cluster: Cluster) -> tuple[Cluster, dict[str, Cluster]]:
    name = cluster.folder.name
    alone = [CONTROLLERS, SCHEDULER, KWOK]
    hub = state_dir.create(f"{name}-{HUB}", without=alone, shares_etcd_of=cluster)
    members = {each: state_dir.create(f"{name}-{each}", shares_etcd_of=cluster) for each in MEMBERS}
    await asyncio.gather(*(each.up() for each in (hub, *members.values())))
    await asyncio.gather(*(members[each].add_nodes(count) for each, count in MEMBERS.items()))
    async with hub.client() as client:
        for folder in (_DEFINITIONS, MANIFESTS / "hub"):
            await manifests.apply(client, folder)
        for each in members.keys() - {LATE}:
            await admit(client, each, members[each])
    _start_federation(hub)
    return hub, members


def _start_federation(hub: Cluster) -> None:
    """Start one process with the rights of the manifests, and with shorter intervals than the defaults."""
    file = hub.folder / f"{NAME}.yaml"
    server = {"host": HOST, "port": hub.spare_port()}
    write_settings(file, "FederationSettings", {"server": server, **_QUICK})
    way = hub.user(FEDERATION_ACCOUNT)
    start(hub, NAME, NAME, "run", "--settings", str(file), "--kubeconfig", str(way))


def _tell_next(hub: Cluster, members: dict[str, Cluster]) -> str:
    first = next(iter(members.values()))
    return _NEXT.format(
        hub=hub.kubeconfig,
        again=REBALANCER,
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
