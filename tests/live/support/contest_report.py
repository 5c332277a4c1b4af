"""Tells what every daemon and every move says when a contest fails: nobody should have to guess why."""

import json
import os
import time
from collections.abc import Iterator, Sequence

from reberth.cluster.kinds import LEDGERS
from tests.live.support.daemon_process import HISTORIES, LEASE, Crowd, Daemon
from tests.support.builders import Object

_LAST_LINES = 25
_SAYING = ("warning", "error", "leading", "move ended", "not settled", "resuming", "move refused")


async def describe_contest(crowd: Crowd, daemons: Sequence[Daemon]) -> str:
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    lines = [f"now {time.time():.3f}, load {load}", *await _describe_objects(crowd)]
    for one in daemons:
        lines += [f"--- {one.name}", *await _describe_daemon(one)]
    return "\n".join(lines)


async def _describe_objects(crowd: Crowd) -> list[str]:
    client = crowd.client
    lease = (await client.get(LEASE))["spec"]
    nodes = (await client.get("/api/v1/nodes"))["items"]
    ledgers = (await client.get(LEDGERS.path()))["items"]
    histories = (await client.get(HISTORIES))["items"]
    red = sorted(node["metadata"]["name"] for node in nodes if node["spec"].get("taints"))
    displaced = [pod for pod in await crowd.pods() if pod["spec"].get("nodeName") in red]
    return [
        f"lease {json.dumps(lease)}",
        f"tainted {' '.join(red)}",
        *(f"displaced {_describe_pod(pod)}" for pod in displaced),
        *(line for each in histories for line in _describe_history(each)),
        *(
            f"debit {json.dumps(debit)}"
            for one in ledgers
            for debit in one.get("status", {}).get("debits", ())
        ),
    ]


def _describe_pod(pod: Object) -> str:
    return (
        f"{pod['metadata']['name']} on {pod['spec']['nodeName']} since {pod['metadata']['creationTimestamp']}"
    )


def _describe_history(history: Object) -> Iterator[str]:
    """Its open moves, and what keeps plans from its workload."""
    name, status = history["metadata"]["name"], history.get("status", {})
    for field in ("open", "refused", "givenUpUntil"):
        if status.get(field):
            yield f"{name} {field} {json.dumps(status[field])}"


async def _describe_daemon(one: Daemon) -> list[str]:
    _, ready = await one.ask("/readyz")
    plan = await one.plan() or {}
    said = [line for line in one.log.splitlines() if any(word in line for word in _SAYING)]
    return [
        ready.strip() or "does not answer",
        f"plan: moves {json.dumps(plan.get('moves', ()))[:4000]}",
        f"plan: refused {json.dumps(plan.get('refused', ()))[:8000]}",
        *said[-_LAST_LINES:],
        "last lines:",
        *one.log.splitlines()[-_LAST_LINES:],
    ]
