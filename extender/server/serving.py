"""The extender's HTTP server: as any, but for larger calls."""

from typing import Annotated

from msgspec import Meta

from reberth.runtime.http_server import ServerSettings


class ExtenderServerSettings(ServerSettings, frozen=True):
    """As any server's; a call that names 15,000 nodes is larger than what others ever get."""

    body_limit_bytes: Annotated[int, Meta(ge=1)] = 2**23
