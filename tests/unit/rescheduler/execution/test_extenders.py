"""Whether the extenders have seen a move, with small servers on loopback."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web

from localcluster.credentials import Authority
from reberth.client.api import Api
from reberth.protocol.response import Page
from reberth.runtime.certificates import CertificateFiles, ClientTls
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.duration import Duration
from reberth.values.errors import ConfigurationError
from reberth.values.refusal import Refused
from rescheduler.execution.extenders import (
    ENDPOINT_SLICES,
    NO_EXTENDER,
    EndpointSlice,
    ExtenderClient,
    ObjectVersion,
    connect_to_extenders,
)
from rescheduler.settings import ExtenderAccess
from tests.support.builders import as_record, meta
from tests.support.metrics import read_metric

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


NAME = "reberth-extender.reberth-system.svc"


class Certificates:
    """A CA, an extender that asks for its client certificates, and the client's own, which may be renewed."""

    def __init__(self, folder: Path) -> None:
        self._authority = Authority(folder / "ca").create()
        self._mounted = folder / "client"
        self._mounted.mkdir()
        server, ca = self._authority.issue("extender", hosts=[NAME]), str(self._authority.certificate)
        files = CertificateFiles(str(server.certificate), str(server.key), ca)
        self.settings = ServerSettings(port=0, tls=files)
        self.tls = ClientTls(ca, str(self._mounted / "tls.crt"), str(self._mounted / "tls.key"), NAME)

    def renew(self, *, seconds: float, key: str | None = None) -> None:
        pair = self._authority.issue("rescheduler", lifetime=dt.timedelta(seconds=seconds))
        Path(self.tls.certificate).write_bytes(pair.certificate.read_bytes())
        Path(self.tls.key).write_text(pair.key.read_text() if key is None else key)


@asynccontextmanager
async def asking(certificates: Certificates) -> AsyncIterator[ExtenderClient]:
    async def seen(_: web.Request) -> web.Response:
        answer = web.json_response({"seen": 1, "lastAskedAt": None})
        answer.force_close()  # the next question shows its certificate, too
        return answer

    async with Server(certificates.settings, routes=[web.get("/seen", seen)]) as server:
        access = ExtenderAccess(addresses=(f"127.0.0.1:{server.port}",), tls=certificates.tls)
        async with connect_to_extenders(cast("Api", None), access, look_interval=0.01) as extenders:
            yield extenders


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_client_certificate_that_is_renewed_on_disk_is_shown_from_then_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    certificates = Certificates(tmp_path)
    certificates.renew(seconds=-1)
    async with asking(certificates) as extenders:
        refused = await extenders.refuse_unseen(SOUGHT)
        assert refused is not None
        assert refused.rule == "NotSeen"
        certificates.renew(seconds=60)
        await until(lambda: "certificate reloaded" in caplog.messages)
        assert await extenders.refuse_unseen(SOUGHT) is None


async def test_an_invalid_renewal_is_named_and_the_last_valid_certificate_stays(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificates.renew(seconds=60)
    async with asking(certificates) as extenders:
        assert not list(extenders.list_remarks())
        certificates.renew(seconds=60, key="nonsense")
        await until(lambda: bool(list(extenders.list_remarks())))
        (remark,) = extenders.list_remarks()
        tls = certificates.tls
        assert remark.startswith(
            f"refused, the last valid version stays in force: {tls.key}: contains no key"
        )
        assert read_metric("reberth_certificate_valid", certificate=tls.certificate) == 0
        assert await extenders.refuse_unseen(SOUGHT) is None
        certificates.renew(seconds=60)
        await until(lambda: not list(extenders.list_remarks()))
        assert read_metric("reberth_certificate_valid", certificate=tls.certificate) == 1


async def test_without_certificates_there_is_nothing_to_remark() -> None:
    async with connect_to_extenders(cast("Api", None), ExtenderAccess()) as extenders:
        assert not list(extenders.list_remarks())


async def test_an_extender_of_another_name_is_not_believed(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificates.renew(seconds=60)
    certificates.tls = msgspec.structs.replace(certificates.tls, server_name="other.svc")
    async with asking(certificates) as extenders:
        refused = await extenders.refuse_unseen(SOUGHT)
    assert refused is not None
    assert "other.svc" in refused.reason


@pytest.mark.parametrize("missing", ["ca", "crt", "key"])
async def test_missing_certificates_are_named(missing: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificates.renew(seconds=60)
    files = {"ca": certificates.tls.ca, "crt": certificates.tls.certificate, "key": certificates.tls.key}
    Path(files[missing]).unlink()
    expected = f"extenderAccess.tls: {files[missing]}: cannot be read: No such file or directory"
    with pytest.raises(ConfigurationError, match=expected):
        await ask(NOBODY, tls=certificates.tls)
