"""What the forecast is made from may change while the daemon runs."""

import asyncio
from pathlib import Path

import pytest

from reberth.cluster.pods.requests import Version
from reberth.records import OpenMove, Phase, Pod
from reberth.runtime.metrics import REGISTRY
from reberth.values.errors import SettingsError, Unreachable
from rescheduler.daemon.live_forecast import LiveForecast
from rescheduler.settings import SchedulerSettings
from tests.support.background import run_threads_at_once, running
from tests.support.builders import as_record, node, owner, pod
from tests.support.forecast.worlds import world
from tests.support.metrics import read_metric

SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTENDER = "apiVersion: reberth.dev/v1alpha1\nkind: ExtenderSettings\n"
OWNED = owner("ReplicaSet", "rs", uid="rs")


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    run_threads_at_once(monkeypatch)


class Files:
    """Both files, and the forecast that follows them."""

    def __init__(self, folder: Path) -> None:
        self.configuration, self.extender = folder / "scheduler.yaml", folder / "extender.yaml"
        self.configuration.write_text(f"{SCHEDULER}parallelism: 4\n")
        self.extender.write_text(EXTENDER)
        self.changes = 0
        self.refusals: list[SettingsError] = []
        given = SchedulerSettings(configuration=str(self.configuration), extender=str(self.extender))
        self.forecast = LiveForecast(given, on_change=self._count, on_refusal=self.refusals.append)
        self.forecast.take_version((1, 36))

    def _count(self) -> None:
        self.changes += 1


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.looptime
async def test_a_changed_configuration_of_the_scheduler_is_used(files: Files) -> None:
    before = files.forecast.model
    assert before.scheduler.parallelism == 4
    async with running(files.forecast.follow()):
        files.configuration.write_text(f"{SCHEDULER}parallelism: 8\nprofiles: [{{schedulerName: other}}]\n")
        await asyncio.sleep(2.5)
    assert files.forecast.model.scheduler.parallelism == 8
    assert files.forecast.schedulers == {"other"}
    assert before.scheduler.parallelism == 4
    assert files.changes == 1


@pytest.mark.looptime
async def test_changed_settings_of_the_extender_are_used(files: Files) -> None:
    assert files.forecast.model.extender.advice.draw
    async with running(files.forecast.follow()):
        files.extender.write_text(f"{EXTENDER}advice: {{draw: false}}\ndeadline: 5ms\n")
        await asyncio.sleep(2.5)
    assert not files.forecast.model.extender.advice.draw
    assert files.changes == 1


@pytest.mark.looptime
async def test_an_invalid_file_is_named_with_its_field_and_the_last_valid_one_stays(files: Files) -> None:
    async with running(files.forecast.follow()):
        files.configuration.write_text(f"{SCHEDULER}parallelism: few\n")
        await asyncio.sleep(2.5)
        assert read_metric("reberth_settings_valid", kind="KubeSchedulerConfiguration") == 0
        assert read_metric("reberth_settings_valid", kind="ExtenderSettings") == 1
    assert files.forecast.model.scheduler.parallelism == 4
    assert files.changes == 0
    (refusal,) = files.refusals
    assert str(refusal).startswith(f"{files.configuration}: parallelism (line 3): ")
    (remark,) = files.forecast.list_remarks()
    assert remark == f"refused, the last valid version stays in force: {refusal}"


async def test_without_files_there_is_nothing_to_follow() -> None:
    forecast = LiveForecast(SchedulerSettings())
    forecast.take_version((1, 35))
    await forecast.follow()
    assert forecast.schedulers == {"default-scheduler"}
    assert forecast.model.version == (1, 35)
    assert not list(forecast.list_remarks())


def test_a_file_that_is_invalid_from_the_start_is_an_error() -> None:
    with pytest.raises(SettingsError, match="/nowhere: cannot be read"):
        LiveForecast(SchedulerSettings(extender="/nowhere"))


def test_versions_that_nobody_has_proven_are_warned_of_and_shown() -> None:
    forecast = LiveForecast(SchedulerSettings(kubernetes="1.36"))
    assert (forecast.versions, list(forecast.list_warnings())) == ((), [])
    forecast.take_version((1, 38))
    assert forecast.versions == ((1, 38), (1, 36))
    said = "forecasts are not proven for Kubernetes 1.38, only for 1.35, 1.36 and 1.37"
    assert list(forecast.list_warnings()) == [said]
    name = "reberth_rescheduler_kubernetes_version_proven"
    assert [read_metric(name, version=each) for each in ("1.38", "1.36")] == [0, 1]
    forecast.take_version((1, 37))
    assert list(forecast.list_warnings()) == []
    assert [read_metric(name, version=each) for each in ("1.37", "1.36")] == [1, 1]
    assert REGISTRY.get_sample_value(name, {"version": "1.38"}) is None


def test_it_answers_nothing_before_the_version_is_known() -> None:
    with pytest.raises(RuntimeError, match="before the API server's version is known"):
        _ = LiveForecast(SchedulerSettings()).model


def test_it_answers_what_its_model_answers(files: Files) -> None:
    old = pod("old", node="a", owned_by=OWNED, uid="u-old")
    snapshot, asked = world(node("a"), node("b"), old).facts.snapshot, as_record(Pod, old)
    assert files.forecast.look_at(snapshot).find_destinations(asked) == ("b",)
    assert files.forecast.look_at(snapshot).refuse_destinations(asked, ("b",)) is None
    assert files.forecast.look_at(snapshot).refuse_destinations(asked, ("c",)) is not None
    move = OpenMove(
        id="m-1", pod="old", pod_uid="u", controller_uid="rs", from_="b", phase=Phase.EVICTED,
        policy="manual", planned_at="1970-01-01T00:00:00Z", expires_at="1970-01-01T01:00:00Z",
    )  # fmt: skip
    assert files.forecast.look_at(snapshot).score_landing(move, "a") is not None


class Versions:
    """Answers of the API server about its version, one per minute; an error stays the last answer."""

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)

    async def read(self) -> str:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (["1.36"], []),
        (["1.37"], [(1, 37)]),
        (["1.37", "1.36"], []),
        (["1.37", "1.36", "1.37", "1.36", "1.37", "1.37"], [(1, 37)]),
        (["1.37", Unreachable("get version", "cannot connect"), "1.37"], [(1, 37)]),
        (["1.37", "nonsense"], []),
        (["1.37", "1.37", "1.36"], [(1, 37), (1, 36)]),
    ],
)
async def test_a_version_that_two_reads_agree_on_is_used(
    answers: list[str | Exception], expected: list[Version], files: Files
) -> None:
    found: list[Version] = []
    follow = files.forecast.follow_version(Versions(*answers).read, found.append, interval=60)
    async with running(follow):
        await asyncio.sleep(60 * 10)
    assert found == expected
    assert files.forecast.model.version == (expected[-1] if expected else (1, 36))
    assert files.changes == len(expected)
