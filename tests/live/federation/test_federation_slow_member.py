"""One of twenty members answers each call after half a minute; the others get their copies as ever."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

import pytest
import pytest_asyncio

from bench.federation.counting import count_work, rest
from bench.federation.watching import watching
from localcluster.faults import Delay, FaultProxy, Match
from reberth.cluster.kinds import Resource, plain_kind
from reberth.records import PartialObject
from tests.live.support.fault_client import standing_before
from tests.live.support.hub_and_members import Place, deployment, eventually, federated, policy, reach
from tests.live.support.hub_paths import CLUSTERS, DEPLOYMENTS, POLICIES

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]

NAMES = [f"member{number}" for number in range(1, 21)]
SLOW, OTHERS = NAMES[7], [*NAMES[:7], *NAMES[8:]]
WORKLOADS, TURNS = 30, 3
SECONDS, LEAST, WITHIN = 30.0, 0.95, 240.0
API = {"requestsPerSecond": 100, "burst": 150}
# Beside twenty-one API servers on two cores the event loop may have to wait for its turn.
LEASE = {"namespace": "default", "duration": "60s", "renewDeadline": "50s", "stuckAfter": "60s"}
SETTINGS = {"api": API, "sessions": {"api": API}, "lease": LEASE}
COPIES = Resource(plain_kind("Deployment", PartialObject, "apps"), "deployments", "v1", namespaced=True)


class Stage:
    """Deployments that are in all members, and the watches that tell when a change of them has come there."""

    def __init__(
        self, place: Place, proxy: FaultProxy, copies: dict[str, Mapping[str, PartialObject]]
    ) -> None:
        self.place = place
        self.proxy = proxy
        self._copies = copies
        self._number = 0

    async def change(self) -> float:
        """Change all Deployments; copies that the other members get a second."""
        self._number += 1
        began = time.monotonic()
        change = {"metadata": {"labels": {"wave": f"{self._number}"}}}
        for name in names():
            await self.place.hub.patch(f"{DEPLOYMENTS}/{name}", change)
        await self._arrive(OTHERS)
        return len(OTHERS) * WORKLOADS / (time.monotonic() - began)

    async def settle(self, *, all_have_it: bool) -> None:
        """Wait until the hub has nothing more to do."""
        if all_have_it:
            await self._arrive([SLOW])
            await eventually(self.place.hub, f"{CLUSTERS}/{SLOW}", is_ready, within=WITHIN)
        await rest(self.place.hub, count_work)

    async def _arrive(self, members: list[str]) -> None:
        async with asyncio.timeout(WITHIN):
            while not all(self._have(self._copies[name]) for name in members):
                await asyncio.sleep(0.05)

    def _have(self, copies: Mapping[str, PartialObject]) -> bool:
        found = [each for each in copies.values() if each.metadata.name.startswith("wide-")]
        wave = f"{self._number}"
        return sum((each.metadata.labels or {}).get("wave") == wave for each in found) == WORKLOADS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(federated("slow-member", NAMES))
        proxy = await stack.enter_async_context(standing_before(place.clusters[SLOW]))
        await reach(place.hub, SLOW, await proxy.open(SLOW))
        await place.start(tmp_path_factory.mktemp("federation"), **SETTINGS)
        for name in NAMES:
            await eventually(place.hub, f"{CLUSTERS}/{name}", is_ready, within=WITHIN)
        await place.hub.create_all(DEPLOYMENTS, (deployment(name, 1) for name in names()))
        wanted = policy("wide")
        wanted["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
        await place.hub.create(POLICIES, wanted)
        copies = {
            name: await stack.enter_async_context(watching(cluster, COPIES))
            for name, cluster in place.clusters.items()
        }
        made = Stage(place, proxy, copies)
        await made.change()
        await made.settle(all_have_it=True)
        yield made


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param(Match(), id="every call"),
        pytest.param(
            Match(path=re.compile(r"^(?!/readyz)")), id="every call but probes, so that it stays Ready"
        ),
    ],
)
async def test_a_slow_member_takes_nothing_from_the_nineteen_others(stage: Stage, calls: Match) -> None:
    turns = []
    for _ in range(TURNS):
        alone = await stage.change()
        await stage.settle(all_have_it=True)
        async with stage.proxy.fault(calls, Delay(SECONDS)) as rule:
            beside = await stage.change()
            await stage.settle(all_have_it=False)
        assert rule.acted
        await stage.settle(all_have_it=True)
        turns.append((alone, beside))
    ratio = median(beside / alone for alone, beside in turns)
    figures = ", ".join(f"{beside:.1f} for {alone:.1f}" for alone, beside in turns)
    print(
        f"copies a second in the other members, with it slow and without: {figures}; median ratio {ratio:.3f}"
    )
    assert ratio >= LEAST


def names() -> list[str]:
    return [f"wide-{number:02d}" for number in range(WORKLOADS)]


def is_ready(cluster: Any) -> bool:
    conditions = {each["type"]: each["status"] for each in cluster.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and bool(cluster["status"].get("apiEnablements"))
