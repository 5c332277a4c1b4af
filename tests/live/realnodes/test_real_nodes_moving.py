"""Moves between real nodes: pods that end as pods do, kubelets that refuse, nodes that go away meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.nodes import is_ready
from localcluster.recorder import recording
from rescheduler.moves.outcome import MoveReport
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import Workload, move
from tests.live.support.real_pods import NODES, PODS, is_gone, real_workload
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.real_nodes, pytest.mark.asyncio(loop_scope="module")]

POLITE = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
SLOW = "trap 'sleep 2; exit 0' TERM; while :; do sleep 0.1; done"
STUBBORN = "trap '' TERM; while :; do sleep 1; done"
PRE_STOP = {"lifecycle": {"preStop": {"exec": {"command": ["/bin/sleep", "2"]}}}}
SOURCE, TARGET = "real-1", "real-2"


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="module")
async def defined(real: Cluster) -> AsyncIterator[None]:
    async with definitions(real):
        yield


@asynccontextmanager
async def closed(client: Client, node: str) -> AsyncIterator[None]:
    """No pod is bound to the node for as long."""
    await client.patch(f"{NODES}/{node}", {"spec": {"unschedulable": True}})
    yield
    await client.patch(f"{NODES}/{node}", {"spec": {"unschedulable": None}})


@asynccontextmanager
async def started(real: Cluster, name: str, command: str, **fields: object) -> AsyncIterator[Workload]:
    """A workload of one pod on the source, which is closed from then on."""
    async with real.client() as client, closed(client, SOURCE):
        async with closed(client, TARGET):
            await client.patch(f"{NODES}/{SOURCE}", {"spec": {"unschedulable": None}})
            running = real_workload(real, name, command, **fields)
            workload = await running.__aenter__()
            await client.patch(f"{NODES}/{SOURCE}", {"spec": {"unschedulable": True}})
        try:
            yield workload
        finally:
            await running.__aexit__(None, None, None)


@pytest.mark.parametrize(
    ("name", "command", "fields", "phase", "seconds"),
    [
        ("polite", POLITE, {}, "Succeeded", 0),
        ("slow", SLOW, {}, "Succeeded", 1.9),
        ("prestop", POLITE, {"container": PRE_STOP}, "Succeeded", 1.9),
        ("stubborn", STUBBORN, {}, "Failed", 4.9),
    ],
)
async def test_a_move_ends_with_its_replacement_ready_however_the_pod_ends(  # noqa: PLR0917 - one row of a table
    real: Cluster, name: str, command: str, fields: Object, phase: str, seconds: float
) -> None:
    async with started(real, name, command, grace=5, **fields) as workload, recording(real) as recorder:
        victim = await workload.pick()
        report, _ = await move(real, victim, [TARGET])
        await workload.client.wait(PODS, is_gone(victim["metadata"]["name"]))
        await assert_moved(workload, report)
        states = recorder.states_of(victim["metadata"]["name"])
    ending = [each for each in states if is_terminating(each.object)]
    assert is_ready(ending[0].object)  # who counts available pods must look at the deletion
    assert ending[-1].type == "DELETED"
    assert ending[-1].object["status"]["phase"] == phase
    assert seconds <= ending[-1].seconds - ending[0].seconds


async def test_a_replacement_that_the_kubelet_rejects_is_not_taken_for_the_landing(real: Cluster) -> None:
    """The controller makes another pod for each that is rejected, until the kubelet takes one."""
    sysctl = {"name": "net.core.somaxconn", "value": "1024"}
    forbidding = real.real_node(TARGET)
    await real.real_node(SOURCE).configure(allowedUnsafeSysctls=[sysctl["name"]])
    async with started(
        real, "choosy", POLITE, container={}, securityContext={"sysctls": [sysctl]}
    ) as workload:
        victim = await workload.pick()
        moving = asyncio.create_task(move(real, victim, [TARGET]))
        found = await workload.client.wait(PODS, lambda found: any(map(is_rejected, found["items"])))
        rejected = next(filter(is_rejected, found["items"]))
        assert "containerStatuses" not in rejected["status"]
        await forbidding.configure(allowedUnsafeSysctls=[sysctl["name"]])
        report, _ = await moving
        await assert_moved(workload, report)
        assert isinstance(report, MoveReport)
        assert report.ending.time_to_ready is not None


async def test_a_reboot_of_the_source_in_the_middle_of_a_move(real: Cluster) -> None:
    async with started(real, "rebooted", STUBBORN, grace=8) as workload:
        victim = await workload.pick()
        moving = asyncio.create_task(move(real, victim, [TARGET]))
        await workload.client.wait(pod_path(victim), is_terminating, every=0.02)
        await real.real_node(SOURCE).reboot()
        report, _ = await moving
        await assert_moved(workload, report)
        await workload.client.wait(PODS, is_gone(victim["metadata"]["name"]), seconds=60)
        await workload.client.wait(f"{NODES}/{SOURCE}", is_ready, seconds=60)


async def test_a_source_that_is_cut_off_in_the_middle_of_a_move(real: Cluster) -> None:
    """The pod cannot end, and is still there when its replacement is Ready elsewhere."""
    node = real.real_node(SOURCE)
    async with started(real, "severed", STUBBORN, grace=5) as workload:
        victim = await workload.pick()
        moving = asyncio.create_task(move(real, victim, [TARGET]))
        await workload.client.wait(pod_path(victim), is_terminating, every=0.02)
        node.cut_off()
        report, _ = await moving
        assert (await workload.client.get(pod_path(victim)))["metadata"]["deletionTimestamp"]
        await assert_moved(workload, report)
        await workload.client.wait(f"{NODES}/{SOURCE}", lambda found: not is_ready(found))
        node.reconnect()
        await workload.client.wait(PODS, is_gone(victim["metadata"]["name"]), seconds=60)
        await workload.client.wait(f"{NODES}/{SOURCE}", is_ready, seconds=60)


async def assert_moved(workload: Workload, report: object) -> None:
    assert isinstance(report, MoveReport), report
    assert report.ending.landed_on == TARGET
    assert report.ending.outcome in {"Same", "Better", "Unknown"}, report  # nothing forecasts here
    assert report.ending.time_to_ready is not None
    (past,) = (await workload.history())["past"]
    assert past["landedOn"] == TARGET
    assert (await workload.debits())[past["id"]] == "Spent"
    assert await workload.lost() == 1


def pod_path(pod: Object) -> str:
    return f"{PODS}/{pod['metadata']['name']}"


def is_terminating(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def is_rejected(pod: Object) -> bool:
    return bool(pod["status"].get("reason") == "SysctlForbidden")
