"""Whether the extenders have seen a move, with small servers on loopback."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp import web

from reberth.client.api import Api
from reberth.protocol.response import Page
from reberth.values.duration import Duration
from reberth.values.errors import ConfigurationError
from reberth.values.refusal import Refused
from rescheduler.execution.extenders import (
    ENDPOINT_SLICES,
    NO_EXTENDER,
    EndpointSlice,
    ObjectVersion,
    connect_to_extenders,
)
from rescheduler.settings import ClientTls, ExtenderAccess
from tests.support.builders import as_record, meta

SOUGHT = (
    ObjectVersion("nodes", "", "n1", "17"),
    ObjectVersion("evictionhistories", "shop", "deployment-web-1", "18"),
)
NOBODY = "127.0.0.1:1"


class Extender:
    """Answers /seen with a code, or never."""

    def __init__(self, code: int | None) -> None:
        self.code = code
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(dict(request.query))
        if self.code is None:
            await asyncio.sleep(60)
        return web.json_response({"seen": 1, "lastAskedAt": None}, status=self.code or 500)


@asynccontextmanager
async def standing(extender: Extender) -> AsyncIterator[str]:
    """Its address, for as long as it stands."""
    application = web.Application()
    application.router.add_get("/seen", extender.answer)
    runner = web.AppRunner(application, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"{host}:{port}"
    await runner.cleanup()


async def ask(*addresses: str, api: Any = None, wait: float = 2.0, **access: Any) -> Refused | None:
    settings = ExtenderAccess(addresses=addresses, wait=Duration(wait), **access)
    async with connect_to_extenders(cast("Api", api), settings) as extenders:
        return await extenders.refuse_unseen(SOUGHT)


async def test_every_extender_is_asked_for_both_objects() -> None:
    one, other = Extender(200), Extender(200)
    async with standing(one) as first, standing(other) as second:
        assert await ask(first, second, NOBODY) is None
    for extender in (one, other):
        assert sorted((asked["resource"], asked["resourceVersion"]) for asked in extender.asked) == [
            ("evictionhistories", "18"),
            ("nodes", "17"),
        ]
        assert {asked["wait"] for asked in extender.asked} == {"2s"}


@pytest.mark.parametrize(("code", "said"), [(504, "code 504"), (500, "code 500"), (None, "no answer")])
async def test_a_single_extender_that_has_not_seen_the_move_refuses_it(code: int | None, said: str) -> None:
    async with standing(Extender(200)) as well, standing(Extender(code)) as behind:
        refused = await ask(well, behind, wait=0.2)
    assert refused is not None
    assert refused.rule == "NotSeen"
    assert behind in refused.reason
    assert said in refused.reason
    assert well not in refused.reason


async def test_without_any_extender_the_move_is_refused() -> None:
    assert await ask(NOBODY) == NO_EXTENDER


async def test_addresses_come_from_the_services_endpoint_slices_ready_or_not() -> None:
    extender = Extender(200)
    async with standing(extender) as address:
        host, port = address.split(":")
        slices = [
            {"metadata": meta("a"), "endpoints": [{"addresses": [host]}], "ports": [{"port": int(port)}]},
            {"metadata": meta("b"), "endpoints": [{"addresses": ["::1"]}], "ports": [{"port": 1}]},
            {"metadata": meta("c"), "endpoints": None, "ports": None},
        ]
        assert await ask(api=Slices(slices)) is None
    assert len(extender.asked) == 2


class Slices:
    """An API server that has nothing but EndpointSlices."""

    def __init__(self, slices: Iterable[Any]) -> None:
        self._slices = [as_record(EndpointSlice, each) for each in slices]

    async def list_pages(
        self, resource: Any, *, namespace: str, **selection: str
    ) -> AsyncIterator[Page[EndpointSlice]]:
        assert (resource, namespace) == (ENDPOINT_SLICES, "reberth-system")
        assert selection == {"labelSelector": "kubernetes.io/service-name=reberth-extender"}
        yield Page(self._slices, "1", "")


async def test_missing_certificates_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"extenderAccess\.tls"):
        await ask(NOBODY, tls=ClientTls("/nowhere/ca", "/nowhere/crt", "/nowhere/key"))
