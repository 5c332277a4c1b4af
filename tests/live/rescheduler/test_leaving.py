"""The documented uninstallation leaves the cluster as it was before."""

import asyncio
import os
import shlex
import sys
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from localcluster import manifests
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from reberth.memory.notes import ANNOTATION
from tests.live.support.extender_process import MANIFESTS, ROOT
from tests.live.support.moves import all_ready
from tests.support.builders import Object, deployment

pytestmark = pytest.mark.live

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods?labelSelector=app%3Dstayer"
OURS = "/api/v1/namespaces/reberth-system"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/reberth-system/leases"
COLLECTIONS = {"lease": LEASES, "secret": f"{OURS}/secrets"}
SECRETS = ("reberth-extender-certificates", "reberth-rescheduler-certificates")
PAGES = ("rescheduler.md", "extender.md")
TRANSIENT = {"events", "pods", "componentstatuses"}


async def test_the_documented_uninstallation_leaves_the_cluster_as_it_was(
    shared: Cluster, tmp_path: Path
) -> None:
    async with shared.client() as client:
        await client.create(DEPLOYMENTS, deployment("stayer", replicas=2, cpu="100m"))
        found = await client.wait(PODS, lambda found: all_ready(found, 2))
        before = await take_inventory(client)
        await install(client, tmp_path)
        pod = found["items"][0]["metadata"]["name"]
        await run_program(shared, ["-m", "rescheduler", "move", pod, "--extender", "none"])
        come = await take_inventory(client) - before
        assert {kind for kind, _, name in come if name == "reberth-rescheduler"} >= {"leases", "clusterroles"}
        assert {kind for kind, _, _ in come} >= {"evictionhistories", "moveledgers", "notes"}
        for page in PAGES:
            for command in list_commands(page):
                await obey(shared, client, command)
        await client.wait("/api/v1/namespaces", lambda found: "reberth-system" not in names_in(found))
        assert await settled_inventory(client, before) == before
        await client.delete(f"{DEPLOYMENTS}/stayer", {"propagationPolicy": "Foreground"})
        await client.wait(PODS, lambda found: not found["items"])


async def install(client: Client, folder: Path) -> None:
    """Apply all that the pages apply; no pods, which have nothing to run here."""
    await manifests.apply(client, MANIFESTS / "crds")
    for part in ("extender", "rescheduler"):
        (folder / part).mkdir()
        for file in (MANIFESTS / part).glob("*.yaml"):
            text = file.read_text().replace("\n  replicas: 2\n", "\n  replicas: 0\n")
            (folder / part / file.name).write_text(text)
        await manifests.apply(client, folder / part)
    for name in SECRETS:
        await client.create(f"{OURS}/secrets", {"metadata": {"name": name}, "stringData": {"tls.key": "k"}})


async def take_inventory(client: Client) -> set[tuple[str, str, str]]:
    """Kind, namespace and name of all that is there, and the nodes that carry notes."""
    found = set()
    for resource, path in await list_resources(client):
        for each in await get_part(client, path, "items"):
            meta = each["metadata"]
            found.add((resource, meta.get("namespace", ""), meta["name"]))
            if resource == "nodes" and ANNOTATION in meta.get("annotations", {}):
                found.add(("notes", "", meta["name"]))
    return found


async def settled_inventory(client: Client, before: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """The inventory once it is as it was, or as it is after a while: some things are collected."""
    for _ in range(100):
        found = await take_inventory(client)
        if found == before:
            break
        await asyncio.sleep(0.2)
    return found


async def list_resources(client: Client) -> list[tuple[str, str]]:
    groups = (await client.get("/apis"))["groups"]
    versions = (version["groupVersion"] for group in groups for version in group["versions"])
    roots = ["/api/v1", *(f"/apis/{version}" for version in versions)]
    return [
        (each["name"], f"{root}/{each['name']}")
        for root in roots
        for each in await get_part(client, root, "resources")
        if "list" in each["verbs"] and each["name"] not in TRANSIENT
    ]


async def get_part(client: Client, path: str, part: str) -> list[Object]:
    """Empty for what has gone: discovery still lists a group for a moment after its last kind was deleted."""
    try:
        found: list[Object] = (await client.get(path))[part]
    except Refused as refused:
        if refused.status != HTTPStatus.NOT_FOUND:
            raise
        return []
    return found


def list_commands(page: str) -> list[list[str]]:
    _, _, rest = (ROOT / "docs" / page).read_text().partition("\n## Uninstall\n")
    section = rest.partition("\n## ")[0]
    commands = [shlex.split(line, comments=True) for line in section.splitlines() if line.startswith("    ")]
    assert commands, f"{page} no longer says how to uninstall"
    return commands


async def obey(cluster: Cluster, client: Client, command: list[str]) -> None:
    """Do what the command says; what stands for kubectl here knows these forms of it and no other."""
    match command:
        case ["python", *arguments]:
            await run_program(cluster, arguments)
        case ["kubectl", "-n", "reberth-system", "scale", workload, replicas]:
            path = f"/apis/apps/v1/namespaces/reberth-system/{workload.replace('/', 's/')}/scale"
            await client.patch(path, {"spec": {"replicas": int(replicas.removeprefix("--replicas="))}})
        case ["kubectl", "-n", "reberth-system", "delete", kind, name]:
            await client.delete(f"{COLLECTIONS[kind]}/{name}")
        case ["kubectl", "delete", "-f", folder]:
            await delete_folder(client, ROOT / folder)
        case _:
            pytest.fail(f"the page says {shlex.join(command)}: nobody here knows how to do that")


async def delete_folder(client: Client, folder: Path) -> None:
    """Everything must be there to be deleted."""
    objects = [one for file in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]
    paths = [await manifests.find_path(client, one) for one in objects]
    await manifests.remove(client, paths)


async def run_program(cluster: Cluster, arguments: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=ROOT,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), 60)
    assert "Traceback" not in said.decode()
    if "clear" in arguments:
        assert process.returncode == 0, said.decode()


def names_in(found: Object) -> set[str]:
    return {each["metadata"]["name"] for each in found["items"]}
