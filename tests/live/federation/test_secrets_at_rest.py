"""The documented encryption at rest covers the Secrets that Works hold."""

import base64
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
import yaml

from localcluster import manifests
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER, CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from tests.support.builders import Object
from tests.support.federation.crds import FOLDER
from tests.support.repository import DOCS

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WORKS = "/apis/work.karmada.io/v1alpha1/namespaces/default/works"
CLEAR = base64.b64encode(b"the tide is high").decode()
EXAMPLE = re.compile(r"```yaml\n(apiVersion: apiserver\.config.*?)```", re.DOTALL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hub() -> AsyncIterator[Cluster]:
    async with running("secrets-at-rest", without=[CONTROLLERS, SCHEDULER, KWOK]) as hub:
        yield hub


async def test_a_work_is_not_in_clear_in_etcd_with_the_documented_configuration(
    hub: Cluster, tmp_path: Path
) -> None:
    async with hub.client() as client:
        await manifests.apply(client, FOLDER)
        await client.create(WORKS, work("before"))
    assert await is_in_clear(hub, "before")
    path = tmp_path / "encryption.yaml"
    path.write_text(yaml.safe_dump(read_example()))
    await hub.restart(API_SERVER, f"--encryption-provider-config={path}")
    async with hub.client() as client:
        await client.create(WORKS, work("after"))
        assert not await is_in_clear(hub, "after")
        assert CLEAR in str(await client.get(f"{WORKS}/after"))
        await write_again(client, "before")
    assert not await is_in_clear(hub, "before")


def read_example() -> Object:
    (text,) = EXAMPLE.findall((DOCS / "federation-kinds.md").read_text())
    found: Object = yaml.safe_load(text)
    for key in found["resources"][0]["providers"][0]["secretbox"]["keys"]:
        key["secret"] = base64.b64encode(secrets.token_bytes(32)).decode()
    return found


def work(name: str) -> Object:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tide"}, "data": {"tide": CLEAR}}
    return {
        "apiVersion": "work.karmada.io/v1alpha1",
        "kind": "Work",
        "metadata": {"name": name},
        "spec": {"workload": {"manifests": [secret]}},
    }


async def write_again(client: Client, name: str) -> None:
    await client.request("PUT", f"{WORKS}/{name}", await client.get(f"{WORKS}/{name}"))


async def is_in_clear(hub: Cluster, name: str) -> bool:
    """Read a Work as it stands in etcd."""
    key = f"{hub.design.prefix}/work.karmada.io/works/default/{name}"
    asked = {"key": base64.b64encode(key.encode()).decode()}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{hub.design.etcd_url}/v3/kv/range", json=asked) as answer,
    ):
        (found,) = (await answer.json())["kvs"]
    return CLEAR.encode() in base64.b64decode(found["value"])
