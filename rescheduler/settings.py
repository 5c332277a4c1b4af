"""Settings of the rescheduler: how it runs. What it moves is set in its policy."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from reberth.client.api import ApiSettings
from reberth.client.lease import LeaseSettings
from reberth.client.watcher import WatchSettings
from reberth.cluster.pods.requests import Version, read_version
from reberth.config import settings
from reberth.config.settings import AtLeastOne, Positive, Section
from reberth.forecast.extender import DEFAULTS, ExtenderForecastSettings
from reberth.forecast.state.profile import API_VERSION, KubeSchedulerConfiguration, arrange
from reberth.memory.history import LANDING_TIME
from reberth.memory.notes import BALANCE_LIFE
from reberth.runtime.certificates import ClientTls
from reberth.runtime.http_server import ServerSettings
from reberth.runtime.logs import LogSettings
from reberth.values.duration import Duration, PositiveDuration
from rescheduler.observe.forecaster import Forecaster
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.drift import DriftSettings

LONGEST_REQUEST = 60.0
"""The API server's time for one request, if its --request-timeout is not set: it may write until then."""

_LONGEST_WAIT = 10.0
_ADDRESS = re.compile(r"([^\s:/\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")


class ExtenderAccess(Section, frozen=True):
    """How the extenders are reached: at all endpoints of a Service, or at these addresses (host:port)."""

    namespace: str = "reberth-system"
    service: str = "reberth-extender"
    addresses: tuple[str, ...] = ()
    tls: ClientTls | None = None
    wait: PositiveDuration = PositiveDuration(2)
    """A move is refused if not all extenders have seen it within this time."""
    try_every: PositiveDuration = PositiveDuration(5)
    """Time between two checks whether the extenders can be reached."""

    def __post_init__(self) -> None:
        if self.wait > _LONGEST_WAIT:
            raise ValueError(f"wait must be at most {_LONGEST_WAIT:g}s: an extender does not wait longer")
        wrong = [address for address in self.addresses if not _ADDRESS.fullmatch(address)]
        if wrong:
            raise ValueError(f"addresses must have the form host:port: invalid address {wrong[0]!r}")


class SchedulerSettings(Section, frozen=True):
    """What the forecast must know of kube-scheduler, and cannot read from the API server."""

    configuration: str = ""
    """File with its KubeSchedulerConfiguration (default: the defaults of kube-scheduler)."""
    extender: str = ""
    """File with the settings of Reberth's extender, if the configuration names the extender."""
    kubernetes: str = ""
    """Its version, e.g. 1.37 (default: the version of the API server)."""

    def __post_init__(self) -> None:
        if self.kubernetes:
            read_version(self.kubernetes)


class EventApiSettings(ApiSettings, frozen=True):
    """Events have their own rate limit, so that no move waits for them."""

    requests_per_second: Positive = 25.0


class ReviewApiSettings(ApiSettings, frozen=True):
    """Tokens of readers are checked at a rate of their own; a check that takes long is given up."""

    requests_per_second: Positive = 10.0
    burst: AtLeastOne = 20
    deadline: Positive = 5.0
    tries: AtLeastOne = 1


class CycleSettings(Section, frozen=True):
    """When the daemon runs a cycle."""

    interval: Duration = Duration(60)
    """Maximum time between cycles."""
    settle: Duration = Duration(2)
    """Time to wait after an event, since more events may follow."""
    min_interval: Duration = Duration(5)
    """Minimum time between cycles."""
    pending: Duration = Duration(30)
    """A pod that has been pending for this long is an event."""


class ReschedulerSettings(Section, frozen=True):
    """The settings of the rescheduler."""

    extender: Literal["required", "optional", "none"] = "required"
    extender_access: ExtenderAccess = ExtenderAccess()
    scheduler: SchedulerSettings = SchedulerSettings()
    cycle: CycleSettings = CycleSettings()
    drift: DriftSettings = DriftSettings()
    lease: LeaseSettings = LeaseSettings()
    api: ApiSettings = ApiSettings()
    events: EventApiSettings = EventApiSettings()
    reviews: ReviewApiSettings = ReviewApiSettings()
    watch: WatchSettings = WatchSettings()
    server: ServerSettings = ServerSettings(port=8445)
    probes: ServerSettings | None = None
    """A second address for /healthz, /readyz and /metrics only: a kubelet has no client certificate."""
    log: LogSettings = LogSettings()
    note_life: PositiveDuration = PositiveDuration(BALANCE_LIFE)
    note_sweep: PositiveDuration = PositiveDuration(600)
    """An expired note is removed after this time, unless another write of its node removes it before."""
    eviction_timeout: Duration = Duration(LONGEST_REQUEST)
    """How long an eviction that was sent may still be carried out: the API server's --request-timeout.

    A pod that is alive counts as not evicted only after this time: after an eviction without an answer, and
    after taking over from another leader.
    """
    replacement_timeout: PositiveDuration = PositiveDuration(LANDING_TIME)
    """How long a replacement may take to be Ready at least; its workload may need longer."""
    min_ready: Duration = Duration(3)
    """How long a replacement must be Ready without a break; its workload's `minReadySeconds` if longer."""

    def __post_init__(self) -> None:
        if self.eviction_timeout < LONGEST_REQUEST:
            raise ValueError(
                f"evictionTimeout must be at least {LONGEST_REQUEST:g}s: the API server may carry out an"
                " eviction until then"
            )


# Fields that take effect only after a restart.
RESTARTING_FIELDS = (
    "extender_access",
    "scheduler",
    "lease",
    "api",
    "events",
    "reviews",
    "watch",
    "server",
    "probes",
    "log",
)


def make_forecaster(
    given: SchedulerSettings,
    configuration: KubeSchedulerConfiguration,
    extender: ExtenderForecastSettings,
    version: Version,
) -> Forecaster:
    """Make a forecaster from the content of the files and the API server's version."""
    known = read_version(given.kubernetes) if given.kubernetes else version
    return Forecaster(SchedulerModel(known, arrange(configuration, version=known), extender))


def read_forecaster(given: SchedulerSettings) -> Callable[[Version], Forecaster]:
    """Read the files at once; the API server's version may come later. Raises SettingsError."""
    configuration = KubeSchedulerConfiguration()
    if given.configuration:
        file = Path(given.configuration)
        configuration = settings.load(file, KubeSchedulerConfiguration, api_version=API_VERSION)
    extender = settings.load(Path(given.extender), ExtenderForecastSettings) if given.extender else DEFAULTS
    return partial(make_forecaster, given, configuration, extender)
