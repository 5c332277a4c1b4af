"""Forecast one recorded pod, in the output format of `python -m reberth landing`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reberth.cluster.columns import Indices, Ints
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import Version, read_version
from reberth.config import settings
from reberth.forecast.extender import (
    DEFAULTS,
    ExtenderForecastSettings,
    ReberthExtender,
    SnapshotMemory,
    find_reberth_extenders,
    list_other_extenders,
)
from reberth.forecast.forecast import Forecast, forecast
from reberth.forecast.output import PENDING, describe
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod, read_pending_pod
from reberth.forecast.state.profile import KubeScheduler, default_scheduler, parse_scheduler
from reberth.forecast.state.verdict import Refusal, Unforeseeable
from reberth.forecast.state.view import View, view_snapshot
from tests.live.forecast.support.truth import Recorded, objects_of
from tests.support.forecast.cases.lot_extender import REASON, blanks, lots

_TENFOLD = 10
"""An extender scores up to 10, a plugin up to 100."""


class Drawing:
    """The extender that draws lots, as the forecast asks it."""

    def __init__(self, weight: int) -> None:
        self._factor = weight * _TENFOLD

    def filter(self, incoming: IncomingPod, view: View, nodes: Indices) -> Sequence[Refusal]:  # noqa: ARG002 - all pods are alike to it
        refused = blanks(view.nodes.names[node] for node in nodes)
        return [Refusal(REASON, np.isin(view.nodes.names, list(refused)), final=True)]

    def prioritize(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:  # noqa: ARG002 - likewise
        drawn = lots(view.nodes.names[node] for node in nodes)
        return np.array(list(drawn.values()), np.int64) * self._factor

    rank = prioritize


def make_forecast(recorded: Recorded, now: float) -> dict[str, Any]:
    """Tell where a pod that waits would land, and what our extender will grade the nodes with."""
    version = read_version(recorded.kubernetes)
    reading = load_objects(objects_of(recorded), now=now, version=version)
    if reading.faults:
        raise AssertionError(f"not read: {reading.faults}")
    namespace, _, name = recorded.pod.partition("/")
    place = reading.snapshot.pods.named(namespace, name)
    if place is None:
        raise AssertionError(f"{recorded.pod} is not there")
    scheduler, facts = _scheduler_of(recorded, version), SnapshotFacts(reading.snapshot, version)
    incoming, seen = read_pending_pod(facts, place), view_snapshot(facts)
    own = find_reberth_extenders(scheduler, SnapshotMemory(facts, _settings_of(recorded)))
    foreign = list_other_extenders(scheduler)
    drawing = [Drawing(one.weight) for one in scheduler.extenders if one.url_prefix in foreign]
    found = forecast(incoming, seen, scheduler, extenders=[*own, *drawing])
    grades = {one.path: _grade(one, incoming, seen, found) for one in own}
    return {**describe(found, reading.snapshot, state=PENDING), "grades": grades}


def _grade(
    extender: ReberthExtender, incoming: IncomingPod, seen: View, found: Forecast | Unforeseeable
) -> dict[str, int]:
    """Give what it answers of each node; nothing where nobody asks it."""
    if isinstance(found, Unforeseeable) or found.scores is None:
        return {}
    grades = extender.prioritize(incoming, seen, found.feasible) // (extender.weight * _TENFOLD)
    names = [seen.nodes.names[node] for node in found.feasible]
    return dict(zip(names, grades.tolist(), strict=True))


def _scheduler_of(recorded: Recorded, version: Version) -> KubeScheduler:
    if recorded.configuration is None:
        return default_scheduler(version)
    return parse_scheduler(recorded.configuration.encode(), version=version)


def _settings_of(recorded: Recorded) -> ExtenderForecastSettings:
    if recorded.settings is None:
        return DEFAULTS
    return settings.parse(recorded.settings.encode(), ExtenderForecastSettings)
