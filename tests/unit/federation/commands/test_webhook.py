"""The webhook as a server: real requests on loopback."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from federation.commands import webhook
from federation.commands.webhook import COMPLETE, LOOK, WebhookSettings
from localcluster.credentials import Authority
from reberth.config.settings import parse
from reberth.runtime import metrics
from reberth.runtime.http_server import Server, ServerSettings
from tests.support.federation.crds import apply_json_patch, example, failing_over
from tests.support.federation.reviews import UID, response, review
from tests.support.metrics import read_metric
from tests.support.repository import ROOT

ID = "11111111-1111-4111-8111-111111111111"


@pytest_asyncio.fixture
async def base() -> AsyncIterator[str]:
    routes = webhook.routes(clock=lambda: 1_795_003_200.0, identity=lambda: ID)
    settings = webhook.WebhookServer(port=0, body_limit_bytes=2**17)
    async with Server(settings, routes=routes) as server:
        yield f"http://127.0.0.1:{server.port}"


async def post(address: str, body: bytes) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.post(address, data=BytesIO(body)) as answer:
        return answer.status, await answer.read()


def counted(route: str, kind: str, answer: str) -> float:
    return read_metric("reberth_admission_reviews_total", route=route, kind=kind, answer=answer)


async def test_an_object_is_completed_and_counted(base: str) -> None:
    before = counted(COMPLETE, "Work", "changed")
    status, body = await post(f"{base}{COMPLETE}", json.dumps(review(example("Work"))).encode())
    assert status == 200
    made = apply_json_patch(example("Work"), response(body)["patch"])
    assert made["metadata"]["labels"] == {"work.karmada.io/permanent-id": ID}
    assert counted(COMPLETE, "Work", "changed") == before + 1


async def test_a_refusal_is_answered_counted_and_logged(base: str, caplog: pytest.LogCaptureFixture) -> None:
    before = counted(LOOK, "PropagationPolicy", "refused")
    policy = failing_over("Gracefully")
    with caplog.at_level("INFO"):
        status, body = await post(f"{base}{LOOK}", json.dumps(review(policy)).encode())
    assert (status, response(body)["allowed"]) == (200, False)
    assert counted(LOOK, "PropagationPolicy", "refused") == before + 1
    (said,) = [vars(one)["fields"] for one in caplog.records if one.message == "refused"]
    assert said["namespace"] == "default"
    assert "should not be empty when purgeMode is gracefully" in said["reason"]


async def test_kinds_that_are_not_ours_share_one_label(base: str) -> None:
    before = counted(LOOK, metrics.OTHER, "allowed")
    asked = review({}, kind={"group": "a", "version": "b", "kind": "Colour"})
    await post(f"{base}{LOOK}", json.dumps(asked).encode())
    assert counted(LOOK, metrics.OTHER, "allowed") == before + 1


@pytest.mark.parametrize("path", [COMPLETE, LOOK])
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"", 400, "the body is not an AdmissionReview of admission.k8s.io/v1"),
        (b"{}", 400, "missing required field `apiVersion`"),
        (b'{"a":' * 10_000, 400, "nested too deeply"),
        (b"x" * (2**17 + 1), 413, "Maximum request body size 131072 exceeded"),
    ],
)
async def test_a_bad_body_gets_the_reason(base: str, path: str, body: bytes, status: int, said: str) -> None:
    found, text = await post(f"{base}{path}", body)
    assert (found, said in text.decode()) == (status, True)


async def test_the_two_largest_objects_fit_into_one_review() -> None:
    async with Server(webhook.WebhookServer(port=0), routes=webhook.routes()) as server:
        largest = {"kind": "Work", "metadata": {}, "spec": {"colour": "x" * 3 * 2**20}}
        asked = review(largest, before=largest, operation="UPDATE")
        status, _ = await post(f"http://127.0.0.1:{server.port}{LOOK}", json.dumps(asked).encode())
    assert status == 200


async def test_nothing_else_is_served_but_health_and_metrics(base: str) -> None:
    async with aiohttp.ClientSession(base) as session:
        for path, status in [("/healthz", 200), ("/readyz", 200), ("/metrics", 200), (LOOK, 405), ("/", 404)]:
            async with session.get(path) as answer:
                assert (path, answer.status) == (path, status)


async def test_the_webhook_stops_on_request() -> None:
    stopping = asyncio.Event()
    settings = WebhookSettings(server=webhook.WebhookServer(port=0))
    running = asyncio.create_task(webhook.run(settings, stopping))
    await asyncio.sleep(0)
    stopping.set()
    async with asyncio.timeout(10):
        await running


def test_a_review_may_be_larger_than_other_requests_unless_the_settings_say_so() -> None:
    head = b"apiVersion: reberth.dev/v1alpha1\nkind: WebhookSettings\n"
    assert parse(head, WebhookSettings).server.body_limit_bytes == 2**23
    assert parse(head + b"server: {port: 1}\n", WebhookSettings).server.body_limit_bytes == 2**23
    assert parse(head + b"server: {bodyLimitBytes: 9}\n", WebhookSettings).server.body_limit_bytes == 9
    assert ServerSettings().body_limit_bytes < 2**23


def arguments(*words: str) -> Any:
    parser = ArgumentParser()
    webhook.add_arguments(parser)
    return parser.parse_args(words)


def test_invalid_settings_end_the_webhook_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("apiVersion: reberth.dev/v1alpha1\nkind: WebhookSettings\nserver: {colour: red}\n")
    assert webhook.serve(arguments("--settings", str(path))) == 2
    assert "server.colour" in capsys.readouterr().err
    assert webhook.serve(arguments("--settings", str(tmp_path / "none.yaml"))) == 2
    assert "cannot be read" in capsys.readouterr().err


CHILD = """
import argparse, sys
from federation.commands import webhook

parser = argparse.ArgumentParser()
webhook.add_arguments(parser)
sys.exit(webhook.serve(parser.parse_args()))
"""


def spare_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_process_serves_over_tls_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    authority = Authority(tmp_path / "ca").create()
    pair = authority.issue("webhook", hosts=["127.0.0.1"])
    port = spare_port()
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        "apiVersion: reberth.dev/v1alpha1\nkind: WebhookSettings\n"
        f"server: {{port: {port}, tls: {{certFile: {pair.certificate}, keyFile: {pair.key}}}}}\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, "--settings", str(settings)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    try:
        trust = ssl.create_default_context(cafile=str(authority.certificate))
        answer = await ask_until_answered(f"https://127.0.0.1:{port}{LOOK}", trust)
        assert answer == {"uid": UID, "allowed": True}
        child.send_signal(number)
        said = (await asyncio.to_thread(child.communicate, None, 20))[1]
        assert (child.returncode, said.count(b"Traceback")) == (0, 0)
    finally:
        child.kill()
        child.wait()


async def ask_until_answered(address: str, trust: ssl.SSLContext) -> Any:
    body = json.dumps(review(example("Cluster"))).encode()
    async with asyncio.timeout(20), aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with session.post(address, data=body, ssl=trust) as answer:
                    return response(await answer.read())
            await asyncio.sleep(0.05)
