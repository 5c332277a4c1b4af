"""The real admission controller of the VerticalPodAutoscaler, and the class of change that it makes."""

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from localcluster.build import build, toolchain
from localcluster.build.products import VERTICAL_AUTOSCALER
from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from localcluster.host import processes
from tests.live.forecast.changes.change import APPS, CORE, ChangeClass, Expected
from tests.live.forecast.changes.operations import list_pods, web
from tests.live.support.definitions import DEFINITIONS, remove_definitions
from tests.support.builders import Object

_PROGRAM = "admission-controller"
_AUTOSCALERS = "/apis/autoscaling.k8s.io/v1/namespaces"
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_NAME = "autoscaler.reberth.test"
_HOST = "127.0.0.1"
_SHOWN_AFTER = 60.0


@asynccontextmanager
async def autoscaling(cluster: Cluster, client: Client) -> AsyncIterator[None]:
    """Its kinds and its webhook, without what recommends: recommendations are written by the test."""
    definitions = await asyncio.to_thread(_read_definitions)
    await client.create_all(DEFINITIONS, definitions)
    await client.wait(f"{_AUTOSCALERS}/default/verticalpodautoscalers", lambda found: "items" in found)
    running = await _start(cluster)
    url = f"https://{_HOST}:{cluster.spare_port(0)}/"
    await client.create(_WEBHOOKS, _configure(url, cluster.design.path("pki", "ca.crt").read_bytes()))
    try:
        yield
    finally:
        await client.delete(f"{_WEBHOOKS}/{_NAME}")
        await processes.stop(running)
        await remove_definitions(client, [each["metadata"]["name"] for each in definitions])


async def _start(cluster: Cluster) -> processes.Running:
    program = (await asyncio.to_thread(build.programs, VERTICAL_AUTOSCALER))[_PROGRAM]
    pki = cluster.design.path("pki")
    pair = Authority(pki).issue(_PROGRAM, hosts=[_HOST])
    flags = {
        "kubeconfig": cluster.kubeconfig,
        "port": cluster.spare_port(0),
        "address": f"{_HOST}:{cluster.spare_port(1)}",
        "register-webhook": "false",
        "tls-cert-file": pair.certificate,
        "tls-private-key": pair.key,
        "client-ca-file": pki / "ca.crt",
    }
    argv = [str(program), *(f"--{name}={value}" for name, value in flags.items())]
    return processes.start(argv, folder=cluster.folder, name=_PROGRAM, dies_with_parent=True)


def _read_definitions() -> Sequence[Object]:
    """Read the definitions of its kinds from its module, which was downloaded to build it."""
    module = f"{VERTICAL_AUTOSCALER.module}@v{VERTICAL_AUTOSCALER.version}"
    command = [toolchain.find().path, "mod", "download", "-json", module]
    answer = subprocess.run(
        command, cwd=VERTICAL_AUTOSCALER.sources, capture_output=True, text=True, check=True
    )
    file = Path(json.loads(answer.stdout)["Dir"], "deploy", "vpa-v1-crd-gen.yaml")
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


def _configure(url: str, authority: bytes) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook = {
        "name": _NAME,
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": [rule],
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": [AUTOSCALED.name],
                }
            ]
        },
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": _NAME}, "webhooks": [webhook]}


async def _change_recommendation(client: Client, namespace: str) -> None:
    """Let all pods be created with one recommendation, and recommend another one then."""
    await _recommend(client, namespace, "250m")
    async with asyncio.timeout(_SHOWN_AFTER):
        while unchanged := [pod for pod in await list_pods(client, namespace) if _cpu_of(pod) != "250m"]:
            await all_of(
                client.delete(f"{CORE}/{namespace}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
                for pod in unchanged
            )
            await asyncio.sleep(1)
    await client.wait(
        f"{CORE}/{namespace}/pods",
        lambda found: all(each["status"].get("phase") == "Running" for each in found["items"]),
    )
    await _recommend(client, namespace, "350m")


async def _recommend(client: Client, namespace: str, cpu: str) -> None:
    """Write a recommendation, and wait until it is given to new pods."""
    recommended = {"containerRecommendations": [{"containerName": "main", "target": {"cpu": cpu}}]}
    path = f"{_AUTOSCALERS}/{namespace}/verticalpodautoscalers/web/status"
    await client.patch(path, {"status": {"recommendation": recommended}})
    (owner,) = (await client.get(f"{APPS}/{namespace}/replicasets"))["items"]
    meta = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    template = owner["spec"]["template"]
    asked = {**template["metadata"], "generateName": "web-", "ownerReferences": [{**meta, **named}]}
    async with asyncio.timeout(_SHOWN_AFTER):
        while True:
            made = await client.create(
                f"{CORE}/{namespace}/pods?dryRun=All", {"metadata": asked, "spec": template["spec"]}
            )
            if _cpu_of(made) == cpu:
                return
            await asyncio.sleep(0.2)


def _cpu_of(pod: Object) -> str:
    cpu: str = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return cpu


def _autoscaler(namespace: str) -> list[tuple[str, Object]]:
    body = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "updatePolicy": {"updateMode": "Initial"},
            "resourcePolicy": {
                "containerPolicies": [{"containerName": "main", "controlledResources": ["cpu"]}]
            },
        },
    }
    return [(f"{_AUTOSCALERS}/{namespace}/verticalpodautoscalers", body)]


AUTOSCALED = ChangeClass(
    "autoscaled",
    Expected(cpu="350m"),
    _change_recommendation,
    web,
    _autoscaler,
    narrow={"cpu": "300m"},
)
