import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar, NoReturn

import pytest

from reberth.config.settings import Section
from reberth.runtime import metrics
from reberth.runtime.live_files import LiveSettings, follow, look
from reberth.values.errors import SettingsError
from tests.support.background import run_threads_at_once, running
from tests.support.metrics import read_metric

HEADER = "apiVersion: reberth.dev/v1alpha1\nkind: DemoSettings\n"
FAILURES = "reberth_settings_reload_failures_total"
VALID = "reberth_settings_valid"


class DemoSettings(Section, frozen=True):
    number: int
    listen_port: int = 80


def settings(number: int | str) -> str:
    return f"{HEADER}number: {number}\n"


def measured(name: str, kind: str = "DemoSettings") -> float:
    return read_metric(name, kind=kind)


@pytest.fixture(autouse=True)
def _no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    run_threads_at_once(monkeypatch)


class Followed:
    """Settings in a file, with what was called back."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.changes: list[DemoSettings] = []
        self.refusals: list[SettingsError] = []
        self.live = LiveSettings(
            file,
            DemoSettings,
            restarting=["listen_port"],
            on_change=self.changes.append,
            on_refusal=self.refusals.append,
        )

    def numbers(self) -> list[int]:
        return [change.number for change in self.changes]


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    file = tmp_path / "settings.yaml"
    file.write_text(settings(1))
    return Followed(file)


def mount(folder: Path, version: str, number: int | str) -> None:
    """Do what a kubelet does: write a new folder, then swap the link `..data` to it."""
    (folder / version).mkdir()
    (folder / version / "settings.yaml").write_text(settings(number))
    (folder / "..new").symlink_to(version)
    (folder / "..new").rename(folder / "..data")


@pytest.mark.looptime
async def test_a_change_is_taken_and_called_back(followed: Followed) -> None:
    async with running(followed.live.follow()):
        followed.file.write_text(settings(2))
        await asyncio.sleep(2.5)
    assert followed.live.current == DemoSettings(2)
    assert followed.numbers() == [2]


@pytest.mark.looptime
async def test_the_swap_of_a_mounted_configmap_is_followed(tmp_path: Path) -> None:
    mount(tmp_path, "..v1", 1)
    (tmp_path / "settings.yaml").symlink_to("..data/settings.yaml")
    followed = Followed(tmp_path / "settings.yaml")
    async with running(followed.live.follow()):
        mount(tmp_path, "..v2", 2)
        await asyncio.sleep(2.5)
        mount(tmp_path, "..v3", 3)
        await asyncio.sleep(2.5)
    assert followed.numbers() == [2, 3]


@pytest.mark.looptime
async def test_a_change_that_keeps_size_and_time_is_noticed(followed: Followed) -> None:
    before = followed.file.stat()
    async with running(followed.live.follow()):
        followed.file.write_text(settings(9))
        os.utime(followed.file, ns=(before.st_atime_ns, before.st_mtime_ns))
        await asyncio.sleep(2.5)
    assert followed.file.stat().st_mtime_ns == before.st_mtime_ns
    assert followed.numbers() == [9]


@pytest.mark.looptime
async def test_a_change_between_opening_and_following_is_noticed(followed: Followed) -> None:
    followed.file.write_text(settings(5))
    async with running(followed.live.follow()):
        await asyncio.sleep(2.5)
    assert followed.numbers() == [5]


@pytest.mark.looptime
async def test_a_file_that_does_not_change_is_left_alone(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    async with running(followed.live.follow()):
        await asyncio.sleep(30)
        assert not caplog.records
        followed.file.write_text(settings(2))
        await asyncio.sleep(30)
    assert [record.message for record in caplog.records] == ["settings reloaded"]


@pytest.mark.looptime
async def test_a_bad_file_keeps_the_last_good_one_and_is_reported_once(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    failures = measured(FAILURES)
    async with running(followed.live.follow()):
        followed.file.write_text(settings("many"))
        await asyncio.sleep(30)
        assert measured(VALID) == 0
    assert followed.live.current == DemoSettings(1)
    assert followed.changes == []
    assert followed.live.refusal is not None
    (refusal,) = followed.refusals
    assert str(refusal) == f'{followed.file}: number (line 3): expected a whole number, found "many"'
    assert measured(FAILURES) == failures + 1
    (said,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert vars(said)["fields"] == {"error": str(refusal)}


@pytest.mark.looptime
@pytest.mark.parametrize("text", ["0x" + "f" * 5000, "9" * 5000, '"\\ud800"'], ids=["hex", "digits", "half"])
async def test_text_that_cannot_be_shown_is_refused_as_any_other(followed: Followed, text: str) -> None:
    async with running(followed.live.follow()):
        followed.file.write_text(settings(text))
        await asyncio.sleep(3)
        (refusal,) = followed.refusals
        assert f"{followed.file}: number (line 3)" in str(refusal)
        followed.file.write_text(settings(2))
        await asyncio.sleep(3)
    assert followed.numbers() == [2]


@pytest.mark.looptime
async def test_every_distinct_bad_content_is_reported(followed: Followed) -> None:
    async with running(followed.live.follow()):
        for content in (settings("many"), "", settings("few")):
            followed.file.write_text(content)
            await asyncio.sleep(10)
    assert [str(refusal).rpartition(": ")[2] for refusal in followed.refusals] == [
        'expected a whole number, found "many"', "is empty", 'expected a whole number, found "few"',
    ]  # fmt: skip


@pytest.mark.looptime
async def test_a_missing_file_keeps_the_last_good_until_it_is_back(followed: Followed) -> None:
    async with running(followed.live.follow()):
        followed.file.unlink()
        await asyncio.sleep(10)
        assert len(followed.refusals) == 1
        assert measured(VALID) == 0
        followed.file.write_text(settings(1))
        await asyncio.sleep(2.5)
    assert measured(VALID) == 1
    assert followed.changes == []


@pytest.mark.looptime
async def test_a_good_file_after_a_bad_one_is_taken(followed: Followed) -> None:
    async with running(followed.live.follow()):
        followed.file.write_text("bad")
        await asyncio.sleep(2.5)
        followed.file.write_text(settings(4))
        await asyncio.sleep(2.5)
    assert followed.numbers() == [4]
    assert measured(VALID) == 1
    assert followed.live.refusal is None


@pytest.mark.looptime
async def test_a_change_of_a_comment_is_no_change_of_the_settings(followed: Followed) -> None:
    metrics.SETTINGS_LAST_RELOAD_SUCCESS.labels("DemoSettings").set(0)
    async with running(followed.live.follow()):
        followed.file.write_text(f"# new\n{settings(1)}")
        await asyncio.sleep(2.5)
    assert followed.changes == []
    assert measured("reberth_settings_last_reload_success_timestamp_seconds") > 0


@pytest.mark.looptime
async def test_a_field_that_needs_a_restart_is_named_until_it_is_as_before(
    followed: Followed, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = "reberth_settings_awaiting_restart"
    async with running(followed.live.follow()):
        followed.file.write_text(f"{settings(2)}listenPort: 81\n")
        await asyncio.sleep(2.5)
        assert measured(waiting) == 1
        (remark,) = followed.live.list_remarks()
        assert remark == f"restart needed for changed fields of {followed.file}: listenPort"
        (said,) = [record for record in caplog.records if record.levelname == "WARNING"]
        assert vars(said)["fields"] == {"file": str(followed.file), "fields": ["listenPort"]}
        followed.file.write_text("bad")
        await asyncio.sleep(2.5)
        assert len(list(followed.live.list_remarks())) == 2
        followed.file.write_text(settings(3))
        await asyncio.sleep(2.5)
    assert measured(waiting) == 0
    assert not list(followed.live.list_remarks())
    assert followed.numbers() == [2, 3]


class PartOfDemo(Section, frozen=True):
    FILE_KIND: ClassVar[str] = "DemoSettings"

    number: int


def test_a_file_of_which_a_part_is_read_is_measured_by_its_own_kind(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("apiVersion: demo/v1\nkind: DemoSettings\nnumber: 7\n")
    metrics.SETTINGS_VALID.labels("DemoSettings").set(0)
    live = LiveSettings(tmp_path / "other", PartOfDemo, api_version="demo/v1")
    assert live.current == PartOfDemo(7)
    assert measured(VALID) == 1


def test_a_file_that_is_bad_from_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        LiveSettings(tmp_path / "none.yaml", DemoSettings)


class Looks:
    """A file and a count of its reloads."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.reloads: list[str] = []

    async def reload(self) -> None:
        self.reloads.append(self.file.read_text())

    def follow(self, interval: float) -> Awaitable[NoReturn]:
        return follow([self.file], self.reload, seen=look([self.file]), interval=interval)


