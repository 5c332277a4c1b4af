"""The process: errors at startup, and neutral responses before it knows the cluster."""

import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

from extender.server.settings import ExtenderSettings
from reberth.config.settings import parse
from tests.support.extender.calls import question
from tests.support.repository import ROOT

HEADER = "apiVersion: reberth.dev/v1alpha1\nkind: ExtenderSettings\n"
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
}


def command(folder: Path, settings: str | None, kubeconfig: str = "nowhere") -> list[str]:
    if settings is not None:
        (folder / "settings.yaml").write_text(HEADER + settings)
    (folder / "nowhere").write_text(yaml.safe_dump(NOWHERE))
    files = ["--settings", str(folder / "settings.yaml"), "--kubeconfig", str(folder / kubeconfig)]
    return [sys.executable, "-m", "extender", *files]


@pytest.mark.parametrize(
    ("settings", "kubeconfig", "said"),
    [
        (None, "nowhere", "settings.yaml: cannot be read: No such file or directory"),
        ("deadlin: 1s", "nowhere", "deadlin (line 3): unknown field, did you mean deadline?"),
        ("server: {host: 0.0.0.0}", "nowhere", "plain HTTP on 0.0.0.0 needs allowPlain: true"),
        ("preempt: {budgets: sometimes}", "nowhere", "preempt.budgets (line 3): expected one of"),
        ("server: {port: 0}", "missing", "cannot connect to the API server"),
        ("server: {host: 192.0.2.1, port: 9, allowPlain: true}", "nowhere", "cannot listen on 192.0.2.1:9: "),
        (
            "server: {port: 0, tls: {certFile: /no.crt, keyFile: /no.key}}",
            "nowhere",
            "/no.crt: cannot be read",
        ),
    ],
)
def test_startup_errors_are_one_line(
    tmp_path: Path, settings: str | None, kubeconfig: str, said: str
) -> None:
    done = subprocess.run(
        command(tmp_path, settings, kubeconfig),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=60,
    )
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert line.startswith("reberth-extender: ")
    assert said in line
    assert done.returncode == 2


async def test_the_process_answers_neutrally_without_a_cluster_and_stops_on_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *command(tmp_path, f"server: {{port: {port}}}"), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        async with asyncio.timeout(30):
            while True:
                try:
                    async with session.get("/readyz") as answer:
                        status, text = answer.status, await answer.text()
                    break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.05)
        assert status == 503
        assert "# nodes: never listed" in text
        async with session.post("/avoid/filter", data=question()) as answer:
            assert json.loads(await answer.text())["NodeNames"] == ["n0", "n1", "n2", "n3"]
        async with session.get("/metrics") as answer:
            text = await answer.text()
        assert 'neutral_answers_total{cause="cold",verb="filter"} 1.0' in text
    process.terminate()
    await process.communicate()
    assert process.returncode == 0


def test_the_settings_of_the_manifests_can_be_read() -> None:
    held = yaml.safe_load((ROOT / "manifests" / "extender" / "20-settings.yaml").read_text())
    settings = parse(held["data"]["settings.yaml"].encode(), ExtenderSettings)
    assert settings.server.tls is not None
    assert settings.server.tls.client_ca_file is not None
    assert settings.probes is not None
