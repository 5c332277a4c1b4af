"""The forecast for one pod, in the words of `python -m reberth landing`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reberth.cluster.columns import Indices, Ints
from reberth.cluster.object_files import from_objects
from reberth.cluster.pods.requests import Version, read_version
from reberth.config import settings
from reberth.forecast.extender import (
    DEFAULTS,
    ExtenderSettings,
    Memory,
    OwnExtender,
    find_own,
    list_foreign,
)
from reberth.forecast.forecast import Forecast, forecast
from reberth.forecast.output import PENDING, describe
from reberth.forecast.state.facts import Ground
from reberth.forecast.state.incoming_pod import Asked, ask_pending
from reberth.forecast.state.profile import Scheduler, default_scheduler, parse_scheduler
from reberth.forecast.state.verdict import Refusal, Unforeseeable
from reberth.forecast.state.view import View, view
from tests.live.forecast.support.truth import Recorded, objects_of
from tests.support.forecast.cases.draws import REASON, blanks, lots

_TENFOLD = 10
"""An extender scores up to 10, a plugin up to 100."""


class Drawing:
    """The extender that draws lots, as the forecast asks it."""

    def __init__(self, weight: int) -> None:
        self._factor = weight * _TENFOLD

    def refuse(self, asked: Asked, view: View, nodes: Indices) -> Sequence[Refusal]:  # noqa: ARG002 - all pods are alike to it
        refused = blanks(view.nodes.names[node] for node in nodes)
        return [Refusal(REASON, np.isin(view.nodes.names, list(refused)), final=True)]

    def weigh(self, asked: Asked, view: View, nodes: Indices) -> Ints:  # noqa: ARG002 - likewise
        drawn = lots(view.nodes.names[node] for node in nodes)
        return np.array(list(drawn.values()), np.int64) * self._factor

    prefer = weigh


def foretell(recorded: Recorded, now: float) -> dict[str, Any]:
    """Tell where a pod that waits would land, and what our extender will grade the nodes with."""
    version = read_version(recorded.kubernetes)
    reading = from_objects(objects_of(recorded), now=now, version=version)
    if reading.faults:
        raise AssertionError(f"not read: {reading.faults}")
    namespace, _, name = recorded.pod.partition("/")
    place = reading.snapshot.pods.named(namespace, name)
    if place is None:
        raise AssertionError(f"{recorded.pod} is not there")
    scheduler, ground = _scheduler_of(recorded, version), Ground(reading.snapshot, version)
    asked, seen = ask_pending(ground, place), view(ground)
    own = find_own(scheduler, Memory(ground, _settings_of(recorded)))
    foreign = list_foreign(scheduler)
    drawing = [Drawing(one.weight) for one in scheduler.extenders if one.url_prefix in foreign]
    found = forecast(asked, seen, scheduler, advisers=[*own, *drawing])
    grades = {one.path: _grade(one, asked, seen, found) for one in own}
    return {**describe(found, reading.snapshot, state=PENDING), "grades": grades}


def _grade(
    extender: OwnExtender, asked: Asked, seen: View, found: Forecast | Unforeseeable
) -> dict[str, int]:
    """Give what it answers of each node; nothing where nobody asks it."""
    if isinstance(found, Unforeseeable) or found.scores is None:
        return {}
    grades = extender.weigh(asked, seen, found.feasible) // (extender.weight * _TENFOLD)
    names = [seen.nodes.names[node] for node in found.feasible]
    return dict(zip(names, grades.tolist(), strict=True))


def _scheduler_of(recorded: Recorded, version: Version) -> Scheduler:
    if recorded.configuration is None:
        return default_scheduler(version)
    return parse_scheduler(recorded.configuration.encode(), version=version)


def _settings_of(recorded: Recorded) -> ExtenderSettings:
    if recorded.settings is None:
        return DEFAULTS
    return settings.parse(recorded.settings.encode(), ExtenderSettings)
