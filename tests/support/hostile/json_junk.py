"""JSON that no honest API server writes: other types, other sizes, other depths."""

import json
from typing import Any

import msgspec

from tests.support.builders import Object
from tests.support.hostile.dice import HostileDice

_COUNTS = ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas", "observedGeneration")
_FIELDS = (
    *("conditions", "loadBalancer", "phase", "startTime", "completionTime", "succeeded", "failed", "active"),
    *("lastScheduleTime", "desiredNumberScheduled", "numberAvailable", "currentHealthy", "x"),
)
DEEP = "nested as deep as the API server takes it"
"""A member writes this as a list in a list in a list, thousands of times."""
_ENDS: tuple[Any, ...] = (
    DEEP,
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**40, 1.5, 1e308, "", "x", "9" * 5_000),
    *([], {}, [None], [[]], {"a": None}, "x" * 2**16, "x" * 2**20, "2026-11-18T12:00:00Z", "True"),
)
_BALANCERS: tuple[Any, ...] = (
    {"ingress": [{"ip": "10.0.0.1"}, {"ip": 5}, {"hostname": ["x"]}, {"ip": "x" * 1_000}]},
    *({"ingress": ["x", None, 5]}, {"ingress": {"ip": "x"}}, {"ingress": [{"ip": "1.1.1.1"}] * 5_000}),
)


def write(wire: Any) -> bytes:
    """Write an object as whoever does not check his texts."""
    return _encode(wire).replace(f'"{DEEP}"'.encode(), b"[" * 9_000 + b"]" * 9_000)


def _encode(wire: Any) -> bytes:
    """Write it as the API server does, as far as numbers and texts are such as it has."""
    try:
        return msgspec.json.encode(wire)
    except (OverflowError, UnicodeEncodeError):
        return json.dumps(wire).encode(errors="replace")


def junk(dice: HostileDice) -> Any:
    """Any JSON; sometimes nested deeply."""
    end = dice.pick(_ENDS)
    for _ in range(dice.pick((0, 0, 1, 3, 60, 124))):
        end = dice.pick(([end], {"status": end}))
    return end


def status(dice: HostileDice) -> Any:
    """What a member may say of a copy."""
    if dice.random.random() < 0.1:
        return junk(dice)
    said: Object = {name: dice.pick((1, 1, junk(dice))) for name in _COUNTS}
    conditions = [{"type": dice.pick(("Complete", "Failed", "Ready", 5)), "status": "True"}, junk(dice), {}]
    said |= {name: junk(dice) for name in dice.some(_FIELDS)}
    return said | dice.pick(({}, {"conditions": conditions}, {"loadBalancer": dice.pick(_BALANCERS)}))
