"""Custom resources that a real API server rejects, and the field that it names."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from reberth.cluster.kinds import SCORES
from reberth.memory.history import MOST_DESTINATIONS, MOST_OPEN, MOST_PAST
from reberth.memory.ledger import MOST_DEBITS
from reberth.memory.ledger_slots import MOST_PERIODS, MOST_SLOTS
from reberth.memory.replacements import MOST_KNOWN
from reberth.values.timestamp import TimeError, parse_time
from tests.live.support.memory_objects import (
    GONE,
    RESOURCES,
    SOUND,
    changed,
    definitions,
    fields,
    keep,
    tidy_client,
    write_status,
)

pytestmark = pytest.mark.live


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def defined(shared: Cluster) -> AsyncIterator[list[str]]:
    async with definitions(shared) as paths:
        yield paths


@pytest_asyncio.fixture
async def client(shared: Cluster) -> AsyncIterator[Client]:
    async with tidy_client(shared) as opened:
        yield opened


OPEN, PAST = (SOUND["EvictionHistory"]["status"][list_][0] for list_ in ("open", "past"))
DEBIT = SOUND["MoveLedger"]["status"]["debits"][0]
PERIOD = {"scope": "cluster", "seconds": 605, "until": "2026-11-18T12:00:00Z"}
SLOT = {"time": "2026-11-18T12:00:00Z", "count": 1}
CONDITION = {
    "type": "GivenUp",
    "status": "True",
    "reason": "FruitlessMoves",
    "message": "",
    "lastTransitionTime": "2026-11-18T12:00:00Z",
}
MISSHAPEN: list[tuple[str, str, Any, str]] = [
    ("EvictionHistory", "status.open.0.id", GONE, "status.open[0].id: Required value"),
    ("EvictionHistory", "status.open.0.id", "", "status.open[0].id: Invalid value"),
    ("EvictionHistory", "status.open.0.id", "a b", "status.open[0].id: Invalid value"),
    ("EvictionHistory", "status.open.0.id", "x" * 64, "status.open[0].id: Too long"),
    ("EvictionHistory", "status.open.0.id", "p1", "status.past: Invalid value"),
    ("EvictionHistory", "status.open.0.pod", GONE, "status.open[0].pod: Required value"),
    ("EvictionHistory", "status.open.0.podUID", "", "status.open[0].podUID: Invalid value"),
    ("EvictionHistory", "status.open.0.controllerUID", GONE, "status.open[0].controllerUID: Required value"),
    ("EvictionHistory", "status.open.0.from", "", "status.open[0].from: Invalid value"),
    ("EvictionHistory", "status.open.0.from", "a/b", "status.open[0].from: Invalid value"),
    ("EvictionHistory", "status.open.0.pod", "../../x", "status.open[0].pod: Invalid value"),
    ("EvictionHistory", "status.open.0.destinations", ["#"], "status.open[0].destinations[0]: Invalid value"),
    ("EvictionHistory", "status.past.0.landedOn", "..", "status.past[0].landedOn: Invalid value"),
    ("EvictionHistory", "status.open.0.destinations", "n1", "status.open[0].destinations: Invalid value"),
    (
        "EvictionHistory",
        "status.open.0.destinations",
        [f"n{number}" for number in range(MOST_DESTINATIONS + 1)],
        "status.open[0].destinations: Too many",
    ),
    (
        "EvictionHistory",
        "status.open.0.knownPods",
        [f"uid-{number}" for number in range(MOST_KNOWN + 1)],
        "status.open[0].knownPods: Too many",
    ),
    ("EvictionHistory", "status.open.0.knownPods", [""], "status.open[0].knownPods[0]: Invalid value"),
    ("EvictionHistory", "status.open.0.reason", "x" * 1025, "status.open[0].reason: Too long"),
    ("EvictionHistory", "status.open.0.phase", "Moving", "status.open[0].phase: Unsupported value"),
    ("EvictionHistory", "status.open.0.evictedAt", GONE, "status.open[0].evictedAt: Invalid value"),
    (
        "EvictionHistory",
        "status.open.0.expiresAt",
        OPEN["plannedAt"],
        "status.open[0].expiresAt: Invalid value",
    ),
    (
        "EvictionHistory",
        "status.open.0.awaitedUntil",
        OPEN["plannedAt"],
        "status.open[0].awaitedUntil: Invalid value",
    ),
    ("EvictionHistory", "status.open.0.plannedAt", "yesterday", "status.open[0].plannedAt: Invalid value"),
    ("EvictionHistory", "status.open.0.plannedAt", 1, "status.open[0].plannedAt: Invalid value"),
    ("EvictionHistory", "status.open.0.colour", "red", 'unknown field "status.open[0].colour"'),
    ("EvictionHistory", "status.open", [OPEN, OPEN], "status.open[1]: Duplicate value"),
    (
        "EvictionHistory",
        "status.open",
        [OPEN | {"id": f"m{number}"} for number in range(MOST_OPEN + 1)],
        "status.open: Too many",
    ),
    ("EvictionHistory", "status.past.0.outcome", "Fine", "status.past[0].outcome: Unsupported value"),
    ("EvictionHistory", "status.past.0.closedAt", GONE, "status.past[0].closedAt: Required value"),
    ("EvictionHistory", "status.past.0.evictedAt", GONE, "status.past[0].blockUntil: Invalid value"),
    ("EvictionHistory", "status.past.0.timeToReady", -1, "status.past[0].timeToReady: Invalid value"),
    ("EvictionHistory", "status.past.0.timeToReady", 1.5, "status.past[0].timeToReady: Invalid value"),
    ("EvictionHistory", "status.past.0.scoreBefore", "12", "status.past[0].scoreBefore: Invalid value"),
    ("EvictionHistory", "status.past.0.landedOn", "", "status.past[0].landedOn: Invalid value"),
    ("EvictionHistory", "status.past", [PAST, PAST], "status.past[1]: Duplicate value"),
    (
        "EvictionHistory",
        "status.past",
        [PAST | {"id": f"p{number}"} for number in range(MOST_PAST + 1)],
        "status.past: Too many",
    ),
    ("EvictionHistory", "status.givenUpUntil", "2026-11-18", "status.givenUpUntil: Invalid value"),
    (
        "EvictionHistory",
        "status.conditions",
        [CONDITION | {"status": "Maybe"}],
        "status.conditions[0].status: Unsupported value",
    ),
    ("EvictionHistory", "status.conditions", [CONDITION, CONDITION], "status.conditions[1]: Duplicate value"),
    (
        "EvictionHistory",
        "status.conditions",
        [CONDITION | {"message": "m" * 1025}],
        "status.conditions[0].message: Too long",
    ),
    ("MoveLedger", "status.debits.0.move", GONE, "status.debits[0].move: Required value"),
    ("MoveLedger", "status.debits.0.namespace", GONE, "status.debits[0].namespace: Required value"),
    ("MoveLedger", "status.debits.0.workloadUID", "", "status.debits[0].workloadUID: Invalid value"),
    ("MoveLedger", "status.debits.0.pod", "", "status.debits[0].pod: Invalid value"),
    ("MoveLedger", "status.debits.0.podUID", "", "status.debits[0].podUID: Invalid value"),
    ("MoveLedger", "status.debits.0.policy", "p" * 254, "status.debits[0].policy: Too long"),
    ("MoveLedger", "status.debits.0.pool", "p" * 382, "status.debits[0].pool: Too long"),
    ("MoveLedger", "status.debits.0.time", "12:00", "status.debits[0].time: Invalid value"),
    ("MoveLedger", "status.debits.0.state", "Lost", "status.debits[0].state: Unsupported value"),
    ("MoveLedger", "status.debits", [DEBIT, DEBIT], "status.debits[1]: Duplicate value"),
    (
        "MoveLedger",
        "status.debits",
        [DEBIT | {"move": f"m{number}"} for number in range(MOST_DEBITS + 1)],
        "status.debits: Too many",
    ),
    ("MoveLedger", "status.slots", [{"count": 1}], "status.slots[0].time: Required value"),
    ("MoveLedger", "status.slots", [SLOT | {"count": 0}], "status.slots[0].count: Invalid value"),
    ("MoveLedger", "status.slots", [SLOT | {"time": "noon"}], "status.slots[0].time: Invalid value"),
    (
        "MoveLedger",
        "status.slots",
        [SLOT | {"workloads": "short"}],
        "status.slots[0].workloads: Invalid value",
    ),
    (
        "MoveLedger",
        "status.slots",
        [SLOT | {"namespaces": "a b"}],
        "status.slots[0].namespaces: Invalid value",
    ),
    ("MoveLedger", "status.slots", [SLOT] * (MOST_SLOTS + 1), "status.slots: Too many"),
    ("MoveLedger", "status.spentMoves.0.moves", "m1  m2", "status.spentMoves[0].moves: Invalid value"),
    ("MoveLedger", "status.spentMoves.0.until", "soon", "status.spentMoves[0].until: Invalid value"),
    (
        "MoveLedger",
        "status.periods",
        [PERIOD | {"scope": "pod"}],
        "status.periods[0].scope: Unsupported value",
    ),
    ("MoveLedger", "status.periods", [PERIOD | {"seconds": 0}], "status.periods[0].seconds: Invalid value"),
    ("MoveLedger", "status.periods", [PERIOD | {"until": "soon"}], "status.periods[0].until: Invalid value"),
    ("MoveLedger", "status.periods", [PERIOD] * (MOST_PERIODS + 1), "status.periods: Too many"),
    ("MoveLedger", "status.forgotten", {"clusterUntil": "9"}, "status.forgotten.clusterUntil: Invalid value"),
    ("MoveLedger", "status.summary.spent", -1, "status.summary.spent: Invalid value"),
    ("NodePlacementScore", "status.scores.0.value", 101, "status.scores[0].value: Invalid value"),
    ("NodePlacementScore", "status.scores.0.value", -101, "status.scores[0].value: Invalid value"),
    ("NodePlacementScore", "status.scores.0.value", 0.5, "status.scores[0].value: Invalid value"),
    ("NodePlacementScore", "status.scores.0.value", GONE, "status.scores[0].value: Required value"),
    ("NodePlacementScore", "status.scores.0.name", "cheap", "status.scores[1]: Duplicate value"),
    ("NodePlacementScore", "status.scores.0.name", "a=b", "status.scores[0].name: Invalid value"),
    ("NodePlacementScore", "status.validUntil", "soon", "status.validUntil: Invalid value"),
]


@pytest.mark.parametrize(("kind", "path", "value", "said"), MISSHAPEN)
async def test_a_misshapen_status_is_refused_by_its_field(
    client: Client, kind: str, path: str, value: Any, said: str
) -> None:
    resource, wanted = RESOURCES[kind], SOUND[kind]
    found = await keep(client, resource, changed(wanted, {"status": {}}))
    with pytest.raises(Refused) as refused:
        await write_status(client, resource, changed(wanted, {path: value}), found)
    assert refused.value.status in (400, 422)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "path", "value", "said"),
    [
        ("EvictionHistory", "spec", GONE, "spec: Required value"),
        ("EvictionHistory", "spec.workload", GONE, "spec.workload: Required value"),
        ("EvictionHistory", "spec.workload.kind", GONE, "spec.workload.kind: Required value"),
        ("EvictionHistory", "spec.workload.uid", "", "spec.workload.uid: Invalid value"),
        ("MoveLedger", "metadata.name", "second", "metadata.name: Unsupported value"),
        ("NodePlacementScore", "spec", GONE, "spec: Required value"),
        ("NodePlacementScore", "spec.nodeName", "", "spec.nodeName: Invalid value"),
        ("NodePlacementScore", "spec.nodeName", "N 1", "spec.nodeName: Invalid value"),
        ("NodePlacementScore", "spec.source", GONE, "spec.source: Required value"),
        ("NodePlacementScore", "spec.source", "a/b", "spec.source: Invalid value"),
    ],
)
async def test_a_misshapen_object_is_not_created(
    client: Client, kind: str, path: str, value: Any, said: str
) -> None:
    with pytest.raises(Refused) as refused:
        await keep(client, RESOURCES[kind], changed(SOUND[kind], {path: value}))
    assert refused.value.status == 422
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("EvictionHistory", "spec.workload.name", "other"),
        ("EvictionHistory", "spec.workload.uid", "other"),
        ("NodePlacementScore", "spec.nodeName", "other"),
        ("NodePlacementScore", "spec.source", "other"),
    ],
)
async def test_the_owner_of_an_object_never_changes(client: Client, kind: str, path: str, value: str) -> None:
    resource = RESOURCES[kind]
    found = await keep(client, resource, SOUND[kind])
    name = resource.path(found["metadata"]["name"], namespace=found["metadata"].get("namespace", ""))
    with pytest.raises(Refused, match=f"{path.rpartition('.')[0]}: Invalid value: .*for ever"):
        await client.request("PUT", name, changed(found, {path: value}))


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        (
            "EvictionHistory",
            {"status.open.0.phase": "Noted", "status.open.0.evictedAt": GONE},
            'status.open[0].phase: Invalid value: "Noted": a move never goes back to an earlier phase',
        ),
        (
            "MoveLedger",
            {"status.debits.0.state": "Tentative"},
            'status.debits[0].state: Invalid value: "Tentative": a disruption that has happened',
        ),
    ],
)
async def test_recorded_history_cannot_be_taken_back(
    client: Client, kind: str, changes: Mapping[str, Any], said: str
) -> None:
    found = await keep(client, RESOURCES[kind], SOUND[kind])
    with pytest.raises(Refused) as refused:
        await write_status(client, RESOURCES[kind], changed(found, changes), found)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01t00:00:00Z",
        "2026-01-01T00:00:00z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00",
        "2026-02-29T00:00:00Z",
        "2028-02-29T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-12-31T23:59:60Z",
        "2026-01-01T00:00:00x1Z",
        "2026-01-01T00:00:00.1Z",
        "2026-01-01T00:00:00.123456789Z",
        "2026-01-01T00:00:00+23:59",
        "2026-01-01T00:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
    ],
)
async def test_a_time_is_taken_only_if_it_can_be_read(client: Client, text: str) -> None:
    found = await keep(client, SCORES, changed(SOUND["NodePlacementScore"], {"status": {}}))
    try:
        parse_time(text)
    except TimeError:
        with pytest.raises(Refused, match="status.validUntil"):
            await write_status(client, SCORES, {**found, "status": {"validUntil": text}}, found)
    else:
        kept = await write_status(client, SCORES, {**found, "status": {"validUntil": text}}, found)
        assert kept["status"]["validUntil"] == text


@pytest.mark.parametrize("kind", RESOURCES)
async def test_of_two_concurrent_status_writers_one_gets_a_conflict(client: Client, kind: str) -> None:
    resource, wanted = RESOURCES[kind], SOUND[kind]
    found = await keep(client, resource, wanted)
    kept = await write_status(client, resource, changed(wanted, {"status": {}}), found)
    with pytest.raises(Refused, match="the object has been modified") as refused:
        await write_status(client, resource, wanted, found)
    assert refused.value.status == 409
    assert fields(kept)["status"] == {}