@pytest.fixture
def looks(tmp_path: Path) -> Looks:
    (tmp_path / "a").write_text("old")
    return Looks(tmp_path / "a")


@pytest.mark.looptime
async def test_a_half_written_file_is_waited_for(looks: Looks) -> None:
    async with running(looks.follow(10)):
        await asyncio.sleep(5)
        for content in ("n", "ne", "new"):
            looks.file.write_text(content)
            await asyncio.sleep(10)
        assert looks.reloads == []
        await asyncio.sleep(10)
    assert looks.reloads == ["new"]


@pytest.mark.looptime
async def test_a_reverted_change_is_no_reload(looks: Looks) -> None:
    async with running(looks.follow(10)):
        await asyncio.sleep(5)
        for content in ("new", "old", "old"):
            looks.file.write_text(content)
            await asyncio.sleep(10)
    assert looks.reloads == []


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_text("b"),
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.mkdir()),
    ],
)
def test_a_look_differs_when_the_content_does(tmp_path: Path, change: Callable[[Path], object]) -> None:
    (tmp_path / "a").write_text("a")
    before = look([tmp_path / "a"])
    assert before == look([tmp_path / "a"])
    change(tmp_path / "a")
    assert before != look([tmp_path / "a"])


@pytest.mark.looptime
async def test_a_file_that_meets_a_fault_is_refused_and_the_next_version_is_taken(
    followed: Followed, monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    load = followed.live._load

    def stumble() -> DemoSettings:
        read = load()
        if read.number == 2:
            raise UnicodeError("surrogates not allowed")
        return read

    monkeypatch.setattr(followed.live, "_load", stumble)
    async with running(followed.live.follow()):
        followed.file.write_text(settings(2))
        await asyncio.sleep(3)
        (refusal,) = followed.refusals
        assert "UnicodeError: surrogates not allowed" in str(refusal)
        assert measured(VALID) == 0
        followed.file.write_text(settings(3))
        await asyncio.sleep(3)
    assert followed.numbers() == [3]
    assert measured(VALID) == 1
    assert faults
    faults.clear()
