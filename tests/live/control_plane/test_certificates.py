"""Certificates that renew themselves, by the account of the manifests, on a real API server."""

import asyncio
import shutil
import ssl
import subprocess
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.cli.certificates import NotTrusted, renew
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.config.settings import parse
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server, ServerSettings
from reberth.runtime.tls.renewal import CertificateSettings
from reberth.values.duration import Duration
from reberth.values.errors import Forbidden
from reberth.values.timestamp import parse_time
from tests.live.support.fault_client import QUICK
from tests.support.repository import MANIFESTS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

DAY = 86400
SECRETS = "/api/v1/namespaces/reberth-system/secrets"
HOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations/reberth-federation"
OURS = ("Namespace", "ServiceAccount", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
EXTENDER, SCHEDULER = "reberth-extender-certificates", "reberth-scheduler-certificates"


@pytest_asyncio.fixture(loop_scope="session")
async def admin(bare: Cluster, tmp_path: Path) -> AsyncIterator[Client]:
    """The accounts and the Secrets of the manifests, and the webhooks; nothing is left."""
    files = (
        MANIFESTS / "extender" / "00-namespace.yaml",
        MANIFESTS / "certificates" / "10-rbac.yaml",
        MANIFESTS / "federation" / "certificates.yaml",
        MANIFESTS / "federation" / "webhook.yaml",
    )
    kept = [
        one
        for file in files
        for one in yaml.safe_load_all(file.read_text())
        if one and (one["kind"] in OURS or "Webhook" in one["kind"])
    ]
    for one in kept:
        for hook in one.get("webhooks", ()):
            hook["failurePolicy"] = "Ignore"  # there is none
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "all.yaml").write_text(yaml.safe_dump_all(kept))
    async with bare.client() as client:
        applied = await manifests.apply(client, folder)
        try:
            yield client
        finally:
            await manifests.remove(
                client, [path for path in applied if "/namespaces/reberth-system" not in path]
            )
            await manifests.remove(client, [path for path in applied if "/reberth-system/" in path])


def settings_of(file: Path) -> CertificateSettings:
    (found,) = [one for one in yaml.safe_load_all(file.read_text()) if one["kind"] == "ConfigMap"]
    return parse(found["data"]["settings.yaml"].encode(), CertificateSettings)


OF_EXTENDER = settings_of(MANIFESTS / "certificates" / "20-settings.yaml")
OF_FEDERATION = settings_of(MANIFESTS / "federation" / "certificates.yaml")


def api_of(cluster: Cluster, name: str) -> Api:
    account = cluster.user(f"system:serviceaccount:reberth-system:{name}", ["system:serviceaccounts"])
    return Api(Access(str(account)), QUICK)


async def done(api: Api, given: CertificateSettings, now: float) -> list[str]:
    return [line async for line in renew(api, given, now=now)]


async def read(client: Client, name: str) -> dict[str, str]:
    found: Any = await client.get(f"{SECRETS}/{name}")
    return {file: b64decode(content).decode() for file, content in found.get("data", {}).items()}


def mount(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


async def call(server: Server, folder: Path) -> int:
    """Ask as kube-scheduler, with what was mounted for it."""
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "scheduler.crt", folder / "scheduler.key")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://127.0.0.1:{server.port}/healthz", ssl=context) as answer,
    ):
        return answer.status


