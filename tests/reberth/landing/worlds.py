"""Small clusters for forecasts, and pods that ask for a node in them."""

from typing import Any

import numpy as np

from reberth.columns import Indices
from reberth.landing.asking import Asked, ask_next, ask_pending
from reberth.landing.ground import Ground
from reberth.landing.profiles import Profile, default_scheduler
from reberth.landing.verdicts import Verdict
from reberth.landing.viewing import View, view
from reberth.objects import from_objects
from reberth.requests import Version

NEWEST: Version = (1, 36)


def world(*objects: dict[str, Any], version: Version = NEWEST) -> View:
    reading = from_objects(objects, now=0.0, version=version)
    assert not reading.faults, reading.faults
    return view(Ground(reading.snapshot, version))


def place_of(seen: View, name: str, namespace: str = "default") -> int:
    place = seen.ground.snapshot.pods.named(namespace, name)
    assert place is not None, f"no pod {name}"
    return place


def asking(seen: View, name: str = "asking", namespace: str = "default") -> Asked:
    """The waiting pod of this name."""
    return ask_pending(seen.ground, place_of(seen, name, namespace))


def next_of(seen: View, name: str, namespace: str = "default") -> Asked:
    return ask_next(seen.ground, place_of(seen, name, namespace))


def everywhere(seen: View) -> Indices:
    return np.arange(seen.ground.size, dtype=np.int32)


def refused(seen: View, verdict: Verdict) -> dict[str, list[str]]:
    """The reasons node by node; a pod that is turned away beforehand is a failure of the test."""
    assert type(verdict) is tuple, verdict
    found: dict[str, list[str]] = {}
    for refusal in verdict:
        for node in np.flatnonzero(refusal.nodes):
            found.setdefault(seen.nodes.names[node], []).append(refusal.reason)
    return found


def default_profile(version: Version = NEWEST) -> Profile:
    return default_scheduler(version).profiles["default-scheduler"]
