"""What an operator may set of the rescheduler."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from reberth.client.api import ApiSettings
from reberth.client.lease import LeaseSettings
from reberth.client.watcher import WatchSettings
from reberth.cluster.pods.requests import Version, read_version
from reberth.config import settings
from reberth.config.settings import Section
from reberth.forecast.extender import DEFAULTS, ExtenderForecastSettings
from reberth.forecast.state.profile import API_VERSION, KubeSchedulerConfiguration, arrange
from reberth.memory.notes import BALANCE_LIFE
from reberth.runtime.http_server import ServerSettings
from reberth.runtime.logs import LogSettings
from reberth.values.duration import Duration, PositiveDuration
from rescheduler.observe.forecaster import Forecaster
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.drift import DriftSettings

_LONGEST_WAIT = 10.0
_ADDRESS = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


class ClientTls(Section, frozen=True):
    """With what certificate the extenders are asked, and by whose authority theirs is good."""

    ca: str
    certificate: str
    key: str
    server_name: str = ""
    """The name in their certificate, where it is not the address that they are asked at."""


class ExtenderAccess(Section, frozen=True):
    """Where the extenders are: all endpoints of a Service, or these addresses (host:port)."""

    namespace: str = "reberth-system"
    service: str = "reberth-extender"
    addresses: tuple[str, ...] = ()
    tls: ClientTls | None = None
    wait: PositiveDuration = PositiveDuration(2)
    """A move is dropped if they have not all seen it after so long."""
    try_every: PositiveDuration = PositiveDuration(5)
    """So often it is tried whether they can be asked at all."""

    def __post_init__(self) -> None:
        if self.wait > _LONGEST_WAIT:
            raise ValueError(f"wait must be at most {_LONGEST_WAIT:g}s: an extender waits no longer")
        wrong = [address for address in self.addresses if not _ADDRESS.fullmatch(address)]
        if wrong:
            raise ValueError(f"addresses must be of the form host:port, not {wrong[0]!r}")


class SchedulerSettings(Section, frozen=True):
    """What the forecast must know of the scheduler; nobody can ask it through the API server."""

    configuration: str = ""
    """The file with its KubeSchedulerConfiguration; without one, it is taken for unconfigured."""
    extender: str = ""
    """The file with the settings of Reberth's extender, if the configuration names it."""
    kubernetes: str = ""
    """Its version, like 1.36; without one, that of the API server."""

    def __post_init__(self) -> None:
        if self.kubernetes:
            read_version(self.kubernetes)


class CycleSettings(Section, frozen=True):
    """When the daemon plans anew."""

    interval: Duration = Duration(60)
    """So often, whatever happens."""
    settle: Duration = Duration(2)
    """So long after an event that matters, in which more may come."""
    least_pause: Duration = Duration(5)
    """Events begin no cycle sooner after the last one."""
    pending: Duration = Duration(30)
    """A pod that waits for a node for so long is such an event."""


class ReschedulerSettings(Section, frozen=True):
    """The rescheduler's settings. What moves, and how much, stands in its policy."""

    extender: Literal["required", "optional", "none"] = "required"
    extender_access: ExtenderAccess = ExtenderAccess()
    scheduler: SchedulerSettings = SchedulerSettings()
    cycle: CycleSettings = CycleSettings()
    drift: DriftSettings = DriftSettings()
    lease: LeaseSettings = LeaseSettings()
    api: ApiSettings = ApiSettings()
    watch: WatchSettings = WatchSettings()
    server: ServerSettings = ServerSettings(port=8445)
    probes: ServerSettings | None = None
    """A second address for /healthz, /readyz and /metrics alone: a kubelet shows no client certificate."""
    log: LogSettings = LogSettings()
    note_life: PositiveDuration = PositiveDuration(BALANCE_LIFE)
    doubt: Duration = Duration(30)
    """So long a pod is looked at after an eviction that was not answered, before it counts as not evicted."""


# What a running daemon cannot take from a changed file.
RESTARTING_FIELDS = ("extender_access", "scheduler", "lease", "api", "watch", "server", "probes", "log")


def read_forecaster(given: SchedulerSettings) -> Callable[[Version], Forecaster]:
    """Read the files at once; the API server's version may come later. Raises SettingsError."""
    configuration = KubeSchedulerConfiguration()
    if given.configuration:
        file = Path(given.configuration)
        configuration = settings.load(file, KubeSchedulerConfiguration, api_version=API_VERSION)
    extender = settings.load(Path(given.extender), ExtenderForecastSettings) if given.extender else DEFAULTS

    def make_forecaster(version: Version) -> Forecaster:
        known = read_version(given.kubernetes) if given.kubernetes else version
        return Forecaster(SchedulerModel(known, arrange(configuration, version=known), extender))

    return make_forecaster
