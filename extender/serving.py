"""The extender's HTTP server: it also tells what is worth a look and is no reason to send calls elsewhere."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from aiohttp import web
from msgspec import Meta

from reberth.serving import Check, Server, ServerSettings


class ExtenderServerSettings(ServerSettings, frozen=True):
    """As any server's; a call that names 15,000 nodes is larger than what others ever get."""

    body_limit_bytes: Annotated[int, Meta(ge=1)] = 2**23


class TellingServer(Server):
    """A server whose /readyz has remarks below its checks."""

    def __init__(
        self,
        settings: ServerSettings,
        *,
        remarks: Callable[[], Iterable[str]],
        checks: Mapping[str, Check],
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        super().__init__(settings, routes=routes, checks=checks)
        self._remarks = remarks

    async def _tell_readiness(self, request: web.Request) -> web.Response:
        response = await super()._tell_readiness(request)
        response.text = "".join([response.text or "", *(f"{remark}\n" for remark in self._remarks())])
        return response
