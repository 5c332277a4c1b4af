"""A move request, from the command to the leading daemon, with crashes of either."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace

from reberth.client.api import Api
from reberth.client.lease import LEASES, LeaseSettings
from reberth.cluster.kinds import HISTORIES, Resource
from reberth.memory.history import Ending
from reberth.records import Lease, LeaseSpec, ObjectMeta
from reberth.values import errors
from reberth.values.refusal import Refused
from rescheduler.commands.move_request import MoveRequestClient
from rescheduler.daemon.move_requests import MoveRequestReceiver
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.move_request import (
    BUSY,
    LIFE,
    MoveRequest,
    find_answer,
    place_request,
    prolong_request,
    read_request,
)
from rescheduler.moves.order import MoveOrder
from tests.support.rescheduler.crash_simulator import FakeApi, Killed, Late, World, make_context

pytestmark = [pytest.mark.looptime, pytest.mark.asyncio]

LEASE = LeaseSettings()
ASKED = MoveRequest("00000000000a", "shop", "web-1", "uid-web-1", ("n2",), "why not", "2020-01-01T00:00:00Z")
HELD = Refused("LeaseHeld", "somebody holds the lease")
PAUSED = Refused("Paused", "for a while")


def make_world() -> World:
    world = World()
    world.put(LEASES, Lease(ObjectMeta(name=LEASE.name, namespace=LEASE.namespace), LeaseSpec("leader")))
    return world


def lease_of(world: World) -> Lease:
    return cast("Lease", world.objects[LEASES.name, LEASE.namespace, LEASE.name])


def put_request(world: World, request: MoveRequest = ASKED, *, life: float = LIFE) -> MoveRequest:
    """Put a request there that ends so much later."""
    lease, until = lease_of(world), prolong_request(request, world.now() + life - LIFE)
    placed = place_request(lease.metadata.annotations or {}, until, now=world.now())
    assert not isinstance(placed, Refused)
    world.put(LEASES, replace(lease, metadata=replace(lease.metadata, annotations=dict(placed))))
    return until


class SlowApi(FakeApi):
    """Its moves begin late: their history, the first that they write, takes its time."""

    async def create(self, resource: Resource[Any], body: Any, *, namespace: str = "") -> Any:
        await asyncio.sleep(2 if resource is HISTORIES else 0)
        return await super().create(resource, body, namespace=namespace)


@asynccontextmanager
async def leading(
    world: World, api: FakeApi, *, name: str = "leader", **changes: Any
) -> AsyncIterator[MoveRequestReceiver]:
    """A leader that has taken up what it found, and sees the lease twice a second."""
    context = dataclasses.replace(make_context(world, api), **changes)
    async with asyncio.TaskGroup() as group:
        dispatcher = MoveDispatcher(context, group, on_end=lambda _planned, _evicted: None)
        await dispatcher.resume()
        receiver = MoveRequestReceiver(context, dispatcher, LEASE, identity=name)
        tasks = [group.create_task(receiver.run()), group.create_task(show(world, receiver))]
        yield receiver
        await dispatcher.finished()
        for task in tasks:
            task.cancel()


async def show(world: World, receiver: MoveRequestReceiver) -> None:
    while True:
        receiver.take_lease(lease_of(world))
        await asyncio.sleep(0.5)


def ask(world: World, request: MoveRequest = ASKED) -> tuple[asyncio.Task[Ending | Refused], list[str]]:
    said: list[str] = []
    client = cast("Api", FakeApi(world))
    customer = MoveRequestClient(client, LEASE, request, tell=said.append, clock=world.now)
    return asyncio.create_task(customer.run(HELD)), said


async def test_a_move_is_handed_over_carried_out_and_followed() -> None:
    world = make_world()
    async with leading(world, FakeApi(world)):
        served, said = ask(world)
        ending = await served
    assert isinstance(ending, Ending)
    assert (ending.is_well, ending.landed_on) == (True, "n2")
    assert world.evictions == [(ASKED.move, "uid-web-1")]
    assert said == [
        "requested from leader",
        f"{ASKED.move}: web-1 off n1 to n2",
        "evicted: waiting for the replacement",
        f"{ASKED.move}: {ending}",
    ]
    history = world.history()
    assert history is not None
    (past,) = history.status.past or ()
    assert (past.id, past.policy, past.reason) == (ASKED.move, MANUAL, "why not")


async def test_the_steps_of_a_move_are_reported_as_they_come() -> None:
    world = make_world()
    lost = {1: Late("evict", "nobody knows")}
    async with leading(world, FakeApi(world, refusals=lost)):
        served, said = ask(world)
        ending = await served
    assert said == [
        "requested from leader",
        f"{ASKED.move}: web-1 off n1 to n2",
        "evicted: waiting for the replacement",
        f"{ASKED.move}: {ending}",
    ]


async def test_what_refused_the_workload_before_is_told_and_stops_no_person() -> None:
    world = make_world()
    denial = errors.Forbidden("evict", 'admission webhook "keep" denied the request: not now')
    async with leading(world, FakeApi(world, refusals={1: denial})):
        assert (await ask(world)[0]) == Refused("EvictionRefused", denial.message)
    again = replace(ASKED, id="00000000000b")
    async with leading(world, FakeApi(world, refusals={1: Late("evict", "nobody knows")})):
        served, said = ask(world, again)
        assert isinstance(await served, Ending)
    (told,) = [line for line in said if line.startswith("refused before: ")]
    assert "EvictionRefused, for plans until 20" in told
    assert 'webhook "keep" denied the request: not now' in told


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"pod": "web-9"}, "NoSuchPod"),
        ({"uid": "uid-of-another"}, "NoSuchPod"),
        ({"to": ("n1",)}, "NoFeasibleDestination"),
        ({"to": ()}, "NoFeasibleDestination"),
    ],
)
async def test_a_request_is_refused_by_the_rules_of_the_command(
    changes: Mapping[str, Any], rule: str
) -> None:
    world = make_world()
    async with leading(world, FakeApi(world)):
        served, said = ask(world, replace(ASKED, **changes))
        refused = await served
    assert isinstance(refused, Refused)
    assert refused.rule == rule
    assert said == []
    assert world.evictions == []
    assert world.history() is None


async def test_only_a_stop_reason_for_moves_by_hand_refuses_them() -> None:
    for stopped_by, count in ((MANUAL, 0), ("underUtilisedNodes", 1)):
        world = make_world()

        def stop_reason(policy: str, stopped_by: str = stopped_by) -> Refused | None:
            return PAUSED if policy == stopped_by else None

        async with leading(world, FakeApi(world), stop_reason=stop_reason):
            came = await ask(world)[0]
        assert (came == PAUSED) == (stopped_by == MANUAL)
        assert len(world.evictions) == count


async def test_a_refusal_after_the_acceptance_is_reported_with_its_rule() -> None:
    world = make_world()
    api = SlowApi(world, refusals={1: errors.Forbidden("evict", "not this one")})
    async with leading(world, api):
        served, said = ask(world)
        refused = await served
    assert refused == Refused("EvictionRefused", "not this one")
    assert said[0] == "requested from leader"
    assert world.evictions == []
    assert world.noted() == set()


async def test_a_second_request_for_a_pod_that_is_being_moved_is_refused() -> None:
    world = make_world()
    async with leading(world, FakeApi(world)) as receiver:
        first, second = put_request(world), replace(ASKED, id="00000000000b")
        await receiver.receive(first)
        await receiver.receive(put_request(world, second))
    answer = find_answer(lease_of(world).metadata.annotations, second.id)
    assert answer is not None
    assert answer.refused is not None
    assert answer.refused.rule == "MoveUnderWay"
    assert [move for move, _ in world.evictions] == [ASKED.move]


async def test_of_two_processes_that_believe_they_lead_one_begins_the_move() -> None:
    world = make_world()
    said: tuple[list[str], list[str]] = ([], [])
    async with (
        leading(world, FakeApi(world), name="old", tell=said[0].append) as old,
        leading(world, FakeApi(world), name="new", tell=said[1].append) as new,
    ):
        request = put_request(world)
        await asyncio.gather(old.receive(request), new.receive(request))
    assert len(world.evictions) == 1
    assert sorted(map(bool, said)) == [False, True]


async def test_an_expired_request_is_refused_and_never_begun() -> None:
    world = make_world()
    async with leading(world, FakeApi(world)) as receiver:
        request = put_request(world, life=1.0)
        await receiver.receive(replace(request, until=prolong_request(request, world.now() - LIFE).until))
    answer = find_answer(lease_of(world).metadata.annotations, ASKED.id)
    assert answer is not None
    assert answer.refused is not None
    assert answer.refused.rule == "RequestExpired"
    assert world.evictions == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("dies_at", range(1, 12))
async def test_wherever_a_process_dies_the_pod_is_evicted_at_most_once_and_nothing_is_left(
    dies_at: int, *, after: bool
) -> None:
    world = make_world()
    request = put_request(world)
    with suppress(BaseExceptionGroup):
        async with leading(world, FakeApi(world, dies_at=dies_at, after=after)) as receiver:
            with suppress(Killed):
                await receiver.receive(request)
    async with leading(world, FakeApi(world), name="heir"):
        await asyncio.sleep(2)
    assert len(world.evictions) <= 1
    assert read_request(lease_of(world).metadata.annotations) is None
    history = world.history()
    assert history is None or not history.status.open
    is_answered_only = (dies_at, after) in ((1, True), (2, False))
    assert (history is None) == is_answered_only


async def test_a_move_that_was_accepted_and_never_begun_is_reported_as_not_begun() -> None:
    world = make_world()
    served, said = ask(world)
    await asyncio.sleep(0.1)
    request = read_request(lease_of(world).metadata.annotations)
    assert request is not None
    with suppress(BaseExceptionGroup):
        async with leading(world, FakeApi(world, dies_at=1, after=True)):
            await asyncio.sleep(1)
    async with leading(world, FakeApi(world), name="heir"):
        refused = await served
    assert isinstance(refused, Refused)
    assert refused.rule == "NotBegun"
    assert said == ["requested from leader"]
    assert world.evictions == []


async def test_an_answer_that_failed_to_be_written_is_retried_when_the_lease_is_back() -> None:
    world = make_world()
    async with leading(world, FakeApi(world, troubles={1: errors.Forbidden("patch", "for a while")})):
        assert isinstance(await ask(world)[0], Ending)
    assert len(world.evictions) == 1


async def test_a_move_that_no_daemon_ends_is_not_awaited_forever() -> None:
    """Its history stands open, is deleted, or says that it was dropped and nobody says why."""
    for change, came in ((None, "Unended"), ("deleted", "Gone"), ("dropped", "MoveDropped")):
        world = make_world()
        served, _ = ask(world)
        await asyncio.sleep(0.1)
        with suppress(BaseExceptionGroup):
            async with leading(world, FakeApi(world, dies_at=6)):
                await asyncio.sleep(2)
        await asyncio.sleep(1)
        (key,) = (key for key in world.objects if key[0] == HISTORIES.name)
        if change == "dropped":
            async with leading(world, FakeApi(world, refusals={1: errors.Forbidden("evict", "no")})):
                await asyncio.sleep(1)
        elif change == "deleted":
            del world.objects[key]
        ended = await served
        assert (ended.rule if isinstance(ended, Refused) else ended.outcome) == came


async def test_if_the_holder_accepts_no_requests_the_request_is_withdrawn() -> None:
    world = make_world()
    refused = await ask(world)[0]
    expected = "somebody holds the lease, and it did not accept the request within 20 s"
    assert refused == Refused("LeaseHeld", expected)
    assert read_request(lease_of(world).metadata.annotations) is None


async def test_another_waiting_request_is_awaited_for_a_while_and_then_reported() -> None:
    world = make_world()
    other = put_request(world, replace(ASKED, id="00000000000b"))
    assert await ask(world)[0] == BUSY
    assert read_request(lease_of(world).metadata.annotations) == other


async def test_a_client_that_exits_before_the_answer_withdraws_its_request() -> None:
    world = make_world()
    served, said = ask(world)
    await asyncio.sleep(1)
    served.cancel()
    with pytest.raises(asyncio.CancelledError):
        await served
    assert said == ["the request was withdrawn"]
    assert read_request(lease_of(world).metadata.annotations) is None


async def test_a_client_that_exits_after_the_answer_leaves_the_move_to_the_daemon() -> None:
    world = make_world()
    async with leading(world, SlowApi(world)):
        served, said = ask(world)
        await asyncio.sleep(0.8)
        served.cancel()
        with pytest.raises(asyncio.CancelledError):
            await served
        await asyncio.sleep(3)
    assert said[-1] == f"{ASKED.move} continues: leader executes it"
    assert [move for move, _ in world.evictions] == [ASKED.move]


async def test_a_request_that_meets_a_fault_is_refused_and_the_next_one_is_carried_out(
    monkeypatch: pytest.MonkeyPatch, faults: list[str]
) -> None:
    world = make_world()
    compose = MoveRequestReceiver._compose

    async def stumble(receiver: MoveRequestReceiver, request: MoveRequest) -> MoveOrder | Refused:
        if request.id == ASKED.id:
            raise RecursionError
        return await compose(receiver, request)

    monkeypatch.setattr(MoveRequestReceiver, "_compose", stumble)
    async with leading(world, FakeApi(world)):
        refused = await ask(world)[0]
        served = await ask(world, replace(ASKED, id="00000000000b"))[0]
    assert isinstance(refused, Refused)
    assert refused.rule == "Fault"
    assert isinstance(served, Ending)
    assert faults
    faults.clear()
