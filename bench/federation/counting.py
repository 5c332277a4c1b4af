"""The request counters of the hub's API server."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping

from localcluster.client import Client

Calls = Mapping[str, int]
"""The number of writes by request, such as `POST works` or `PATCH resourcebindings/status`."""

_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_BETWEEN_LOOKS = 0.25
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_OF_OTHERS = ("POST deployments", "POST workloadrebalancers", "leases")
_STATUS, _OF_COPIES = "PATCH resourcebindings/status", "PATCH resourcebindings/status, of copies"
_REPORTS = ("works/status", "deployments/status", "events", "of copies")


async def count_calls(hub: Client) -> Counter[str]:
    """Count all writes but those of the measurement itself and of the lease, which goes on anyway."""
    calls: Counter[str] = Counter()
    for text, count in _REQUESTS.findall(await hub.get("/metrics")):
        labels = dict(_LABEL.findall(text))
        if labels["verb"] in _WRITES:
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            calls[f"{labels['verb']} {what}"] += int(float(count))
    return Counter({what: count for what, count in calls.items() if not what.endswith(_OF_OTHERS)})


async def rest(hub: Client, count: Callable[[Calls], int], *, seconds: float = 3.0) -> None:
    """Wait until the hub has been asked for nothing of what is counted for so long."""
    last, since = count(await count_calls(hub)), time.monotonic()
    while time.monotonic() < since + seconds:
        await asyncio.sleep(_BETWEEN_LOOKS)
        if last != (now := count(await count_calls(hub))):
            last, since = now, time.monotonic()


def part_reports(calls: Counter[str], told: int) -> Counter[str]:
    """Separate the binding statuses about copies from those about clusters."""
    return calls + Counter({_STATUS: -told, _OF_COPIES: told})


def count_all(calls: Calls) -> int:
    return sum(calls.values())


def count_forward(calls: Calls) -> int:
    """Leave out reports: Events, and the status of copies."""
    return sum(count for what, count in calls.items() if not what.endswith(_REPORTS))


def count_work(calls: Calls) -> int:
    """Leave out Events, which have an allowance of their own and the time that it takes."""
    return sum(count for what, count in calls.items() if not what.endswith("events"))


def count_bindings(calls: Calls) -> int:
    """Count the writes on bindings without the status of copies."""
    return sum(
        count for what, count in calls.items() if "resourcebindings" in what and not what.endswith(_REPORTS)
    )
