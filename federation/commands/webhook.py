"""The admission webhook for the federation's objects.

`POST /complete` is the mutating webhook, `POST /look` the validating one. A body that is not an
AdmissionReview gets status 400 and the reason, which the API server passes on to the client.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from uuid import uuid4

from aiohttp import web
from msgspec import Meta
from prometheus_client import Counter

from federation.admission import review
from federation.admission.review import AdmissionRequest, AdmissionResponse, ReviewError
from reberth.config.settings import Section, load
from reberth.runtime import logs, metrics
from reberth.runtime.http_server import Server, ServerSettings
from reberth.runtime.logs import LogSettings
from reberth.values.errors import ServingError, SettingsError

BAD_INPUT = 2
COMPLETE, LOOK = "/complete", "/look"
KINDS = frozenset(
    {
        "Cluster",
        "PropagationPolicy",
        "ClusterPropagationPolicy",
        "ResourceBinding",
        "ClusterResourceBinding",
        "Work",
        "ResourceInterpreterCustomization",
    }
)
# The API server accepts objects of up to 3 MiB, and a review holds the old and the new one.
_LARGEST_REVIEW = 2**23
_STOPPING = (signal.SIGTERM, signal.SIGINT)

REVIEWS = Counter(
    "reberth_admission_reviews_total",
    "Admission reviews answered, by route, kind and answer.",
    ("route", "kind", "answer"),
    registry=metrics.REGISTRY,
)

log = logs.Log(__name__)


class WebhookServer(ServerSettings, frozen=True):
    """A review holds two whole objects, so its body may be larger than that of other requests."""

    body_limit_bytes: Annotated[int, Meta(ge=1)] = _LARGEST_REVIEW


class WebhookSettings(Section, frozen=True):
    server: WebhookServer = WebhookServer()
    log: LogSettings = LogSettings()


def routes(
    *, clock: Callable[[], float] = time.time, identity: Callable[[], str] = lambda: str(uuid4())
) -> list[web.RouteDef]:
    """Return the routes of the webhook; tests pass their own clock and ids."""

    def complete(request: AdmissionRequest) -> AdmissionResponse:
        return review.answer_defaulting(request, identity=identity(), now=clock())

    async def answer_complete(request: web.Request) -> web.Response:
        return await _answer(request, complete)

    async def answer_look(request: web.Request) -> web.Response:
        return await _answer(request, review.answer_validating)

    return [web.post(COMPLETE, answer_complete), web.post(LOOK, answer_look)]


async def _answer(
    request: web.Request, decide: Callable[[AdmissionRequest], AdmissionResponse]
) -> web.Response:
    try:
        asked = review.read(await request.read())
    except ReviewError as error:
        return web.Response(status=400, text=f"{error}\n")
    answer = decide(asked)
    _record(request.path, asked, answer)
    return web.Response(body=review.write(answer), content_type="application/json")


def _record(route: str, asked: AdmissionRequest, answer: AdmissionResponse) -> None:
    kind = metrics.bounded(asked.kind.kind, KINDS)
    if answer.status:
        log.info(
            "refused", kind=kind, namespace=asked.namespace, name=asked.name, reason=answer.status.message
        )
    said = "refused" if answer.status else "changed" if answer.patch else "allowed"
    REVIEWS.labels(route, kind, said).inc()


async def run(settings: WebhookSettings, stopping: asyncio.Event) -> None:
    """Serve until `stopping` is set or the task is cancelled, then stop gracefully."""
    async with Server(settings.server, routes=routes()):
        await stopping.wait()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="settings file of kind WebhookSettings; default: plain HTTP on loopback",
    )


def serve(arguments: argparse.Namespace) -> int:
    """Exit codes: 0 stopped by a signal; 2 the settings, the address or the certificate cannot be used."""
    try:
        settings = load(arguments.settings, WebhookSettings) if arguments.settings else WebhookSettings()
        logs.setup(settings.log)
        asyncio.run(_run_until_signalled(settings))
    except (SettingsError, ServingError) as error:
        sys.stderr.write(f"federation: {error}\n")
        return BAD_INPUT
    return 0


async def _run_until_signalled(settings: WebhookSettings) -> None:
    stopping = asyncio.Event()
    for number in _STOPPING:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await run(settings, stopping)
