"""The forecast, which follows kube-scheduler's configuration, the extender's settings and the API version.

The files are mounted ConfigMaps, which an operator edits, and the API server is upgraded while the daemon
runs. A forecast from outdated ones would expect landings that the running scheduler does not make.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from reberth.cluster.pods.requests import Version, read_version, write_version
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.extender import DEFAULTS, ExtenderForecastSettings
from reberth.forecast.state.profile import API_VERSION, KubeSchedulerConfiguration
from reberth.forecast.state.proven_versions import describe_unproven
from reberth.runtime.live_files import LiveSettings
from reberth.runtime.logs import Log
from reberth.values.errors import ReberthError, SettingsError
from rescheduler.observe.forecaster import Forecaster, SnapshotForecaster
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.settings import SchedulerSettings, make_forecaster
from rescheduler.telemetry.recording import show_versions

VERSION_INTERVAL = 300.0  # seconds between two reads of the API server's version

log = Log(__name__)


class LiveForecast:
    """Forecasts from the files as they are now; an invalid file is refused, and its last valid content stays.

    A snapshot is looked at with one model, even if the model changes meanwhile. Opening it raises a
    SettingsError if a file is invalid from the start; before `take_version` it answers nothing.
    """

    def __init__(
        self,
        given: SchedulerSettings,
        *,
        on_change: Callable[[], None] = lambda: None,
        on_refusal: Callable[[SettingsError], None] = lambda _: None,
    ) -> None:
        self._given = given
        self._on_change = on_change
        self._version: Version | None = None
        self._current: Forecaster | None = None
        self._configuration: LiveSettings[KubeSchedulerConfiguration] | None = None
        self._extender: LiveSettings[ExtenderForecastSettings] | None = None
        if given.configuration:
            self._configuration = LiveSettings(
                Path(given.configuration),
                KubeSchedulerConfiguration,
                api_version=API_VERSION,
                on_change=self._renew,
                on_refusal=on_refusal,
            )
        if given.extender:
            self._extender = LiveSettings(
                Path(given.extender),
                ExtenderForecastSettings,
                on_change=self._renew,
                on_refusal=on_refusal,
            )

    def take_version(self, version: Version) -> None:
        """Forecast for this version of Kubernetes, unless the settings give another."""
        self._version = version
        self._renew()

    async def follow(self) -> None:
        """Follow the files. Ends at once if there is none, else runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for file in self._files():
                group.create_task(file.follow())

    async def follow_version(
        self,
        read: Callable[[], Awaitable[str]],
        on_change: Callable[[Version], None],
        *,
        interval: float = VERSION_INTERVAL,
    ) -> NoReturn:
        """Read the API server's version again and again, and call `on_change` if it has changed.

        A change counts once two reads in a row agree: while API servers are upgraded one by one, each read
        may be answered by another one.
        """
        last = self._version
        while True:
            await asyncio.sleep(interval)
            try:
                found = read_version(await read())
            except (ReberthError, ValueError) as error:
                log.warning("version of the API server not read", reason=str(error))
                continue
            if found == last != self._version:
                log.info("version of the API server has changed", version=write_version(found))
                self.take_version(found)
                on_change(found)
            last = found

    @property
    def versions(self) -> tuple[Version, ...]:
        """The version of the API server, then that of kube-scheduler if the settings give another."""
        if self._version is None:
            return ()
        return tuple(dict.fromkeys((self._version, self.model.version)))

    def list_warnings(self) -> Iterator[str]:
        """Warn of versions on which nobody has proven the forecast."""
        yield from filter(None, map(describe_unproven, self.versions))

    def list_remarks(self) -> Iterator[str]:
        """Tell which files are not in use, and why."""
        for file in self._files():
            yield from file.list_remarks()

    @property
    def model(self) -> SchedulerModel:
        return self._now.model

    @property
    def schedulers(self) -> frozenset[str]:
        return self._now.schedulers

    def look_at(self, snapshot: Snapshot) -> SnapshotForecaster:
        return self._now.look_at(snapshot)

    @property
    def _now(self) -> Forecaster:
        if self._current is None:
            raise RuntimeError("a forecast is asked before the API server's version is known")
        return self._current

    def _files(self) -> Iterator[LiveSettings[Any]]:
        yield from filter(None, (self._configuration, self._extender))

    def _renew(self, _: object = None) -> None:
        if self._version is None:
            return
        configuration = self._configuration.current if self._configuration else KubeSchedulerConfiguration()
        extender = self._extender.current if self._extender else DEFAULTS
        is_first = self._current is None
        self._current = make_forecaster(self._given, configuration, extender, self._version)
        show_versions(self.versions)
        if not is_first:
            log.info("forecasts use the changed scheduler from now on")
            self._on_change()
