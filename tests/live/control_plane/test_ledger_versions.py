"""The versions of the move ledger: an upgrade keeps every debit, and keeps older programs out."""

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest
import pytest_asyncio
import yaml

from localcluster import manifests
from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.watcher import Watcher, WatchSettings
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import LEDGERS
from reberth.cluster.pods.requests import NEWEST
from reberth.memory.ledger import Disruption, add_debit, list_windows, mark_spent
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import MoveLedger
from reberth.values import errors
from reberth.values.timestamp import parse_time
from tests.live.support.fault_client import QUICK
from tests.live.support.memory_objects import sent
from tests.support.builders import Object
from tests.support.repository import ROOT

pytestmark = pytest.mark.live

OLDER_CRDS = ROOT / "tests" / "live" / "support" / "older_crds"
OLDER = replace(LEDGERS, version="v1alpha1")
LIMITS = DisruptionLimits(cluster=(Rate((3, 3600.0)),))
NOW = parse_time("2026-11-18T12:00:00Z")
WRITTEN = [
    {"move": "m1", "namespace": "shop", "time": "2026-11-18T11:30:00.000000Z", "state": "Spent"},
    {"move": "m2", "namespace": "shop", "time": "2026-11-18T11:59:00.000000Z", "state": "Tentative"},
]


@pytest_asyncio.fixture
async def client(shared: Cluster) -> AsyncIterator[Client]:
    async with shared.client() as opened:
        yield opened


@pytest_asyncio.fixture
async def upgraded(client: Client) -> AsyncIterator[str]:
    """The path of the definition: a ledger with an open move was written before it was brought up to date."""
    (path,) = await manifests.apply(client, OLDER_CRDS)
    made = await client.create(OLDER.path(), {**identity("v1alpha1"), "metadata": {"name": "default"}})
    status = {**made, "status": {"debits": WRITTEN}}
    await client.request("PUT", OLDER.path("default", subresource="status"), status)
    paths = await manifests.apply(client, ROOT / "manifests" / "crds")
    await client.wait(LEDGERS.path("default"), lambda _: True)
    yield path
    await manifests.remove(client, paths)


def identity(version: str) -> Object:
    return {"apiVersion": f"reberth.dev/{version}", "kind": "MoveLedger"}


async def table_row(client: Client) -> list[object]:
    """How many debits are tentative, and how many disruptions are counted besides, as kubectl prints it."""
    summary = (await client.get(LEDGERS.path("default")))["status"]["summary"]
    return [summary["tentative"], summary["spent"]]


async def test_after_an_upgrade_every_debit_counts_and_open_moves_go_on(
    client: Client, upgraded: str
) -> None:
    del upgraded
    found = await client.get(LEDGERS.path("default"))
    ledger = msgspec.convert(found, MoveLedger)
    (window,) = list_windows(ledger, LIMITS, Disruption("", "", ""), now=NOW)
    assert (ledger.api_version, window.used) == ("reberth.dev/v1alpha2", 2)
    spent = mark_spent(ledger, "m2", limits=LIMITS, now=NOW)
    assert isinstance(spent, MoveLedger)
    third = Disruption("m3", "shop", "uid-web", "web-1", "uid-web-1", "age", "agentpool=small")
    debited = add_debit(spent, LIMITS, third, now=NOW)
    assert isinstance(debited, MoveLedger)
    await client.request(
        "PUT", LEDGERS.path("default", subresource="status"), {**found, **sent(LEDGERS, debited)}
    )
    kept = msgspec.convert(await client.get(LEDGERS.path("default")), MoveLedger)
    assert kept.status == debited.status
    assert [debit.move for debit in kept.status.debits or ()] == ["m2", "m3"]
    (folded,) = kept.status.slots or ()
    assert (folded.time, folded.count) == (WRITTEN[0]["time"], 1)
    (window,) = list_windows(kept, LIMITS, Disruption("", "", ""), now=NOW)
    assert window.used == 3
    assert await table_row(client) == [1, 2]


async def test_the_older_version_is_no_longer_stored_after_the_documented_steps(
    client: Client, upgraded: str
) -> None:
    """They are only needed before a later release may leave the older version out."""
    found = await client.get(LEDGERS.path("default"))
    assert (await client.get(upgraded))["status"]["storedVersions"] == ["v1alpha1", "v1alpha2"]
    await client.request("PUT", LEDGERS.path("default", subresource="status"), found)
    trimmed = await client.get(upgraded)
    trimmed["status"]["storedVersions"] = ["v1alpha2"]
    await client.request("PUT", f"{upgraded}/status", trimmed)
    standing = await client.get(upgraded)
    assert standing["status"]["storedVersions"] == ["v1alpha2"]
    newest = [version for version in standing["spec"]["versions"] if version["served"]]
    standing["spec"]["versions"] = newest
    await client.request("PUT", upgraded, standing)
    assert (await client.get(LEDGERS.path("default")))["status"] == found["status"]


async def test_an_older_program_neither_reads_nor_writes_the_ledger(
    shared: Cluster, client: Client, upgraded: str
) -> None:
    """It would not see what has been folded. What it needs is not synced, so it never leads."""
    del upgraded
    found = await client.get(LEDGERS.path("default"))
    async with Api(Access(str(shared.kubeconfig)), QUICK) as api:
        with pytest.raises(errors.NotFound):
            await api.get(OLDER, "default")
        with pytest.raises(errors.NotFound):
            await api.replace(OLDER, "default", msgspec.convert(found, MoveLedger), subresource="status")
        watcher = Watcher(api, Cache(version=NEWEST), OLDER, settings=WatchSettings(), on_change=lambda: None)
        watching = asyncio.create_task(watcher.run())
        await asyncio.wait_for(watcher.answered(), 30)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    assert not watcher.is_synced
    assert "reberth.dev/v1alpha1 is not served" in (watcher.trouble or "")
    assert (await client.get(LEDGERS.path("default")))["status"] == found["status"]


async def test_the_older_definition_cannot_be_applied_over_the_newer_one(
    client: Client, upgraded: str
) -> None:
    (older,) = [yaml.safe_load(file.read_text()) for file in OLDER_CRDS.glob("*.yaml")]
    standing = await client.get(upgraded)
    assert standing["status"]["storedVersions"] == ["v1alpha1", "v1alpha2"]
    replaced = copy.deepcopy(standing) | {"spec": older["spec"]}
    for change in (client.apply(upgraded, older), client.request("PUT", upgraded, replaced)):
        with pytest.raises(Refused) as refused:
            await change
        assert refused.value.status == 422
        assert "status.storedVersions" in str(refused.value)
        assert "v1alpha2" in str(refused.value)
    debits = (await client.get(LEDGERS.path("default")))["status"]["debits"]
    assert [one["move"] for one in debits] == ["m1", "m2"]
