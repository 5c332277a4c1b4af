"""Readiness needs all kinds of the enabled signals; warnings are only listed."""

from typing import Any, NamedTuple

import aiohttp
import pytest

from extender.answers.call_tracker import CallTracker
from extender.answers.freshness import MirrorState
from extender.answers.settings import CallTrackerSettings
from extender.server.readiness import Readiness
from extender.server.settings import ExtenderSettings
from reberth.cluster.kinds import ALL_RESOURCES, BUDGET, HISTORY, JOB, NODE, POD, REPLICA_SET, SCORE, Resource
from reberth.memory.advice import AdviceSettings
from reberth.runtime.http_server import Server, ServerSettings
from tests.support.memory.advice import LOAD

ABSENT = "not installed in this cluster"
KINDS = {NODE, POD, REPLICA_SET, JOB, BUDGET, HISTORY, SCORE}


class Watcher:
    def __init__(self, resource: Resource[Any]) -> None:
        self.resource = resource
        self.is_synced = True
        self.trouble: str | None = None
        self.age = 1.25


class Mirror(NamedTuple):
    watchers: dict[str, Watcher]


class Told:
    def __init__(self, settings: ExtenderSettings) -> None:
        found = [resource for resource in ALL_RESOURCES if resource.kind in KINDS]
        self.watchers = {resource.name: Watcher(resource) for resource in found}
        self.call_tracker = CallTracker(("avoid", "scores"))
        self.is_stopping = False
        self.remarks: list[str] = []
        mirror: Any = Mirror(self.watchers)
        self.readiness = Readiness(
            mirror,
            self.call_tracker,
            settings=lambda: settings,
            settings_remarks=lambda: self.remarks,
            is_stopping=lambda: self.is_stopping,
        )

    def lose(self, name: str, trouble: str = ABSENT) -> None:
        self.watchers[name].is_synced = False
        self.watchers[name].trouble = trouble

    async def ask(self) -> tuple[int, list[str]]:
        server = Server(
            ServerSettings(port=0), checks=self.readiness.checks(), remarks=self.readiness.remarks
        )
        async with (
            server,
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{server.port}/readyz") as answer,
        ):
            return answer.status, (await answer.text()).splitlines()


async def test_all_is_well() -> None:
    status, lines = await Told(ExtenderSettings()).ask()
    assert status == 200
    assert lines[:3] == ["process: ok", "mirrors: ok", "serving: ok"]
    assert lines[3] == "# evictionhistories: confirmed 1.2 s ago"
    assert len(lines) == 3 + len(KINDS)


@pytest.mark.parametrize(
    ("lost", "settings", "status"),
    [
        ("nodes", ExtenderSettings(), 503),
        ("poddisruptionbudgets", ExtenderSettings(), 503),
        ("nodeplacementscores", ExtenderSettings(), 200),  # no score counts
        ("nodeplacementscores", ExtenderSettings(scores=LOAD), 503),
        ("nodeplacementscores", ExtenderSettings(scores=LOAD, advice=AdviceSettings(scores=False)), 200),
    ],
)
async def test_only_kinds_that_a_signal_needs_must_be_installed(
    lost: str, settings: ExtenderSettings, status: int
) -> None:
    told = Told(settings)
    told.lose(lost)
    found, lines = await told.ask()
    assert found == status
    assert f"# {lost}: never listed, not installed in this cluster" in lines
    if status == 503:
        assert lines[1] == f"mirrors: {lost}: not installed in this cluster"


async def test_a_stale_cache_is_reported_and_the_extender_stays_ready() -> None:
    told = Told(ExtenderSettings())
    told.watchers["pods"].trouble = "no data from the server for 90 s"
    status, lines = await told.ask()
    assert status == 200
    assert "# pods: confirmed 1.2 s ago, no data from the server for 90 s" in lines


def test_mirror_states_list_only_needed_kinds_with_trouble() -> None:
    told = Told(ExtenderSettings())
    assert told.readiness.mirror_states(KINDS) == []
    told.lose("nodes")
    told.watchers["pods"].trouble = "no data from the server for 90 s"
    silent, lost = (
        MirrorState(True, "no data from the server for 90 s", 1.25),
        MirrorState(False, ABSENT, 1.25),
    )
    assert told.readiness.mirror_states({POD, HISTORY}) == [silent]
    assert told.readiness.mirror_states({NODE}) == [lost]


async def test_settings_that_are_not_in_use_are_reported_and_the_extender_stays_ready() -> None:
    told = Told(ExtenderSettings())
    told.remarks = ["restart needed: settings.yaml"]
    status, lines = await told.ask()
    assert status == 200
    assert "# restart needed: settings.yaml" in lines


async def test_a_process_that_stops_is_not_ready() -> None:
    told = Told(ExtenderSettings())
    told.is_stopping = True
    status, lines = await told.ask()
    assert (status, lines[0]) == (503, "process: stopping")


@pytest.mark.parametrize(
    ("settings", "warnings"), [(ExtenderSettings(), 1), (ExtenderSettings(scores=LOAD), 2)]
)
async def test_a_scheduler_that_does_not_ask_is_a_warning(settings: ExtenderSettings, warnings: int) -> None:
    told = Told(settings)
    told.call_tracker.placed_since |= {"avoid": 99, "scores": 99}
    status, lines = await told.ask()
    assert status == 200
    assert len([line for line in lines if line.startswith("# warning: 99 pods")]) == warnings
    assert settings.attention == CallTrackerSettings()
