"""Leader election on a lease in memory, with a virtual clock."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from msgspec.structs import replace

from reberth.client.api import Api
from reberth.client.lease import Leadership, LeaseLost, LeaseSettings, leading, name_holder
from reberth.config.settings import parse
from reberth.records import Lease, LeaseSpec
from reberth.values import errors
from reberth.values.errors import ApiError, SettingsError
from reberth.values.refusal import Refused

pytestmark = pytest.mark.looptime
SETTINGS = LeaseSettings()


class Server:
    """One lease, guarded by its version. `trouble` is raised instead of an answer; None hangs."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.trouble: dict[str, ApiError | None] = {}
        self.writes: list[tuple[str, LeaseSpec]] = []
        self.loses_answers = False

    async def get(self, resource: Any, name: str, *, namespace: str) -> Lease:
        await self._answer("get")
        assert (resource.name, namespace, name) == ("leases", "reberth-system", "reberth-rescheduler")
        if self.lease is None:
            raise errors.NotFound("get", name)
        return self.lease

    async def create(self, _resource: Any, body: Lease, *, namespace: str) -> Lease:
        await self._answer("create")
        if self.lease is not None:
            raise errors.AlreadyExists("create", namespace)
        return self._keep(body, "1")

    async def merge(self, _resource: Any, name: str, patch: Mapping[str, Any], *, namespace: str) -> Lease:
        await self._answer("merge")
        assert namespace == "reberth-system"
        if self.lease is None:
            raise errors.NotFound("patch", name)
        version = self.lease.metadata.resource_version
        if patch["metadata"]["resourceVersion"] != version:
            raise errors.Conflict("patch", "stale")
        wire = {"holderIdentity": "holder_identity", "leaseDurationSeconds": "lease_duration_seconds"}
        wire |= {
            "acquireTime": "acquire_time",
            "renewTime": "renew_time",
            "leaseTransitions": "lease_transitions",
        }
        given = {wire[key]: value for key, value in patch["spec"].items()}
        kept = self._keep(replace(self.lease, spec=replace(self.lease.spec, **given)), str(int(version) + 1))
        if self.loses_answers:
            raise errors.Unanswered("patch", "reset")
        return kept

    def touch(self, **spec: Any) -> None:
        """Somebody else writes."""
        assert self.lease is not None
        changed = replace(self.lease, spec=replace(self.lease.spec, **spec))
        self._keep(changed, str(int(self.lease.metadata.resource_version) + 1))

    def _keep(self, lease: Lease, version: str) -> Lease:
        self.lease = replace(lease, metadata=replace(lease.metadata, resource_version=version))
        self.writes.append((version, self.lease.spec))
        return self.lease

    async def _answer(self, verb: str) -> None:
        await asyncio.sleep(0.01)
        if verb in self.trouble:
            error = self.trouble[verb]
            if error is None:
                await asyncio.sleep(1e6)
            else:
                raise error


def lead(
    server: Server, identity: str, *, give_way: bool = False, elapsed: Callable[[], float] | None = None
) -> Any:
    return leading(
        cast("Api", server),
        SETTINGS,
        identity=identity,
        give_way=give_way,
        clock=now,
        elapsed=elapsed or now,
    )


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_the_first_leads_at_once_renews_and_gives_the_lease_back() -> None:
    server = Server()
    async with lead(server, "a") as leadership:
        leadership.check()
        await asyncio.sleep(60)
        leadership.check()
        assert server.lease
        assert server.lease.spec.holder_identity == "a"
        assert server.lease.spec.lease_duration_seconds == 15
    assert server.lease.spec.holder_identity is None
    with pytest.raises(LeaseLost):
        leadership.check()
    assert 28 <= len(server.writes) <= 32


async def test_the_next_waits_and_leads_at_once_when_the_lease_is_given_back() -> None:
    server, began = Server(), now()

    async def second() -> float:
        async with lead(server, "b"):
            return now() - began

    async with lead(server, "a"):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(100)
        assert not waiting.done()
    assert await waiting <= 100 + SETTINGS.retry_every + 0.1
    assert server.lease
    assert server.lease.spec.lease_transitions == 1


async def test_a_dead_holders_lease_expires_by_the_local_clock() -> None:
    """Whatever its clock wrote."""
    server = Server()
    async with lead(server, "a"):
        pass
    server.touch(holder_identity="dead", lease_duration_seconds=15, renew_time="2020-01-01T00:00:00.000000Z")
    began = now()
    async with lead(server, "b", give_way=True) as leadership:
        assert isinstance(leadership, Leadership)
        assert 15 <= now() - began <= 15.2


async def test_a_candidate_that_gives_way_learns_the_holder_from_its_next_renewal() -> None:
    server, began = Server(), now()
    async with lead(server, "host_1"), lead(server, "b", give_way=True) as refused:
        assert isinstance(refused, Refused)
        assert refused.rule == "LeaseHeld"
        assert "host_1" in refused.reason
        assert now() - began <= 2 * SETTINGS.retry_every + 0.2


async def hold(
    server: Server, then: Callable[[Leadership], object], *, elapsed: Callable[[], float] | None = None
) -> None:
    """Lead for ever; something happens first."""
    async with lead(server, "a", elapsed=elapsed) as leadership:
        then(leadership)
        await asyncio.sleep(1e5)


