"""What an operator may set of the rescheduler."""

from typing import Literal

from reberth.api import ApiSettings
from reberth.avoiding import BALANCE_LIFE
from reberth.backoff import BackOff
from reberth.budgets import DisruptionLimits
from reberth.leasing import LeaseSettings
from reberth.measures import Duration
from reberth.requests import read_version
from reberth.settings import Section


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
    wait: Duration = Duration(2)
    """A move is dropped if they have not all seen it after so long."""


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


class ReschedulerSettings(Section, frozen=True):
    """The rescheduler's settings."""

    extender: Literal["required", "optional", "none"] = "required"
    extender_access: ExtenderAccess = ExtenderAccess()
    scheduler: SchedulerSettings = SchedulerSettings()
    limits: DisruptionLimits = DisruptionLimits()
    back_off: BackOff = BackOff()
    lease: LeaseSettings = LeaseSettings()
    api: ApiSettings = ApiSettings()
    note_life: Duration = Duration(BALANCE_LIFE)
    doubt: Duration = Duration(30)
    """So long a pod is looked at after an eviction that was not answered, before it counts as not evicted."""
