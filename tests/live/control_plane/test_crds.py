"""The custom resources on a real API server: what it accepts, stores and prints."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml

from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.cluster.kinds import HISTORIES, LEDGERS, SCORES, Resource
from reberth.memory.history import (
    MOST_DESTINATIONS,
    MOST_OPEN,
    MOST_PAST,
    open_move,
    start_history,
)
from reberth.memory.ledger import MOST_BYTES, Disruption, add_debit, start_ledger
from reberth.memory.ledger_slots import hash_name
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.memory.replacements import MOST_KNOWN
from reberth.records import (
    EvictionHistory,
    HistoryStatus,
    LedgerSlot,
    LedgerStatus,
    MoveLedger,
    Outcome,
    Record,
)
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time
from tests.live.support.memory_objects import (
    RESOURCES,
    ROOT,
    SOUND,
    WEB,
    changed,
    definitions,
    fields,
    keep,
    sent,
    tidy_client,
    write_status,
)
from tests.support.builders import Object
from tests.support.memory.objects import MINUTE, NOW, accepted, after_move, move, past, score

pytestmark = pytest.mark.live

UID = "x" * 128
EVERYTHING = DisruptionLimits((Rate((999_999, 86_400.0)),))


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def defined(shared: Cluster) -> AsyncIterator[list[str]]:
    async with definitions(shared) as paths:
        yield paths


@pytest_asyncio.fixture
async def client(shared: Cluster) -> AsyncIterator[Client]:
    async with tidy_client(shared) as opened:
        yield opened


async def test_the_definitions_are_established_and_structural(client: Client, defined: list[str]) -> None:
    assert len(defined) == len(RESOURCES)
    for path in defined:
        conditions = (await client.get(path))["status"]["conditions"]
        truths = {each["type"]: each["status"] for each in conditions}
        assert truths == {"NamesAccepted": "True", "Established": "True"}


async def test_kinds_have_short_names_and_a_common_category(client: Client) -> None:
    versions = [await client.get(f"/apis/{each.api_version}") for each in (HISTORIES, LEDGERS)]
    found = [each for version in versions for each in version["resources"]]
    names = {
        each["kind"]: (each["shortNames"], each["categories"]) for each in found if "/" not in each["name"]
    }
    assert names == {
        "EvictionHistory": (["evh"], ["reberth"]),
        "MoveLedger": (["mvl"], ["reberth"]),
        "NodePlacementScore": (["nps"], ["reberth"]),
    }


@pytest.mark.parametrize("kind", RESOURCES)
async def test_records_written_to_the_api_server_are_kept_and_read_back(client: Client, kind: str) -> None:
    resource, wanted = RESOURCES[kind], SOUND[kind]
    kept = await keep(client, resource, wanted)
    assert fields(kept) == fields(wanted)
    assert sent(resource, msgspec.convert(kept, resource.record))["status"] == wanted["status"]


async def test_a_history_is_accepted_at_every_step_of_its_life(client: Client) -> None:
    history = start_history(WEB)
    found = await keep(client, HISTORIES, sent(HISTORIES, history))
    for number, outcome in enumerate(Outcome):
        name, now = f"m{number}", NOW + number * MINUTE
        opened = accepted(open_move(history, move(name, planned=now)))
        history = after_move(history, name, outcome, closed=now + MINUTE, score_after=-1, time_to_ready=1.5)
        for step in (opened, history):
            found = await write_status(client, HISTORIES, sent(HISTORIES, step), found)
            assert fields(found) == fields(sent(HISTORIES, step))
    assert [each["type"] for each in found["status"]["conditions"]] == ["GivenUp"]
    assert found["status"]["givenUpUntil"]


def the_fullest_history() -> EvictionHistory:
    """Every list and every text as long as the schema allows."""
    nodes = tuple(filled(f"n{number}", 253) for number in range(MOST_DESTINATIONS))
    wide: dict[str, Any] = {
        "pod": filled("p", 253),
        "pod_uid": UID,
        "from_": nodes[0],
        "policy": filled("p", 253),
        "reason": filled("r", 1024),
    }
    known = tuple(filled(f"{number}-", 128) for number in range(MOST_KNOWN))
    opened = tuple(
        move(filled(f"o{number}-", 63), destinations=nodes, controller_uid=UID, known_pods=known, **wide)
        for number in range(MOST_OPEN)
    )
    closed = tuple(
        past(Outcome.SAME, id=filled(f"p{number}-", 63), landed_on=nodes[1], **wide)
        for number in range(MOST_PAST)
    )
    return msgspec.structs.replace(start_history(WEB), status=HistoryStatus(opened, closed))


def the_fullest_ledger() -> MoveLedger:
    """Open moves with texts of all lengths, and disruptions in slots, until no more are reserved."""
    found = msgspec.structs.replace(start_ledger(), status=LedgerStatus(slots=tuple(full_slots())))
    for number in count():
        length = number % 64
        new = Disruption(
            filled(f"{number}-", 8 + length % 56), filled("n", length or 1), filled("u", 1 + 2 * length),
            filled("p", 1 + 3 * length), filled("u", 1 + 2 * length), "p" * length, "p" * length,
        )  # fmt: skip
        answer = add_debit(found, EVERYTHING, new, now=NOW)
        if isinstance(answer, Refused):
            assert answer.rule == "LedgerFull"
            return found
        found = answer
    raise AssertionError


def full_slots() -> Iterator[LedgerSlot]:
    """Fifty thousand disruptions of as many workloads."""
    for slot in range(100):
        keys = [f"{number:07}" for number in range(slot * 500, slot * 500 + 500)]
        yield LedgerSlot(
            write_micro_time(NOW - 86_000 + slot), 500, f"{hash_name('shop')}500", " ".join(keys)
        )


def filled(text: str, length: int) -> str:
    return text.ljust(length, "x")


@pytest.mark.parametrize(
    ("resource", "fullest"), [(HISTORIES, the_fullest_history()), (LEDGERS, the_fullest_ledger())]
)
async def test_the_fullest_object_is_accepted_twice(
    client: Client, resource: Resource[Any], fullest: Record
) -> None:
    """The second write is the dearer one: it is compared with the first."""
    wanted = sent(resource, fullest)
    kept = await keep(client, resource, wanted)
    again = await write_status(client, resource, wanted, kept)
    assert again["status"] == wanted["status"]


async def test_a_ledger_takes_no_more_than_it_expects(client: Client) -> None:
    """The API server adds which client owns which field."""
    wanted = sent(LEDGERS, the_fullest_ledger())
    kept = await keep(client, LEDGERS, wanted)
    for _ in range(3):
        begun = time.monotonic()
        kept = await write_status(client, LEDGERS, wanted, kept)
        took = time.monotonic() - begun
    stored = len(json.dumps(await client.get(LEDGERS.path("default")), separators=(",", ":")))
    summary = wanted["status"]["summary"]
    print(f"{stored} bytes with {summary}; the last write took {took:.3f} s")
    # Each open move reserves what it takes once it is counted, too.
    assert 0.6 * summary["bytes"] < stored < summary["bytes"] <= MOST_BYTES


async def test_the_status_is_written_by_its_own_path_only(client: Client) -> None:
    found = await keep(client, SCORES, SOUND["NodePlacementScore"])
    path = SCORES.path(found["metadata"]["name"])
    await client.request("PUT", path, changed(found, {"status": {}}))
    assert (await client.get(path))["status"] == found["status"]
    found = await client.get(path)
    await write_status(client, SCORES, changed(found, {"spec.source": "other"}), found)
    assert (await client.get(path))["spec"] == found["spec"]


async def test_scores_are_selected_by_node_and_source(client: Client) -> None:
    for node, source in (("n1", "load"), ("n2", "load"), ("n1", "power")):
        await keep(client, SCORES, sent(SCORES, score(node, source)))
    selected = {
        selector: [
            each["metadata"]["name"]
            for each in (await client.get(f"{SCORES.path()}?fieldSelector={selector}"))["items"]
        ]
        for selector in ("spec.nodeName=n1", "spec.source=load")
    }
    assert selected == {
        "spec.nodeName=n1": ["load-n1", "power-n1"],
        "spec.source=load": ["load-n1", "load-n2"],
    }


async def table(shared: Cluster, resource: Resource[Any]) -> list[dict[str, Any]]:
    """What kubectl prints: the rows, by the names of the columns."""
    async with shared.client() as client:
        session = client._session
        assert session is not None
        wanted = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
        async with session.get(resource.path(), headers=wanted) as answer:
            found = await answer.json()
    names = [column["name"] for column in found["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in found["rows"]]


@pytest.mark.parametrize(
    ("kind", "told", "told_when_empty"),
    [
        (
            "EvictionHistory",
            {"Kind": "Deployment", "Workload": "web", "Phase": "Evicted", "From": "n1", "Last": "Same"},
            {"Kind": "Deployment", "Workload": "web", "Phase": "", "From": "", "Last": ""},
        ),
        (
            "MoveLedger",
            {"Tentative": 0, "Spent": 1, "Bytes": 5632, "Last-Move": "m1", "State": "Spent"},
            {"Tentative": "", "Spent": "", "Bytes": "", "Last-Move": "", "State": "", "Since": ""},
        ),
        (
            "NodePlacementScore",
            {"Node": "n1", "Source": "load", "Valid-Until": "2026-11-18T12:00:00Z"},
            {"Node": "n1", "Source": "load", "Valid-Until": "", "Scores": ""},
        ),
    ],
)
async def test_kubectl_columns_show_the_status(
    shared: Cluster, client: Client, kind: str, told: Object, told_when_empty: Object
) -> None:
    resource, wanted = RESOURCES[kind], SOUND[kind]
    found = await keep(client, resource, wanted)
    (row,) = await table(shared, resource)
    assert {key: row[key] for key in told} == told
    assert row["Name"] == found["metadata"]["name"]
    await write_status(client, resource, changed(wanted, {"status": {}}), found)
    (row,) = await table(shared, resource)
    assert {key: row[key] or "" for key in told_when_empty} == told_when_empty


def documented() -> list[Object]:
    text = (ROOT / "docs" / "memory.md").read_text()
    examples = [yaml.safe_load(part.partition("\n```")[0]) for part in text.split("\n```yaml\n")[1:]]
    return [example for example in examples if example["kind"] in RESOURCES]


@pytest.mark.parametrize("example", documented(), ids=lambda example: example["kind"])
async def test_a_documented_example_is_accepted_as_it_stands(client: Client, example: Object) -> None:
    kept = await keep(client, RESOURCES[example["kind"]], example)
    assert fields(kept) == fields(example)
