"""The closing message of `make up`: the result, all addresses and files, and what to try next."""

import yaml

from localcluster.cluster import Cluster
from localcluster.host import processes
from localproduct.move_view import MoveSnapshot, summarize
from localproduct.processes import HOST
from localproduct.rescheduler_process import policy_of, settings_of
from localproduct.scenario import NAMESPACE

_NEXT = """
Try next, after  eval "$(.venv/bin/python -m localcluster env{name})":

  .venv/bin/python -m localproduct watch{name}        the display until Ctrl-C; in another shell:
  kubectl taint node node-00003 old=yes:NoSchedule    after 5 s its pods violate it and are moved
  kubectl scale -n {namespace} deployment/web --replicas 60   new pods
  kubectl annotate -n reberth-system lease/reberth-rescheduler reberth.dev/paused=true
  kubectl get evictionhistories -A                    the eviction history of each workload
  kubectl get events -A --field-selector reportingComponent=reberth.dev/rescheduler
  curl -s {url}/plan                 the plan, and why other pods are not in it
  curl -s '{url}/why?pod={namespace}/POD'    why one pod is or is not moved
  kill {extender}                     stops one of the two extenders

rescheduler: {url}  /plan /moves /why /metrics /readyz
             policy, reloaded when it changes: {policy}
extenders:   {extenders}  /explain /metrics /readyz
logs:        {logs}
"""


def tell_end(sight: MoveSnapshot, *, seconds: float) -> str:
    return f"\nNo more moves. {summarize(sight)}.\nThe first move was made {seconds:.0f} s after the start."


def tell_addresses(cluster: Cluster) -> str:
    """Print all addresses and files, and what to try next."""
    settings = yaml.safe_load(settings_of(cluster).read_text())
    running = {each.name: each.pid for each in processes.find(cluster.folder)}
    return _NEXT.format(
        name="" if cluster.folder.name == "reberth" else f" --name {cluster.folder.name}",
        namespace=NAMESPACE,
        url=f"http://{HOST}:{settings['server']['port']}",
        extenders=" ".join(f"http://{address}" for address in settings["extenderAccess"]["addresses"]),
        extender=running["extender-0"],
        policy=policy_of(cluster),
        logs=cluster.folder / "logs",
    )
