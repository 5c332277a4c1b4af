"""The hub's own counters: who asked for what, until now."""

import re
from collections import Counter

from localcluster.client import Client

Calls = Counter[str]
"""How many writes there were of what, such as `POST works` or `PATCH resourcebindings/status`."""

_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_OF_OTHERS = ("POST deployments", "leases")
_REPORTS = ("works/status", "deployments/status", "events")


async def count_calls(hub: Client) -> Calls:
    """Count all writes but those of the measurement itself and of the lease, which goes on anyway."""
    calls: Calls = Counter()
    for text, count in _REQUESTS.findall(await hub.get("/metrics")):
        labels = dict(_LABEL.findall(text))
        if labels["verb"] in _WRITES:
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            calls[f"{labels['verb']} {what}"] += int(float(count))
    return Counter({what: count for what, count in calls.items() if not what.endswith(_OF_OTHERS)})


def count_forward(calls: Calls) -> int:
    """Leave out what only tells how it went: Events, and the statuses of Works and templates."""
    return sum(count for what, count in calls.items() if not what.endswith(_REPORTS))
