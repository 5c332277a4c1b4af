"""How the connection to the API server is found, and the error where there is none."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509

from localcluster.credentials import Authority
from reberth.client import access
from reberth.client.access import Access, find_namespace, find_proxy
from reberth.client.api import Api, ApiSettings
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server, ServerSettings
from reberth.values.duration import Duration
from reberth.values.errors import ConfigurationError, Unauthorized, Untrusted
from tests.support.kubeconfig import write_contexts
from tests.support.metrics import read_metric

EMPTY_CLUSTER = """
current-context: c
contexts: [{name: c, context: {cluster: x}}]
clusters: [{name: x, cluster: {}}]
"""


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_kubeconfig_is_looked_up_in_the_documented_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Access().file == str(tmp_path / ".kube" / "config")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert Access().file is None
    assert str(Access()) == "the pod's service account"
    monkeypatch.setenv("KUBECONFIG", "/from/env")
    assert Access().file == "/from/env"
    assert Access("/given").file == "/given"


def test_the_namespace_is_that_of_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_contexts(tmp_path / "one", current="shop", shop="shop", bank="bank", plain=None)
    for context, namespace in ((None, "shop"), ("bank", "bank"), ("plain", "default"), ("gone", "default")):
        assert find_namespace(Access(str(file), context)) == namespace
    second = write_contexts(tmp_path / "two", current="other", other="other")
    monkeypatch.setenv("KUBECONFIG", f"{file}:{second}")
    assert find_namespace(Access(None, "bank")) == "bank"
    assert find_namespace(Access(None, "other")) == "other"


@pytest.mark.parametrize("content", ["", "[", "contexts: 7", "contexts: [{name: c}]\ncurrent-context: c"])
def test_without_a_valid_kubeconfig_the_namespace_is_default(tmp_path: Path, content: str) -> None:
    """What is wrong with it is told by the connection."""
    file = tmp_path / "kubeconfig"
    assert find_namespace(Access(str(file))) == "default"
    file.write_text(content)
    assert find_namespace(Access(str(file))) == "default"


def test_in_a_pod_the_namespace_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setattr("reberth.client.access._NAMESPACE_OF_POD", tmp_path / "namespace")
    assert find_namespace(Access()) == "default"
    (tmp_path / "namespace").write_text("tools\n")
    assert find_namespace(Access()) == "tools"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128"}, "http://proxy:3128"),
        ({"HTTP_PROXY": "http://proxy:3128"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "api.example.com"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".example.com,10.0.0.0"}, None),
        ({"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "example.org"}, "http://proxy:3128"),
    ],
)
def test_the_proxy_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str | None
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert find_proxy("https://api.example.com:6443") == expected


async def refusal(access: Access) -> str:
    with pytest.raises(ConfigurationError) as caught:
        async with Api(access):
            pass
    return str(caught.value)


async def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert await refusal(Access(path)) == (f"{path}: cannot connect to the API server: kubeconfig not found")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not a valid kubeconfig"),
        ("5", "not a valid kubeconfig"),
        ("a: [\n", "while parsing a flow node"),
        ("apiVersion: v1\nkind: Config\n", "Expected key current-context"),
        (
            "apiVersion: v1\nkind: Config\ncurrent-context: gone\ncontexts: []\nclusters: []\nusers: []\n",
            "Expected object with name gone",
        ),
        ("{current-context: c, contexts: [{name: c}]}", "Expected key context"),
        ("{current-context: c, contexts: 7}", "not a valid kubeconfig"),
        (EMPTY_CLUSTER, "not a valid kubeconfig"),
    ],
)
async def test_an_invalid_kubeconfig_is_refused_in_one_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    refused = await refusal(Access(str(path)))
    assert refused.startswith(f"{path}: cannot connect to the API server: ")
    assert said in refused
    assert "\n" not in refused


async def test_an_invalid_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    path = tmp_path / "config"
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " contexts: [{name: c, context: {cluster: c, user: u}}],"
        " users: [{name: u, user: {token: t}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ca.crt}}]}"
    )
    assert "invalid certificates" in await refusal(Access(str(path)))


async def test_a_pod_without_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    assert await refusal(Access()) == (
        "the pod's service account: cannot connect to the API server: Service token file does not exist."
    )


class ApiServer:
    """Speaks TLS, and answers 401 to whoever shows no client certificate of the current user."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder / "pki").create()
        self.known = "first"
        self.mounted = folder / "mounted"
        self.mounted.mkdir()
        for name in ("ca.crt", "tls.crt", "tls.key"):
            (self.mounted / name).touch()
        self.show("first")
        self.trust(self.authority)
        self.shown: list[str] = []

    def show(self, user: str, lifetime: dt.timedelta = dt.timedelta(days=3000)) -> None:
        pair = self.authority.issue(user, lifetime=lifetime)
        (self.mounted / "tls.crt").write_bytes(pair.certificate.read_bytes())
        (self.mounted / "tls.key").write_bytes(pair.key.read_bytes())

    def trust(self, authority: Authority) -> None:
        (self.mounted / "ca.crt").write_bytes(authority.certificate.read_bytes())

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[int]:
        pair = self.authority.issue("server", hosts=["127.0.0.1"])
        files = CertificateFiles(str(pair.certificate), str(pair.key), str(self.authority.certificate))
        routes = [web.get("/version", self._answer)]
        async with Server(
            ServerSettings(port=port, tls=files, stop_within=Duration(0.1)), routes=routes
        ) as server:
            yield server.port

    async def _answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        certificate = x509.load_der_x509_certificate(
            request.transport.get_extra_info("ssl_object").getpeercert(binary_form=True)
        )
        user = certificate.subject.rfc4514_string().removeprefix("CN=")
        self.shown.append(user)
        if user != self.known:
            return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)
        return web.json_response({"major": "1", "minor": "36"})

    def kubeconfig(self, port: int) -> Path:
        path = self.mounted / "config"
        path.write_text(
            "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],"
            f" clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}',"
            "   certificate-authority: ca.crt}}],"
            " users: [{name: u, user: {client-certificate: tls.crt, client-key: tls.key}}]}"
        )
        return path


