"""The extender's settings file."""

from typing import Annotated

from msgspec import Meta

from extender.answers.settings import AnswerSettings
from reberth.client.api import ApiSettings
from reberth.client.watcher import WatchSettings
from reberth.runtime.http_server import ServerSettings
from reberth.runtime.logs import LogSettings
from reberth.values.duration import PositiveDuration


class ExtenderServerSettings(ServerSettings, frozen=True):
    """As any server's, but for larger bodies: a call may name 15,000 nodes."""

    body_limit_bytes: Annotated[int, Meta(ge=1)] = 2**23


class ExtenderSettings(AnswerSettings, frozen=True):
    """The fields of AnswerSettings are reloaded from a changed file, the others need a restart."""

    server: ExtenderServerSettings = ExtenderServerSettings()
    probes: ServerSettings | None = None
    """A second address with only /healthz, /readyz and /metrics: the kubelet shows no client certificate."""
    body_within: PositiveDuration = PositiveDuration(5)
    api: ApiSettings = ApiSettings()
    watch: WatchSettings = WatchSettings()
    log: LogSettings = LogSettings()


RESTARTING_FIELDS = ("server", "probes", "body_within", "api", "watch", "log")
