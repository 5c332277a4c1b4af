"""Build small clusters for forecasts, and incoming pods for them."""

from typing import Any

import numpy as np

from reberth.cluster.columns import Indices
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import NEWEST, Version
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod, predict_replacement, read_pending_pod
from reberth.forecast.state.profile import Profile, default_scheduler
from reberth.forecast.state.verdict import FilterVerdict, Rejected, Unforeseeable
from reberth.forecast.state.view import View, view_snapshot


def world(*objects: dict[str, Any], version: Version = NEWEST) -> View:
    reading = load_objects(objects, now=0.0, version=version)
    assert not reading.faults, reading.faults
    return view_snapshot(SnapshotFacts(reading.snapshot, version))


def place_of(view: View, name: str, namespace: str = "default") -> int:
    place = view.facts.snapshot.pods.named(namespace, name)
    assert place is not None, f"no pod {name}"
    return place


def asking(view: View, name: str = "asking", namespace: str = "default") -> IncomingPod:
    """The waiting pod of this name."""
    return read_pending_pod(view.facts, place_of(view, name, namespace))


def next_of(view: View, name: str, namespace: str = "default") -> IncomingPod:
    found = predict_replacement(view.facts, place_of(view, name, namespace))
    assert isinstance(found, IncomingPod), found
    return found


def everywhere(view: View) -> Indices:
    return np.arange(view.facts.size, dtype=np.int32)


def refused(view: View, verdict: FilterVerdict) -> dict[str, list[str]]:
    """The reasons node by node; a pod that is turned away beforehand is a failure of the test."""
    assert not isinstance(verdict, Rejected | Unforeseeable), verdict
    found: dict[str, list[str]] = {}
    for refusal in verdict:
        for node in np.flatnonzero(refusal.nodes):
            found.setdefault(view.nodes.names[node], []).append(refusal.reason)
    return found


def default_profile(version: Version = NEWEST) -> Profile:
    return default_scheduler(version).profiles["default-scheduler"]