@pytest.mark.parametrize(
    "error", [errors.Unreachable("patch", "refused"), errors.ServerFault("patch", "etcd"), None]
)
async def test_a_leader_that_cannot_renew_is_cancelled_before_the_lease_expires(
    error: ApiError | None,
) -> None:
    server, led = Server(), []

    def cut_off(leadership: Leadership) -> None:
        led.append(leadership)
        server.trouble = {"merge": error, "get": error}

    began = now()
    with pytest.raises(LeaseLost):
        await hold(server, cut_off)
    assert SETTINGS.renew_deadline - 0.1 <= now() - began <= SETTINGS.renew_deadline + 0.1
    with pytest.raises(LeaseLost):
        led[0].check()


async def test_a_holder_that_was_frozen_may_not_write_even_before_it_is_cancelled() -> None:
    def thaw(leadership: Leadership) -> None:
        leadership.deadline = now()  # time has passed, and no timer has run yet
        leadership.check()

    with pytest.raises(LeaseLost):
        await hold(Server(), thaw)


class PausedMachine:
    """Its event loop's clock stands still while it is suspended; the time of the world does not."""

    def __init__(self) -> None:
        self._suspended = 0.0

    def suspend(self, seconds: float) -> None:
        self._suspended += seconds

    def elapsed(self) -> float:
        return now() + self._suspended


@pytest.mark.parametrize("holder", ["a", "b"])
async def test_a_leader_whose_machine_was_suspended_may_not_write_and_is_cancelled(holder: str) -> None:
    server, machine, woken = Server(), PausedMachine(), []

    def suspend(leadership: Leadership) -> None:
        machine.suspend(SETTINGS.renew_deadline)
        if holder != "a":
            server.touch(holder_identity=holder)
        woken.append((now(), len(server.writes)))
        with pytest.raises(LeaseLost):
            leadership.check()

    with pytest.raises(LeaseLost):
        await hold(server, suspend, elapsed=machine.elapsed)
    ((since, writes),) = woken
    assert now() - since <= SETTINGS.retry_every + 0.1
    assert len(server.writes) == writes  # it renews nothing and releases nothing
    assert server.lease
    assert server.lease.spec.holder_identity == holder


async def test_a_short_suspension_costs_no_lease() -> None:
    server, machine = Server(), PausedMachine()
    async with lead(server, "a", elapsed=machine.elapsed) as leadership:
        await asyncio.sleep(5)
        machine.suspend(SETTINGS.renew_deadline / 2)
        leadership.check()
        await asyncio.sleep(60)
        leadership.check()


async def test_a_suspended_candidate_takes_no_lease_that_was_renewed_meanwhile() -> None:
    server, machine = Server(), PausedMachine()

    async def contend() -> None:
        async with lead(server, "b", elapsed=machine.elapsed):
            pass

    async with lead(server, "a") as leadership:
        contender = asyncio.create_task(contend())
        await asyncio.sleep(5)
        machine.suspend(3600)
        await asyncio.sleep(5)
        leadership.check()
        assert not contender.done()
    await contender


async def test_a_lease_that_another_took_is_lost_at_once() -> None:
    server, began = Server(), now()
    with pytest.raises(LeaseLost, match="thief holds the lease now"):
        await hold(server, lambda _led: server.touch(holder_identity="thief"))
    assert now() - began <= SETTINGS.retry_every + 0.1
    assert server.lease
    assert server.lease.spec.holder_identity == "thief"


async def test_a_lease_that_was_deleted_is_lost_at_once() -> None:
    server, began = Server(), now()
    with pytest.raises(LeaseLost, match="deleted"):
        await hold(server, lambda _led: setattr(server, "lease", None))
    assert now() - began <= SETTINGS.retry_every + 0.1


async def test_a_lost_renewal_response_and_a_foreign_annotation_keep_the_lease() -> None:
    server = Server()
    async with lead(server, "a") as leadership:
        server.touch()
        await asyncio.sleep(5)
        server.loses_answers = True
        await asyncio.sleep(3)
        server.loses_answers = False
        await asyncio.sleep(60)
        leadership.check()


async def test_a_fault_in_the_body_is_not_taken_for_a_lost_lease() -> None:
    server = Server()
    with pytest.raises(TimeoutError):
        async with lead(server, "a"):
            raise TimeoutError
    assert server.lease
    assert server.lease.spec.holder_identity is None


async def test_a_waiting_candidate_outlasts_errors_and_one_that_gives_way_raises_them() -> None:
    server = Server()
    server.trouble = {"get": errors.Forbidden("get", "may not")}
    with pytest.raises(errors.Forbidden):
        async with lead(server, "a", give_way=True):
            pass
    asyncio.get_running_loop().call_later(30, server.trouble.clear)
    async with lead(server, "a"):
        assert now() >= 30


async def test_of_many_candidates_one_leads_at_a_time() -> None:
    server, leaders, most = Server(), 0, 0

    async def contend(number: int) -> None:
        nonlocal leaders, most
        async with lead(server, f"c{number}") as leadership:
            leaders += 1
            most = max(most, leaders)
            leadership.check()
            await asyncio.sleep(7)
            leaders -= 1

    await asyncio.gather(*(contend(number) for number in range(8)))
    assert most == 1


def test_settings_that_could_not_hold_a_lease_are_refused() -> None:
    def load(text: str) -> LeaseSettings:
        header = "apiVersion: reberth.dev/v1alpha1\nkind: LeaseSettings\n"
        return parse(f"{header}{text}".encode(), LeaseSettings)

    assert load("duration: 30s").duration == 30
    for text in ("duration: 5s", "renewDeadline: 1s", "retryEvery: 0s", "duration: 15500ms"):
        with pytest.raises(SettingsError):
            load(text)
    assert name_holder() != name_holder()
