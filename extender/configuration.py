"""The extender's settings file."""

from extender.serving import ExtenderServerSettings
from extender.settings import AnswerSettings
from reberth.api import ApiSettings
from reberth.logs import LogSettings
from reberth.measures import Span
from reberth.serving import ServerSettings
from reberth.watching import WatchSettings


class ExtenderSettings(AnswerSettings, frozen=True):
    """What AnswerSettings has is taken from a changed file without a restart, the rest at the start."""

    server: ExtenderServerSettings = ExtenderServerSettings()
    probes: ServerSettings | None = None
    """A second address for /healthz, /readyz and /metrics alone: a kubelet shows no client certificate."""
    body_within: Span = Span(5)
    api: ApiSettings = ApiSettings()
    watch: WatchSettings = WatchSettings()
    log: LogSettings = LogSettings()


RESTARTING_FIELDS = ("server", "probes", "body_within", "api", "watch", "log")
