"""Parse kube-scheduler's message about an unschedulable pod: how many nodes for which reason."""

import re
from typing import NamedTuple

from tests.live.forecast.support.recording_extender import REFUSED

_HEAD = re.compile(r"^0/(\d+) nodes are available: ")
# What PostFilter plugins add is no reason for a refusal.
_TAIL = re.compile(r"\.(?: not found|(?: no new claims to deallocate,)? preemption: .*)$", re.DOTALL)
_BETWEEN = re.compile(r", (?=\d+ )")
_COUNTED = re.compile(r"^(\d+) (.*)$", re.DOTALL)


class Histogram(NamedTuple):
    """How often each reason was given, if known; or why the pod was turned away beforehand."""

    counts: dict[str, int] | None
    rejected: str | None


def read_message(message: str) -> Histogram:
    body = _TAIL.sub("", _HEAD.sub("", message))
    parts = [_COUNTED.match(part) for part in _BETWEEN.split(body)]
    if not all(parts):
        return Histogram({}, body)
    counts = {part[2]: int(part[1]) for part in parts if part and part[2] != REFUSED}
    return Histogram(counts, None)
