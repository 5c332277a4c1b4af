"""A pod that is resized in place on a real node, and the forecast after it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.nodes import is_ready
from tests.live.support.real_pods import NODES, PODS, is_gone, real_pod
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.real_nodes, pytest.mark.asyncio(loop_scope="module")]

STRATEGIC = "application/strategic-merge-patch+json"
ASKING = "asks"
THERE = {"kubernetes.io/hostname": "real-1"}


async def test_the_forecast_follows_a_resize_as_the_scheduler_does(real: Cluster, tmp_path: Path) -> None:
    async with real.client() as client:
        await client.create(PODS, asking_for("resized", "100m", memory="32Mi"))
        await client.wait(f"{PODS}/resized", is_ready)
        await resize(client, "resized", cpu="1900m", memory="64Mi")
        await client.create(PODS, asking_for(ASKING, "800m", memory="16Mi"))
        found = await client.wait(f"{PODS}/{ASKING}", lambda found: scheduled(found)["status"] == "False")
        assert "Insufficient cpu" in scheduled(found)["message"]
        assert (await forecast(client, tmp_path))["refused"]["real-1"] == ["Insufficient cpu"]

        await resize(client, "resized", cpu="200m", memory="32Mi")
        await client.wait(f"{PODS}/{ASKING}", is_ready, seconds=60)
        assert list((await forecast(client, tmp_path))["feasible"]) == ["real-1"]
        for name in ("resized", ASKING):
            await client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            await client.wait(PODS, is_gone(name))


def asking_for(name: str, cpu: str, *, memory: str) -> Object:
    container = {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return real_pod(name, "sleep 1000", container=container, nodeSelector=THERE)


async def resize(client: Client, name: str, **requests: str) -> None:
    """Resize, and wait until the kubelet has carried it out."""
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}
    await client.request("PATCH", f"{PODS}/{name}/resize", change, patch=STRATEGIC)
    await client.wait(f"{PODS}/{name}", lambda found: is_resized(found, requests))


def is_resized(found: Object, requests: dict[str, str]) -> bool:
    conditions = {each["type"] for each in found["status"]["conditions"]}
    status = found["status"]["containerStatuses"][0]
    return status["resources"]["requests"] == requests and not conditions & {
        "PodResizePending",
        "PodResizeInProgress",
    }


def scheduled(found: Object) -> dict[str, Any]:
    conditions = found["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "PodScheduled"), {"status": "Unknown"})


async def forecast(client: Client, folder: Path) -> dict[str, Any]:
    """Ask where the pod would land if it waited."""
    pods = (await client.get(PODS))["items"]
    nodes = (await client.get(NODES))["items"]
    for each in pods:
        if each["metadata"]["name"] == ASKING:
            each["spec"].pop("nodeName", None)
            each.pop("status")
    typed = [{"apiVersion": "v1", "kind": "Pod", **each} for each in pods]
    typed += [{"apiVersion": "v1", "kind": "Node", **each} for each in nodes]
    file = folder / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": typed}))
    command = ["-m", "reberth", "landing", f"default/{ASKING}", "--cluster", str(file)]
    done = subprocess.run([sys.executable, *command], capture_output=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)["pods"][f"default/{ASKING}"]
    return answer
