"""What an operator may set of the rescheduler."""

from typing import Literal

from reberth.api import ApiSettings
from reberth.avoiding import BALANCE_LIFE
from reberth.backoff import BackOff
from reberth.budgets import DisruptionLimits
from reberth.leasing import LeaseSettings
from reberth.measures import Duration
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


class ReschedulerSettings(Section, frozen=True):
    """The rescheduler's settings."""

    extender: Literal["required", "optional", "none"] = "required"
    extender_access: ExtenderAccess = ExtenderAccess()
    limits: DisruptionLimits = DisruptionLimits()
    back_off: BackOff = BackOff()
    lease: LeaseSettings = LeaseSettings()
    api: ApiSettings = ApiSettings()
    note_life: Duration = Duration(BALANCE_LIFE)
    doubt: Duration = Duration(30)
    """So long a pod is looked at after an eviction that was not answered, before it counts as not evicted."""
