"""A webhook on evictions that keeps what it was asked, and denies those of the pods that it is told."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from aiohttp import web

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server, ServerSettings
from tests.support.builders import Object

_PATH = "/reviews"
_COLLECTION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@asynccontextmanager
async def watching_evictions(
    cluster: Cluster, client: Client, *, probe: str, denied: Collection[str] = ()
) -> AsyncIterator[list[Object]]:
    """Give the requests that it was asked about; `probe` is a pod of the namespace default."""
    reviews: list[Object] = []

    async def answer(request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        reviews.append(review["request"])
        name, uid = review["request"]["name"], review["request"]["uid"]
        response = {"uid": uid, "allowed": name not in denied}
        return web.json_response(
            {**{key: review[key] for key in ("apiVersion", "kind")}, "response": response}
        )

    pki = cluster.design.path("pki")
    pair = Authority(pki).issue("eviction-webhook", hosts=["127.0.0.1"])
    settings = ServerSettings(port=0, tls=CertificateFiles(str(pair.certificate), str(pair.key)))
    async with Server(settings, routes=[web.post(_PATH, answer)]) as server:
        await client.create(_COLLECTION, _configure(server.port, (pki / "ca.crt").read_bytes()))
        try:
            await _wait_until_asked(client, probe, reviews)
            reviews.clear()
            yield reviews
        finally:
            await client.delete(f"{_COLLECTION}/evictions.reberth.test")


def _configure(port: int, authority: bytes) -> Object:
    place = {
        "url": f"https://127.0.0.1:{port}{_PATH}",
        "caBundle": base64.b64encode(authority).decode(),
    }
    evictions = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods/eviction"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "evictions.reberth.test"},
        "webhooks": [
            {
                "name": "evictions.reberth.test",
                "clientConfig": place,
                "rules": [evictions],
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


async def _wait_until_asked(client: Client, probe: str, reviews: list[Object]) -> None:
    """The API server takes a moment to heed what is registered."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": probe}}
    async with asyncio.timeout(30):
        while not reviews:
            await client.create(f"/api/v1/namespaces/default/pods/{probe}/eviction?dryRun=All", eviction)
            await asyncio.sleep(0.05)
