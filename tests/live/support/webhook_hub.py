"""A real API server with the federation's CRDs, which calls the webhook on loopback."""

import asyncio
import base64
import copy
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest
import yaml

from federation.commands import webhook
from localcluster import manifests
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from reberth.runtime.certificates import CertificateFiles
from reberth.runtime.http_server import Server
from tests.support.builders import Object
from tests.support.federation.crds import CRDS, FOLDER, ROOT

MANIFESTS: list[Object] = list(
    yaml.safe_load_all((ROOT / "manifests" / "federation" / "webhook.yaml").read_text())
)
CONFIGURATIONS = [one for one in MANIFESTS if one["kind"].endswith("WebhookConfiguration")]
# How Kubernetes begins to say what a label key looks like.
LABEL_KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


@asynccontextmanager
async def defined(cluster: Cluster) -> AsyncIterator[Client]:
    """A client of a cluster that knows the federation's kinds, for as long."""
    async with cluster.client() as client:
        paths = await manifests.apply(client, FOLDER)
        try:
            yield client
        finally:
            await manifests.remove(client, paths)


@asynccontextmanager
async def guarded(cluster: Cluster) -> AsyncIterator[Client]:
    """The same, with the webhook between the client and what is kept."""
    pki = cluster.design.path("pki")
    pair = Authority(pki).issue("federation-webhook", hosts=["127.0.0.1"])
    settings = webhook.WebhookServer(port=0, tls=CertificateFiles(str(pair.certificate), str(pair.key)))
    authority = (pki / "ca.crt").read_bytes()
    async with (
        defined(cluster) as client,
        Server(settings, routes=webhook.routes()) as server,
        register(client, [aimed(one, server.port, authority) for one in CONFIGURATIONS]),
    ):
        yield client


@asynccontextmanager
async def register(client: Client, configurations: Iterable[Object]) -> AsyncIterator[None]:
    """Have the API server ask; it takes a moment to heed what is registered."""
    paths: list[str] = []
    try:
        for one in configurations:
            collection = f"{_REGISTRATION}/{one['kind'].lower()}s"
            await client.create(collection, one)
            paths.append(f"{collection}/{one['metadata']['name']}")
        await _wait_until(client, asked=True)
        yield
    finally:
        for path in paths:
            await client.delete(path)
        await _wait_until(client, asked=False)


def aimed(configuration: Object, port: int, authority: bytes) -> Object:
    """The configuration as operators apply it, but for where the webhook is."""
    made = copy.deepcopy(configuration)
    for one in made["webhooks"]:
        path = one["clientConfig"].pop("service")["path"]
        one["clientConfig"] = {
            "url": f"https://127.0.0.1:{port}{path}",
            "caBundle": base64.b64encode(authority).decode(),
        }
    return made


async def _wait_until(client: Client, *, asked: bool) -> None:
    """Until a new object gets an id, or is refused because the webhook is missing; or neither."""
    async with asyncio.timeout(30):
        while await _is_asked(client) is not asked:
            await asyncio.sleep(0.05)


async def _is_asked(client: Client) -> bool:
    probe = {
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": {"name": "probe"},
        "spec": {"workload": {}},
    }
    try:
        made = await client.create(f"{collection_of(probe)}?dryRun=All", probe)
    except Refused:
        return True
    return "labels" in made["metadata"]


def collection_of(wanted: Object) -> str:
    """Where objects of this kind, and in this namespace, are kept."""
    spec = CRDS[wanted["kind"]]["spec"]
    namespace = wanted["metadata"].get("namespace", "default")
    within = f"/namespaces/{namespace}" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{wanted['apiVersion']}{within}/{spec['names']['plural']}"


async def keep(client: Client, wanted: Object) -> Object:
    """Create an object, and write its status, as `kubectl apply` checks them: no unknown field is dropped."""
    collection = collection_of(wanted)
    found = await client.create(f"{collection}?fieldValidation=Strict", wanted)
    if "status" not in wanted:
        return found
    path = f"{collection}/{wanted['metadata']['name']}/status?fieldValidation=Strict"
    body = {**wanted, "metadata": {key: found["metadata"][key] for key in ("name", "resourceVersion")}}
    kept: Object = await client.request("PUT", path, body)
    return kept


async def refusal(client: Client, wanted: Object) -> Refused:
    with pytest.raises(Refused) as refused:
        await client.create(f"{collection_of(wanted)}?fieldValidation=Strict", wanted)
    return refused.value


async def tidy(client: Client) -> None:
    for crd in CRDS.values():
        spec = crd["spec"]
        (version,) = spec["versions"]
        within = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
        await client.delete(f"/apis/{spec['group']}/{version['name']}{within}/{spec['names']['plural']}")
