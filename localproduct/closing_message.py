"""What `make up` says at its end: what came of it, where everything is, and what to try next."""

import yaml

from localcluster.cluster import Cluster
from localcluster.host import processes
from localproduct.move_view import Sight, summarize
from localproduct.processes import HOST
from localproduct.rescheduler_process import policy_of, settings_of
from localproduct.scenario import NAMESPACE

_NEXT = """
Try next, after  eval "$(.venv/bin/python -m localcluster env{name})":

  .venv/bin/python -m localproduct watch{name}        the picture again, until Ctrl-C; then in another shell:
  kubectl taint node node-00003 old=yes:NoSchedule    its pods break a rule now, and are moved off
  kubectl scale -n {namespace} deployment/web --replicas 60   new pods, new places
  kubectl annotate -n reberth-system lease/reberth-rescheduler reberth.dev/paused=true
  kubectl get evictionhistories -A                    what every workload has been through
  kubectl get events -A --field-selector reportingComponent=reberth.dev/rescheduler
  curl -s {url}/plan                 what is planned, and why the rest is not
  curl -s '{url}/why?pod={namespace}/POD'    what everybody says of one pod
  kill {extender}                     one of the two extenders: what is still promised?

rescheduler: {url}  /plan /moves /why /metrics /readyz
             its policy, taken at once when it is changed: {policy}
extenders:   {extenders}  /explain /metrics /readyz
logs:        {logs}
"""


def tell_end(sight: Sight, *, seconds: float) -> str:
    return f"\nQuiet again. {summarize(sight)}.\nThe first pod was moved {seconds:.0f} s after the start."


def tell_addresses(cluster: Cluster) -> str:
    """Say where everything is, and what to try next."""
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
