"""The federation as a process: its pages, its enabled controllers, and leader election."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.client import Object, Refused
from tests.live.support.federation_pages import WITHIN, ask_page, read_page, wait_for_page
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy, restrict
from tests.live.support.hub_paths import BINDINGS, DEPLOYMENTS, POLICIES

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/reberth-federation"
KARMADA = "/apis/coordination.k8s.io/v1/namespaces/karmada-system/leases"
STEPS = r'karmada_scheduler_scheduling_algorithm_duration_seconds_count{schedule_step="(\w+)"} (\S+)'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with federated("federation-process") as place:
        yield place


async def test_the_process_serves_its_pages_and_runs_the_enabled_controllers(
    place: Place, tmp_path: Path
) -> None:
    hub = place.hub
    await place.start(tmp_path, controllers={"scheduler": False})
    await wait_for_page(place.cluster, "/readyz")
    await hub.create(DEPLOYMENTS, deployment("web", 2))
    await hub.create(POLICIES, policy("web"))
    made = await eventually(hub, f"{BINDINGS}/web-deployment", bool, within=WITHIN)
    assert "clusters" not in made["spec"]
    assert await read_page(place.cluster, "/healthz") == "ok\n"
    text = await read_page(place.cluster, "/metrics")
    assert 'reberth_federation_queue_depth{controller="detector"}' in text
    assert 'reberth_federation_queue_depth{controller="scheduler"}' not in text
    assert await place.stop() == 0
    assert not has_scheduled(await hub.get(f"{BINDINGS}/web-deployment"))

    await place.start(tmp_path)
    await eventually(hub, f"{BINDINGS}/web-deployment", has_scheduled, within=WITHIN)
    labels = '{result="scheduled",schedule_type="ReconcileSchedule"}'
    await wait_for_page(
        place.cluster, "/metrics", saying=f"karmada_scheduler_schedule_attempts_total{labels}"
    )
    await wait_for_page(
        place.cluster,
        "/metrics",
        saying='karmada_scheduler_queue_incoming_bindings_total{event="BindingAdd"}',
    )
    text = await read_page(place.cluster, "/metrics")
    counted = {step: float(count) for step, count in re.findall(STEPS, text)}
    assert counted.keys() == {"Filter", "Score", "Select", "AssignReplicas"}
    assert all(counted.values())
    assert await place.stop() == 0


async def test_a_second_process_takes_over_when_the_leader_stops(place: Place, tmp_path: Path) -> None:
    async with place.beside() as second:
        await place.start(tmp_path)
        held = await eventually(place.hub, LEASE, is_held, within=WITHIN)
        first_holder = held["spec"]["holderIdentity"]
        await second.start(tmp_path, server={"port": place.cluster.spare_port(1)})
        await wait_for_page(place.cluster, "/readyz", number=1)
        assert (await place.hub.get(LEASE))["spec"]["holderIdentity"] == first_holder
        assert await place.stop() == 0
        await eventually(
            place.hub,
            LEASE,
            lambda lease: is_held(lease) and lease["spec"]["holderIdentity"] != first_holder,
            within=WITHIN,
        )
        assert await second.stop() == 0


async def test_nothing_starts_while_karmadas_own_controllers_renew_their_leases(
    place: Place, tmp_path: Path
) -> None:
    """With the rights of the manifests, which are those to read these leases in their namespace alone."""
    hub, web = place.hub, "beside"
    await restrict(place)
    lease = LEASE.replace("/default/", f"/{place.namespace}/")
    held = {"holderIdentity": "host_1", "leaseDurationSeconds": 2}
    await hub.create(KARMADA, {"metadata": {"name": "karmada-scheduler"}, "spec": held})
    renewing = asyncio.create_task(renew(place))
    await place.start(tmp_path)
    async with asyncio.timeout(WITHIN):
        while "karmada-system/karmada-scheduler is renewed by host_1" not in await read_refusal(place):
            await asyncio.sleep(0.05)
    await hub.create(DEPLOYMENTS, deployment(web, 2))
    await hub.create(POLICIES, policy(web))
    await asyncio.sleep(6)  # three times as long as it looks
    assert (await hub.get(BINDINGS))["items"] == [await hub.get(f"{BINDINGS}/web-deployment")]
    assert 'karmada_running{lease="karmada-scheduler"} 1.0' in await read_page(place.cluster, "/metrics")
    with pytest.raises(Refused, match="not found"):  # it waits before it takes the lease
        await hub.get(lease)
    renewing.cancel()
    await eventually(hub, f"{BINDINGS}/{web}-deployment", has_scheduled, within=WITHIN)
    assert 'karmada_running{lease="karmada-scheduler"} 0.0' in await read_page(place.cluster, "/metrics")
    assert await place.stop() == 0
    assert "Karmada's controllers run on this hub" in place.log.read_text()


async def renew(place: Place) -> None:
    """Do what the scheduler of Karmada does, with a clock that is wrong by years."""
    for second in range(1, 60):
        spec = {"renewTime": f"2011-01-01T00:00:{second:02}.000000Z"}
        await place.hub.patch(f"{KARMADA}/karmada-scheduler", {"spec": spec})
        await asyncio.sleep(0.5)


async def read_refusal(place: Place) -> str:
    status, text = await ask_page(place.cluster, "/readyz")
    return text if status == 503 else ""


def has_scheduled(binding: Object) -> bool:
    conditions = (binding or {}).get("status", {}).get("conditions", ())
    return any(each["type"] == "Scheduled" and each["status"] == "True" for each in conditions)


def is_held(lease: Object) -> bool:
    return bool(lease and lease["spec"].get("holderIdentity"))
