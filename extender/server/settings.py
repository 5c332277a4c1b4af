"""The extender's settings file."""

from extender.answers.settings import AnswerSettings
from extender.server.serving import ExtenderServerSettings
from reberth.client.api import ApiSettings
from reberth.client.watcher import WatchSettings
from reberth.runtime.http_server import ServerSettings
from reberth.runtime.logs import LogSettings
from reberth.values.duration import PositiveDuration


class ExtenderSettings(AnswerSettings, frozen=True):
    """What AnswerSettings has is taken from a changed file without a restart, the rest at the start."""

    server: ExtenderServerSettings = ExtenderServerSettings()
    probes: ServerSettings | None = None
    """A second address for /healthz, /readyz and /metrics alone: a kubelet shows no client certificate."""
    body_within: PositiveDuration = PositiveDuration(5)
    api: ApiSettings = ApiSettings()
    watch: WatchSettings = WatchSettings()
    log: LogSettings = LogSettings()


RESTARTING_FIELDS = ("server", "probes", "body_within", "api", "watch", "log")