async def test_pairs_are_made_renewed_and_follow_the_authority(
    bare: Cluster, admin: Client, tmp_path: Path
) -> None:
    now = parse_time((await admin.get(SECRETS + "/reberth-authority"))["metadata"]["creationTimestamp"])
    there, here = tmp_path / "extender", tmp_path / "scheduler"
    async with api_of(bare, "reberth-certificates") as api:
        first = await done(api, OF_EXTENDER, now)
        assert [line.partition(":")[0] for line in first] == [
            "authority reberth-authority",
            *(f"secret {one.name}" for one in OF_EXTENDER.secrets),
        ]
        assert await done(api, OF_EXTENDER, now + DAY) == []
        mount(there, await read(admin, EXTENDER))
        mount(here, await read(admin, SCHEDULER))
        files = CertificateFiles(*(str(there / name) for name in ("tls.crt", "tls.key", "ca.crt")))
        settings = ServerSettings(port=0, tls=files, stop_within=Duration(0.1))
        async with Server(settings, look_interval=0.05) as server:
            assert await call(server, here) == 200
            # Before they end, all pairs are renewed; old and new ones know each other.
            renewed = await done(api, OF_EXTENDER, now + 46 * DAY)
            assert all("renewed until" in line for line in renewed)
            assert len(renewed) == len(OF_EXTENDER.secrets)
            mount(there, await read(admin, EXTENDER))
            await asyncio.sleep(0.5)
            assert await call(server, here) == 200
            mount(here, await read(admin, SCHEDULER))
            assert await call(server, here) == 200
        # A year before its end the authority has a successor, which nobody distrusts for a moment.
        before = await read(admin, "reberth-authority")
        late = now + 3600 * DAY
        announced = await done(api, OF_EXTENDER, late)
        assert "authority reberth-authority: a successor is announced" in announced
        assert (await read(admin, SCHEDULER))["ca.crt"].count("BEGIN CERTIFICATE") == 2
        mount(here, await read(admin, SCHEDULER))
        assert await done(api, OF_EXTENDER, now + 6 * DAY) == []  # it was made today
        signs = await done(api, OF_EXTENDER, now + 8 * DAY)
        assert signs[0] == "authority reberth-authority: the successor signs"
        after = await read(admin, "reberth-authority")
        assert after["tls.crt"] != before["tls.crt"]
        assert before["tls.crt"] in after["ca.crt"]
        assert set(after) == {"tls.crt", "tls.key", "ca.crt"}
        mount(there, await read(admin, EXTENDER))
        async with Server(settings, look_interval=0.05) as server:
            assert await call(server, here) == 200  # with the pair of before
            mount(here, await read(admin, SCHEDULER))
            assert await call(server, here) == 200
    verify = ["openssl", "verify", "-CAfile", here / "ca.crt", there / "tls.crt"]
    assert subprocess.run(verify, check=False, capture_output=True).returncode == 0
    shutil.rmtree(tmp_path / "extender")


async def test_the_hub_trusts_the_authority_of_the_webhook(
    bare: Cluster, admin: Client, tmp_path: Path
) -> None:
    now = parse_time((await admin.get(SECRETS + "/reberth-authority"))["metadata"]["creationTimestamp"])
    async with api_of(bare, "reberth-hub-certificates") as api:
        with pytest.raises(NotTrusted, match="^MutatingWebhookConfiguration reberth-federation, Validating"):
            await done(api, OF_FEDERATION, now)
        assert "tls.key" in await read(admin, "reberth-federation-webhook-tls")
        shutil.copy(MANIFESTS / "federation" / "rights" / "webhook" / "rbac.yaml", tmp_path)
        rights = await manifests.apply(admin, tmp_path)
        async with asyncio.timeout(10):
            while True:
                with suppress(NotTrusted):  # the API server takes a moment to read a new role
                    said = await done(api, OF_FEDERATION, now)
                    break
        assert said == [
            f"{kind}WebhookConfiguration reberth-federation: trusts the authority"
            for kind in ("Mutating", "Validating")
        ]
        assert await done(api, OF_FEDERATION, now) == []
        authority = (await read(admin, "reberth-federation-authority"))["tls.crt"]
        for kind in ("mutating", "validating"):
            for hook in (await admin.get(HOOKS.format(kind)))["webhooks"]:
                assert b64decode(hook["clientConfig"]["caBundle"]).decode() == authority
                assert hook["clientConfig"]["service"]["name"] == "reberth-federation-webhook"
        with pytest.raises(Forbidden):  # nor what is another account's
            await done(api, OF_EXTENDER, now)
        await manifests.remove(admin, rights)
        # A successor that the hub does not trust signs nothing.
        late, soon = now + 3600 * DAY, now + 8 * DAY
        for at in (late, soon, soon):
            with pytest.raises(NotTrusted):
                await done(api, OF_FEDERATION, at)
        assert (await read(admin, "reberth-federation-authority"))["tls.crt"] == authority
