"""Debits that are asked for at the same time share one write of the ledger."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from reberth.client.lease import LeaseLost
from reberth.cluster.kinds import LEDGERS, Resource
from reberth.memory.ledger import LEDGER_NAME, Disruption, add_debit
from reberth.memory.rates import DisruptionLimits, Rate
from reberth.records import Debit, DebitState, MoveLedger
from reberth.values import errors
from reberth.values.refusal import Refused
from rescheduler.execution.ledger_writer import SPENT_WITHIN, LedgerWriter
from tests.support.memory.objects import move
from tests.support.rescheduler.crash_simulator import FakeApi, World, make_context

pytestmark = pytest.mark.looptime

LATENCY = 0.02
FREE = DisruptionLimits(cluster=())
FEW = DisruptionLimits(cluster=(Rate((2, 600.0)),))


class SlowApi(FakeApi):
    """Its writes of the ledger take a while before and after they take effect."""

    async def replace(self, *given: object, **place: object) -> object:  # type: ignore[override] # handed on
        await asyncio.sleep(LATENCY)
        written = await super().replace(*given, **place)  # type: ignore[arg-type] # handed on
        await asyncio.sleep(LATENCY)
        return written


def write_to(api: FakeApi) -> LedgerWriter:
    context = make_context(api.world, api)
    return LedgerWriter(context.store, limits=lambda: FREE, clock=context.clock)


async def reserve(
    writer: LedgerWriter, moves: Iterable[str], limits: DisruptionLimits = FREE
) -> list[Debit | Refused | None]:
    return await asyncio.gather(*(writer.reserve(describe(each), limits) for each in moves))


def describe(move: str) -> Disruption:
    return Disruption(move, "shop", f"uid-{move}")


def states(world: World) -> dict[str, DebitState]:
    return {move: debit.state for move, debit in world.debits().items()}


async def test_what_is_asked_for_meanwhile_shares_the_next_write() -> None:
    api = SlowApi(World())
    writer = write_to(api)
    begun = asyncio.get_running_loop().time()
    first = asyncio.create_task(reserve(writer, ["first"]))
    await asyncio.sleep(LATENCY / 2)
    answers = await reserve(writer, [f"m{number}" for number in range(50)])
    assert all(isinstance(each, Debit) for each in answers)
    assert await first
    assert api.writes == 3  # the ledger is created before its first write
    assert asyncio.get_running_loop().time() - begun <= 0.1 + 4 * LATENCY
    assert len(api.world.debits()) == 51


async def test_there_are_at_most_ten_writes_a_second() -> None:
    api = FakeApi(World())
    writer = write_to(api)
    for number in range(300):
        asyncio.get_running_loop().call_later(
            number / 100, lambda number=number: asyncio.ensure_future(reserve(writer, [f"m{number}"]))
        )
    await asyncio.sleep(4)
    assert len(api.world.debits()) == 300
    assert api.writes <= 33


async def test_a_refusal_in_a_batch_refuses_nobody_else() -> None:
    writer = write_to(FakeApi(world := World()))
    answers = await reserve(writer, ["m1", "m2", "m3"], FEW)
    assert [type(each) for each in answers] == [Debit, Debit, Refused]
    assert set(states(world)) == {"m1", "m2"}


async def test_a_refusal_that_an_outdated_ledger_gives_is_asked_again_of_the_newest() -> None:
    world = World()
    writer, other = write_to(FakeApi(world)), write_to(FakeApi(world))
    await reserve(writer, ["m1", "m2"], FEW)
    await other.give_back("m1")
    (answer,) = await reserve(writer, ["m3"], FEW)
    assert isinstance(answer, Debit)


async def test_a_spent_debit_waits_for_another_write_but_not_for_long() -> None:
    api = FakeApi(world := World())
    writer = write_to(api)
    await reserve(writer, ["m1", "m2"])
    writes = api.writes
    writer.spend(describe("m1"), world.now())
    assert writer.is_spending("m1")
    await asyncio.sleep(1)
    await reserve(writer, ["m3"])
    assert states(world)["m1"] is DebitState.SPENT
    assert not writer.is_spending("m1")
    writer.spend(describe("m2"), world.now())
    await asyncio.sleep(SPENT_WITHIN + 0.01)
    assert states(world)["m2"] is DebitState.SPENT
    assert api.writes == writes + 2


async def test_a_flush_writes_what_is_spent_at_once_and_nothing_otherwise() -> None:
    api = FakeApi(world := World())
    writer = write_to(api)
    await reserve(writer, ["m1"])
    writer.spend(describe("m1"), world.now())
    await writer.flush()
    assert states(world) == {"m1": DebitState.SPENT}
    writes = api.writes
    await writer.flush()
    assert api.writes == writes


async def test_the_debit_of_somebody_who_has_gone_is_returned() -> None:
    api = SlowApi(world := World())
    writer = write_to(api)
    asking = asyncio.create_task(reserve(writer, ["m1"]))
    await asyncio.sleep(LATENCY * 1.5)
    assert set(states(world)) == {"m1"}  # written, and not answered yet
    asking.cancel()
    await asyncio.sleep(0)
    assert writer.find(move("m1"), "shop") is None
    assert await writer.read(move("m1"), "shop") is None
    await asyncio.sleep(1)
    assert states(world) == {}


async def test_a_debit_that_nobody_waits_for_any_more_is_not_written() -> None:
    api = SlowApi(world := World())
    writer = write_to(api)
    first = asyncio.create_task(reserve(writer, ["m1"]))
    await asyncio.sleep(LATENCY / 2)
    second = asyncio.create_task(reserve(writer, ["m2"]))
    await asyncio.sleep(0)
    second.cancel()
    await first
    await asyncio.sleep(1)
    assert set(states(world)) == {"m1"}


async def test_an_error_is_told_to_all_that_wait_and_what_is_spent_is_tried_again() -> None:
    api = FakeApi(world := World(), troubles={3: errors.Forbidden("write", "for a while")})
    writer = write_to(api)
    await reserve(writer, ["m1"])
    writer.spend(describe("m1"), world.now())
    asked = [asyncio.create_task(reserve(writer, [each])) for each in ("m2", "m3")]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(each) for each in answers] == [errors.Forbidden, errors.Forbidden]
    await asyncio.sleep(SPENT_WITHIN + 1)
    assert states(world) == {"m1": DebitState.SPENT}


async def test_after_the_lease_was_lost_nothing_is_tried_again() -> None:
    api = FakeApi(world := World(), troubles=dict.fromkeys(range(3, 9), LeaseLost("not renewed")))
    writer = write_to(api)
    await reserve(writer, ["m1"])
    writer.spend(describe("m1"), world.now())
    await asyncio.sleep(4 * SPENT_WITHIN)
    assert api.writes == 3
    assert not writer.is_spending("m1")


async def test_a_disruption_is_counted_though_the_ledger_was_deleted_after_its_debit() -> None:
    writer = write_to(FakeApi(world := World()))
    await reserve(writer, ["m1", "m2", "m3"], FEW)
    del world.objects[LEDGERS.name, "", LEDGER_NAME]
    for number in range(4):
        writer.spend(describe(f"m{number}"), world.now())
    await writer.flush()
    assert states(world) == {f"m{number}": DebitState.SPENT for number in range(4)}


async def test_a_renewed_debit_meets_what_was_sent_to_return_it() -> None:
    world = World()
    writer, earlier = write_to(FakeApi(world)), write_to(FakeApi(world))
    await reserve(earlier, ["m1"], FEW)
    sent = world.debits()["m1"]
    version = world.version
    await asyncio.sleep(1)
    assert isinstance(await writer.renew(describe("m1"), FEW), Debit)
    assert (world.version, world.debits()["m1"].time > sent.time) == (version + 1, True)
    await earlier.give_back("m1")  # it was carried out in time: the debit is reserved again
    assert isinstance(await writer.renew(describe("m1"), FEW), Debit)
    await reserve(earlier, ["m2"], FEW)
    await earlier.give_back("m1")
    await reserve(earlier, ["m3"], FEW)
    assert isinstance(await writer.renew(describe("m1"), FEW), Refused)


async def test_a_spent_debit_is_not_renewed() -> None:
    writer = write_to(FakeApi(world := World()))
    await reserve(writer, ["m1"])
    writer.spend(describe("m1"), world.now())
    await writer.flush()
    version = world.version
    renewed = await writer.renew(describe("m1"), FREE)
    assert isinstance(renewed, Debit)
    assert (renewed.state, world.version) == (DebitState.SPENT, version)


async def test_a_debit_is_known_while_the_ledger_is_read_again() -> None:
    """The cache has not seen it yet: by it alone the debit would be lost."""
    reading = asyncio.Event()

    class ReadSlowly(FakeApi):
        async def get(self, resource: Resource[Any], name: str, **place: str) -> Any:
            reading.set()
            await asyncio.sleep(LATENCY)
            return await super().get(resource, name, **place)

    writer = write_to(ReadSlowly(World()))
    await reserve(writer, ["m1", "m2"], FEW)
    reading.clear()
    refused = asyncio.create_task(reserve(writer, ["m3"], FEW))
    await reading.wait()
    assert writer.find(move("m1"), "shop")
    assert isinstance((await refused)[0], Refused)


async def test_an_error_in_one_change_keeps_nobody_else_from_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_or_break(ledger: MoveLedger, limits: DisruptionLimits, disruption: Disruption, **at: Any) -> Any:
        if disruption.move == "odd":
            raise ValueError("ours")
        return add_debit(ledger, limits, disruption, **at)

    monkeypatch.setattr("rescheduler.execution.ledger_writer.add_debit", add_or_break)
    writer = write_to(FakeApi(world := World()))
    asked = [reserve(writer, [each]) for each in ("m1", "odd", "m2")]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(answers[1], ValueError)
    assert set(states(world)) == {"m1", "m2"}


async def test_a_bug_leaves_nobody_waiting() -> None:
    api = FakeApi(World(), troubles={2: ValueError("ours")})  # type: ignore[dict-item] # no error of the API
    writer = write_to(api)
    answers = await asyncio.gather(reserve(writer, ["m1"]), reserve(writer, ["m2"]), return_exceptions=True)
    assert [type(each) for each in answers] == [ValueError, ValueError]


async def test_a_large_ledger_is_written_less_often() -> None:
    api = FakeApi(World())
    writer = write_to(api)
    await reserve(writer, [f"m{number}" for number in range(1900)])
    writes, begun = api.writes, asyncio.get_running_loop().time()
    for number in range(5):
        await reserve(writer, [f"more-{number}"])
    assert api.writes == writes + 5
    assert asyncio.get_running_loop().time() - begun > 5 * 0.3
