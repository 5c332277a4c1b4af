"""The forecast for one pod, in the words of `python -m reberth landing`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from reberth.columns import Indices, Ints
from reberth.landing.asking import Asked, ask_pending
from reberth.landing.describing import PENDING, describe
from reberth.landing.forecasting import forecast
from reberth.landing.ground import Ground
from reberth.landing.profiles import default_scheduler, parse_scheduler
from reberth.landing.verdicts import Refusal
from reberth.landing.viewing import View, view
from reberth.objects import from_objects
from reberth.times import parse_time
from tests.landing_cases.lots import REASON, blanks, lots

NOW = parse_time("2026-01-01T00:00:00Z")
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


def foretell(objects: bytes, pod: str, configuration: str | None, kubernetes: str) -> dict[str, Any]:
    """Tell where a pod that waits would land."""
    major, minor = map(int, kubernetes.split("."))
    version = (major, minor)
    reading = from_objects(objects, now=NOW, version=version)
    if reading.faults:
        raise AssertionError(f"not read: {reading.faults}")
    scheduler = (
        parse_scheduler(configuration.encode(), version=version)
        if configuration
        else default_scheduler(version)
    )
    namespace, _, name = pod.partition("/")
    place = reading.snapshot.pods.named(namespace, name)
    if place is None:
        raise AssertionError(f"{pod} is not there")
    seen = view(Ground(reading.snapshot, version))
    advisers = [Drawing(extender.weight) for extender in scheduler.extenders]
    found = forecast(ask_pending(seen.ground, place), seen, scheduler, advisers=advisers)
    return describe(found, reading.snapshot, state=PENDING)
