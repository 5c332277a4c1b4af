"""A fake extender that changes nothing and records the requests it gets.

A pod made only to be refused is refused on all nodes: then the scheduler reports this refusal beside all its
other reasons.
"""

from typing import Any, Self

from aiohttp import web

from localcluster.host.ports import HOST
from tests.support.forecast.cases.lot_extender import blanks, lots

REFUSED = "left by the filters"
TO_REFUSE = "-to-refuse"


class Recorder:
    """Remembers, per pod, the nodes that the scheduler's own filters left; an async context."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{HOST}:{port}"
        self._port = port
        self._left: dict[str, list[str]] = {}
        application = web.Application()
        application.add_routes(
            [
                web.post("/filter", self._filter),
                web.post("/prioritize", _prioritize),
                web.post("/lots/filter", _filter_by_lot),
                web.post("/lots/prioritize", _prioritize_by_lot),
            ]
        )
        self._runner = web.AppRunner(application)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def entry(self) -> dict[str, Any]:
        """How the scheduler's configuration names it; ignorable ones are asked after all others."""
        return {
            "urlPrefix": self.url,
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            "nodeCacheCapable": True,
            "ignorable": True,
            "httpTimeout": "5s",
        }

    def forget(self) -> None:
        self._left.clear()

    def left(self, pod: str) -> list[str]:
        """The nodes of the last question about this pod; none, if none was left to ask about."""
        return self._left.get(pod, [])

    async def _filter(self, request: web.Request) -> web.Response:
        asked = await request.json()
        meta = asked["Pod"]["metadata"]
        left = asked["NodeNames"]
        if meta["name"].endswith(TO_REFUSE):
            return web.json_response(
                {"NodeNames": [], "FailedAndUnresolvableNodes": dict.fromkeys(left, REFUSED)}
            )
        self._left[f"{meta['namespace']}/{meta['name']}"] = left
        return web.json_response({"NodeNames": left})


async def _prioritize(request: web.Request) -> web.Response:
    asked = await request.json()
    return web.json_response([{"Host": name, "Score": 0} for name in asked["NodeNames"]])


async def _filter_by_lot(request: web.Request) -> web.Response:
    asked = (await request.json())["NodeNames"]
    refused = blanks(asked)
    left = [name for name in asked if name not in refused]
    return web.json_response({"NodeNames": left, "FailedAndUnresolvableNodes": refused})


async def _prioritize_by_lot(request: web.Request) -> web.Response:
    drawn = lots((await request.json())["NodeNames"])
    return web.json_response([{"Host": name, "Score": score} for name, score in drawn.items()])