@pytest.fixture
def server(tmp_path: Path) -> ApiServer:
    return ApiServer(tmp_path)


async def test_a_renewed_client_certificate_is_shown_after_a_401(server: ApiServer) -> None:
    async with server.running() as port, Api(Access(str(server.kubeconfig(port)))) as api:
        assert await api.version() == "1.36"
        for user in ("second", "third", "fourth"):
            server.show(user)
            assert await api.version() == "1.36"
            server.known = user
            assert await asyncio.gather(*(api.version() for _ in range(5))) == ["1.36"] * 5
    assert server.shown[-5:] == ["fourth"] * 5


async def test_a_renewed_client_certificate_is_taken_up_before_the_old_one_is_refused(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_LOOK_INTERVAL", 0.01)

    def ends(use: str) -> float:
        return read_metric("reberth_certificate_not_after_seconds", certificate=config, use=use)

    async with server.running() as port, Api(Access(config := str(server.kubeconfig(port)))) as api:
        assert await api.version() == "1.36"
        assert ends("ca") > ends("client") > 0
        before = ends("client")
        server.show("second", lifetime=dt.timedelta(days=1))
        server.known = "second"
        async with asyncio.timeout(10):
            while ends("client") == before:
                await asyncio.sleep(0.01)
        assert await api.version() == "1.36"
    assert server.shown == ["first", "second"]


async def test_a_renewed_ca_is_trusted_after_a_failed_handshake(server: ApiServer, tmp_path: Path) -> None:
    config, other = tmp_path / "config", Authority(tmp_path / "other").create()
    async with server.running() as port, Api(Access(str(config := server.kubeconfig(port)))) as api:
        assert await api.version() == "1.36"
    server.trust(other)
    async with server.running() as port:
        server.kubeconfig(port)
        async with Api(Access(str(config)), ApiSettings(tries=1)) as api:
            with pytest.raises(Untrusted, match="certificate verify failed"):
                await api.version()
            server.trust(server.authority)
            assert await api.version() == "1.36"


@pytest.mark.parametrize("broken", ["config", "tls.crt", "tls.key", "ca.crt"])
async def test_an_invalid_renewal_keeps_the_last_valid_credentials(
    broken: str, server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with server.running() as port, Api(Access(str(server.kubeconfig(port)))) as api:
        server.known = "second"
        content = (server.mounted / broken).read_bytes()
        (server.mounted / broken).write_text("nonsense")
        with pytest.raises(Unauthorized):
            await api.version()
        assert "credentials refused, keeping the last valid ones" in caplog.messages
        (server.mounted / broken).write_bytes(content)
        server.show("second")
        assert await api.version() == "1.36"
