"""Whatever tenants of the hub write and members answer, what belongs to others is propagated and reported.

The controllers run as in the process. A neighbour of the tenant has one workload in two honest members, and
others that an honest member shares with a hostile one. With whatever objects beside them, all are scheduled,
applied and reported of; no fault of ours is met (tests are red on any); no step of the event loop takes long.
"""

import asyncio
from typing import Any, cast

import pytest

from federation.api import ResourceBinding
from federation.controllers.membership import discovery
from federation.hub.hub import Controller
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.process import Federation
from federation.settings import FederationSettings, Switches
from reberth.client.access import Access
from tests.support.cpu_cost import few_collections
from tests.support.federation.neighbours import NEIGHBOURS, REPLICAS, SHOP, Neighbour, write_cluster
from tests.support.federation.stored_hub import StoredHub
from tests.support.federation.stored_members import StoredMember, StoredSessions
from tests.support.hostile.hub_tenant import HubTenant
from tests.support.hostile.json_junk import write
from tests.support.hostile.member import HostileMember
from tests.support.loop_stretches import measuring_stretches
from tests.support.memory_growth import most_memory
from tests.support.resumable_rounds import Proof

DRAWN, OF_THE_MEMBER = 40, 10
SAMPLE, ROUNDS = 6, 4
SOAKED = 10**6
ROUNDS_AT_ONCE = 250
SECONDS = 30
# Seconds of the processor, about ten times what the worst of them take on a slow machine.
OF_A_STEP = 1.0
# Megabytes by which the process may grow while hubs come and go.
GROWTH = 80

SETTINGS = FederationSettings(controllers=Switches(tokens=False))
KINDS = {each.kind.name: each for each in resources.TEMPLATES}


class HostileHub:
    """The hub, its members, and the controllers of the process."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hub = StoredHub()
        self.m1, self.m2 = StoredMember("m1"), StoredMember("m2")
        sessions = StoredSessions(self.m1, self.m2, HostileMember("evil", seed, objects=OF_THE_MEMBER))
        index = WorkIndex(self.hub.hub)
        with monkeypatch.context() as patch:
            patch.setattr("federation.process.Sessions", lambda *_: sessions)
            made = Federation(cast("Access", None), SETTINGS)._make(self.hub.hub, index)
        self.hub.controllers = [cast("Controller", Indexing(index)), *made]
        for name in sessions.members:
            self.hub.feed(write_cluster(name))
        for each in NEIGHBOURS:
            self.hub.feed(each.write())
            self.hub.feed(each.write_policy())

    def find(self, neighbour: Neighbour) -> ResourceBinding:
        found = self.hub.find(resources.BINDINGS, SHOP, neighbour.binding)
        assert found is not None, neighbour
        return found

    def check(self) -> None:
        """The objects of the neighbours are where their policies want them, and what they do is told."""
        assert not [each for each in self.hub.left_out if SHOP in each]
        assert not [each for each in self.hub.refused if f" {SHOP}/" in each]
        for each in NEIGHBOURS:
            binding, clusters = self.find(each), set(each.clusters)
            given = {target.name: target.replicas for target in binding.spec.clusters or ()}
            honest = clusters - {"evil"}
            assert honest <= given.keys() <= clusters, "a hostile one may say that it serves nothing any more"
            assert each.kind == "Service" or sum(given.values()) == REPLICAS
            assert self.m1.find(KINDS[each.kind], SHOP, each.name) is not None
            told = {copy.cluster_name: copy for copy in binding.status.aggregated_status or ()}
            assert {told[name].health for name in honest} == {"Healthy"}
            self._check_template(each)

    def _check_template(self, neighbour: Neighbour) -> None:
        template = self.hub.find(KINDS[neighbour.kind], SHOP, neighbour.name)
        assert template is not None
        status = template.part("status")
        if neighbour.kind == "Service":
            assert {"hostname": "m1"} in status["loadBalancer"]["ingress"]
        elif neighbour.kind == "Job":
            assert status.get("active") or status["conditions"], "any member may say that it has failed"
        else:
            assert status["readyReplicas"] >= REPLICAS / 2


class Indexing:
    """The index of Works hears of every change before the controllers."""

    def __init__(self, index: WorkIndex) -> None:
        self.on_change = index.on_change

    async def run(self) -> None:
        await asyncio.Event().wait()


async def mirror_nothing(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def no_learned_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that is learned would be listed and watched at an API server."""
    monkeypatch.setattr(discovery, "mirror_learned_kinds", mirror_nothing)


async def run_round(
    seed: int, monkeypatch: pytest.MonkeyPatch, *, drawn: int = DRAWN
) -> tuple[HostileHub, float]:
    """Run one round; give also the processor time of the longest step."""
    one, tenant = HostileHub(seed, monkeypatch), HubTenant(seed)
    for wire in (tenant.claim_all(), *tenant.draw(drawn - 1)) if drawn else ():
        one.hub.feed(wire, write)
    with measuring_stretches() as spent:
        await one.hub.run(SECONDS)
    assert max(spent) <= OF_A_STEP
    one.check()
    return one, max(spent)


@pytest.mark.looptime
async def test_without_the_tenant_each_member_has_its_half(monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = await run_round(1, monkeypatch, drawn=0)
    assert {each.name: each.replicas for each in one.find(NEIGHBOURS[0]).spec.clusters or ()} == {
        "m1": 2,
        "m2": 2,
    }


@pytest.mark.looptime
async def test_workloads_are_shared_with_the_hostile_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what it answers would not matter."""
    hubs = [(await run_round(number, monkeypatch))[0] for number in (1, 4, 7, 10)]
    works = [work for one in hubs for work in one.hub.cache.of(resources.WORKS.kind).rows()]
    told = [
        work
        for work in works
        if work.metadata.namespace == "karmada-es-evil" and work.status.manifest_statuses
    ]
    assert len(told) >= len(hubs) * 3


@pytest.mark.looptime
@pytest.mark.parametrize("first", range(0, SAMPLE * ROUNDS, ROUNDS))
async def test_nothing_is_lost_for_the_neighbours(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(first, first + ROUNDS):
        await run_round(number, monkeypatch)


@pytest.mark.looptime
async def test_memory_is_bounded_while_objects_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(200, 206):
        await run_round(number, monkeypatch)
    before = most_memory()
    for number in range(300, 312):
        await run_round(number, monkeypatch)
    assert most_memory() - before <= GROWTH


@pytest.mark.soak
@pytest.mark.looptime
@pytest.mark.usefixtures("no_logs")
async def test_nothing_is_lost_among_a_million_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = Proof("hostile-hub")
    longest, before = 0.0, 0.0
    with few_collections():
        for index, number in enumerate(proof.remaining(range(SOAKED // (DRAWN + OF_THE_MEMBER)))):
            longest = max(longest, (await run_round(number, monkeypatch))[1])
            proof.note([number])
            if index == ROUNDS_AT_ONCE:
                before = most_memory()
            if index % ROUNDS_AT_ONCE == 0:
                done = (index + 1) * (DRAWN + OF_THE_MEMBER)
                print(f"{done} objects, longest step {longest:.3f} s, {most_memory():.0f} MB", flush=True)
    assert not before or most_memory() - before <= GROWTH
