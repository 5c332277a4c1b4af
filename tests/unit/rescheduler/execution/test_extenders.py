"""Whether the extenders have seen a move, with small servers on loopback."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from aiohttp import web

from localcluster.credentials import Authority
from reberth.client.api import Api
from reberth.client.watcher import WatchSettings
from reberth.protocol.response import Page, WatchEvent
from reberth.records import ObjectMeta
from reberth.runtime.certificates import CertificateFiles, ClientTls
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.duration import PositiveDuration
from reberth.values.errors import ConfigurationError, Unreachable
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
    settings = ExtenderAccess(addresses=addresses, wait=PositiveDuration(wait), **access)
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
        api = Slices({"a": [address], "b": ["[::1]:1"], "c": []})
        async with watching(api) as extenders:
            assert await extenders.refuse_unseen(SOUGHT) is None
            assert await extenders.refuse_unseen(SOUGHT) is None
    assert (len(extender.asked), api.lists) == (4, 0)


async def test_an_extender_is_asked_from_the_watch_event_on_that_brings_its_address() -> None:
    first, second = Extender(200), Extender(504)
    async with standing(first) as one, standing(second) as other:
        api = Slices({"a": [one]})
        async with watching(api) as extenders:
            assert await extenders.refuse_unseen(SOUGHT) is None
            await api.put("b", [other])
            refused = await extenders.refuse_unseen(SOUGHT)
            assert refused is not None
            assert other in refused.reason
            assert len(second.asked) == 2
            await api.remove("b")
            assert await extenders.refuse_unseen(SOUGHT) is None
    assert len(second.asked) == 2
    assert api.lists == 1  # before the one refusal


async def test_addresses_are_listed_for_each_question_while_the_watch_is_in_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    extender, late = Extender(200), Extender(504)
    async with standing(extender) as address, standing(late) as unwatched:
        api = Slices({"a": [address]})
        async with watching(api) as extenders:
            api.break_off()
            await until(lambda: bool(list(extenders.list_remarks())))
            api.slices["b"] = [unwatched]
            for _ in range(2):
                assert await extenders.refuse_unseen(SOUGHT) is not None
            assert (len(late.asked), api.lists) == (4, 2)
            assert caplog.messages.count("addresses of the extenders are listed for each question") == 1
            (remark,) = extenders.list_remarks()
            assert remark == "endpointslices: watch endpointslices: broken; listed for each question"
            del api.slices["b"]
            api.is_broken = False
            await until(lambda: not list(extenders.list_remarks()))
            assert await extenders.refuse_unseen(SOUGHT) is None
            assert "addresses of the extenders are watched again" in caplog.messages
    assert api.lists == 2


async def test_an_address_that_has_gone_without_the_watch_knowing_refuses_no_move() -> None:
    """The watch hangs without an error: that shows only after some time."""
    extender, silent = Extender(200), Extender(None)
    async with standing(extender) as address, standing(silent) as gone:
        api = Slices({"a": [address], "b": [gone]})
        async with watching(api, wait=0.2) as extenders:
            del api.slices["b"]
            assert await extenders.refuse_unseen(SOUGHT) is None
    assert (len(silent.asked), api.lists) == (2, 1)


async def test_where_the_watch_knows_of_no_extender_the_list_is_asked() -> None:
    extender = Extender(200)
    async with standing(extender) as address:
        api = Slices({})
        async with watching(api) as extenders:
            assert await extenders.refuse_unseen(SOUGHT) == NO_EXTENDER
            api.slices["a"] = [address]
            assert await extenders.refuse_unseen(SOUGHT) is None


class Slices:
    """An API server that has nothing but EndpointSlices: their addresses by name."""

    def __init__(self, slices: dict[str, list[str]]) -> None:
        self.slices = slices
        self.lists = 0
        self._version = 1
        self.is_broken = False
        self.begun = asyncio.Event()
        self._lines: asyncio.Queue[WatchEvent[EndpointSlice] | None] = asyncio.Queue()

    async def put(self, name: str, addresses: list[str]) -> None:
        self.slices[name] = addresses
        await self._bring("ADDED", name)

    async def remove(self, name: str) -> None:
        await self._bring("DELETED", name)
        del self.slices[name]

    def break_off(self) -> None:
        """End the watch, and let no other begin."""
        self.is_broken = True
        self._lines.put_nowait(None)

    async def list_pages(self, resource: Any, **selection: str) -> AsyncIterator[Page[EndpointSlice]]:
        self._check(resource, selection)
        self.lists += 1
        yield Page([self._make(name) for name in self.slices], str(self._version), "")

    @asynccontextmanager
    async def watch(
        self, resource: Any, *, since: str | None, seconds: float, **selection: str
    ) -> AsyncIterator[AsyncIterator[WatchEvent[EndpointSlice]]]:
        assert seconds > 0
        self._check(resource, selection)
        if self.is_broken:
            raise Unreachable("watch endpointslices", "broken")
        yield self._read(since)

    async def _read(self, since: str | None) -> AsyncIterator[WatchEvent[EndpointSlice]]:
        if since is None:
            for name in self.slices:
                yield WatchEvent("ADDED", self._make(name))
            end = {"k8s.io/initial-events-end": "true"}
            made = ObjectMeta("", resource_version=str(self._version), annotations=end)
            yield WatchEvent("BOOKMARK", EndpointSlice(made))
        self.begun.set()
        while line := await self._lines.get():
            yield line
            self._lines.task_done()
        raise Unreachable("watch endpointslices", "broken")

    async def _bring(self, kind: str, name: str) -> None:
        self._version += 1
        self._lines.put_nowait(WatchEvent(kind, self._make(name)))
        await self._lines.join()

    def _make(self, name: str) -> EndpointSlice:
        split = [address.rpartition(":")[::2] for address in self.slices[name]]
        made = {
            "metadata": {**meta(name), "uid": name, "resourceVersion": str(self._version)},
            "endpoints": [{"addresses": [host.strip("[]")]} for host, _ in split] or None,
            "ports": [{"port": int(port)} for _, port in split] or None,
        }
        return as_record(EndpointSlice, made)

    def _check(self, resource: Any, selection: Mapping[str, str]) -> None:
        assert resource == ENDPOINT_SLICES
        assert selection == {
            "namespace": "reberth-system",
            "labelSelector": "kubernetes.io/service-name=reberth-extender",
        }


@asynccontextmanager
async def watching(api: Slices, *, wait: float = 2.0) -> AsyncIterator[ExtenderClient]:
    """A client whose watch has begun."""
    settings = WatchSettings(first_pause=0.05, longest_pause=0.05)
    access = ExtenderAccess(wait=PositiveDuration(wait))
    async with connect_to_extenders(cast("Api", api), access, watch=settings) as extenders:
        await api.begun.wait()
        yield extenders


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
    async with watching(Slices({})) as extenders:
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
