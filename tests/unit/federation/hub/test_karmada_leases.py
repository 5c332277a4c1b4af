"""Whether Karmada's controllers run: by their leases, and by no clock."""

import asyncio
import logging
from typing import Any

import pytest
from msgspec.structs import replace

from federation.hub import metrics
from federation.hub.karmada_leases import KarmadaSettings, KarmadaWatch, find_duration
from reberth.records import Lease, LeaseSpec, ObjectMeta
from reberth.values.errors import Forbidden, NotFound, Unreachable

pytestmark = pytest.mark.looptime
SCHEDULER, MANAGER = "karmada-scheduler", "karmada-controller-manager"
HELD = LeaseSpec(
    holder_identity="host_1", lease_duration_seconds=15, renew_time="2026-01-01T00:00:00.000000Z"
)


class Leases:
    """The leases of a hub; those in `renewing` are renewed every two seconds."""

    def __init__(self, **specs: LeaseSpec) -> None:
        self.specs = {name.replace("_", "-"): spec for name, spec in specs.items()}
        self.renewing: set[str] = set()
        self.is_forbidden = False
        self.is_away = False
        self.namespace = "karmada-system"

    async def get(self, resource: Any, name: str, *, namespace: str) -> Lease:
        assert (resource.name, namespace) == ("leases", self.namespace)
        if self.is_forbidden:
            raise Forbidden(f"get {name}", "no right")
        if self.is_away:
            raise Unreachable(f"get {name}", "away")
        if name not in self.specs:
            raise NotFound(f"get {name}", "not there")
        spec = self.specs[name]
        if name in self.renewing:
            spec = replace(spec, renew_time=f"at {asyncio.get_running_loop().time() // 2}")
        return Lease(ObjectMeta(name), spec)


async def wait(leases: Leases, seconds: float, **settings: Any) -> tuple[KarmadaWatch, float | None]:
    """Wait for so long; return after how long nothing stood in the way any more."""
    watch = KarmadaWatch(leases, KarmadaSettings(**settings))
    started = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(seconds):
            await watch.wait()
    except TimeoutError:
        return watch, None
    return watch, asyncio.get_running_loop().time() - started


async def test_where_karmada_never_was_nothing_is_waited_for() -> None:
    assert (await wait(Leases(), 5))[1] == 0


async def test_a_lease_that_nobody_renews_costs_one_duration() -> None:
    left_over = Leases(karmada_scheduler=HELD, karmada_controller_manager=LeaseSpec())
    watch, waited = await wait(left_over, 60)
    assert (waited, watch.problem) == (15, "")


async def test_nothing_starts_while_a_lease_is_renewed_and_it_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    leases = Leases(karmada_scheduler=HELD, karmada_controller_manager=HELD)
    leases.renewing = {SCHEDULER}
    watch, waited = await wait(leases, 300)
    assert waited is None
    assert watch.problem == "karmada-system/karmada-scheduler is renewed by host_1"
    assert metrics.KARMADA_RUNNING.labels(SCHEDULER)._value.get() == 1
    assert metrics.KARMADA_RUNNING.labels(MANAGER)._value.get() == 0
    assert [each.levelname for each in caplog.records] == ["ERROR"], "it is told once"
    leases.renewing.clear()
    watch, waited = await wait(leases, 60)
    assert waited == 15
    assert metrics.KARMADA_RUNNING.labels(SCHEDULER)._value.get() == 0


async def test_who_wants_both_gets_both_and_is_told() -> None:
    leases = Leases(karmada_scheduler=HELD)
    leases.renewing = {SCHEDULER}
    watch, waited = await wait(leases, 60, run_beside=True)
    assert waited == 15
    assert "karmada-scheduler" in watch.problem


async def test_the_leases_are_read_where_the_settings_say() -> None:
    leases = Leases(karmada_scheduler=HELD)
    leases.renewing, leases.namespace = {SCHEDULER}, "karmada"
    watch, _ = await wait(leases, 60, namespace="karmada")
    assert watch.problem == "karmada/karmada-scheduler is renewed by host_1"


async def test_controllers_that_start_later_are_told_too() -> None:
    leases = Leases(karmada_controller_manager=HELD)
    watch, _ = await wait(leases, 60)
    watching = asyncio.create_task(watch.watch())
    leases.renewing = {MANAGER}
    await asyncio.sleep(80)
    assert "karmada-controller-manager" in watch.problem
    leases.renewing = set()
    await asyncio.sleep(160)
    assert not watch.problem
    watching.cancel()


async def test_leases_that_may_not_be_read_stop_nothing() -> None:
    leases = Leases(karmada_scheduler=HELD)
    leases.is_forbidden = True
    assert (await wait(leases, 60))[1] == 0


async def test_a_hub_that_does_not_answer_says_nothing_about_karmada() -> None:
    leases = Leases(karmada_scheduler=HELD)
    leases.is_away = True
    leases.renewing = {SCHEDULER}
    assert (await wait(leases, 100))[1] is None


@pytest.mark.parametrize(("seconds", "duration"), [((None,), 15), ((2, 30), 30), ((9999,), 60)])
def test_leases_are_watched_as_long_as_they_last(seconds: tuple[int | None, ...], duration: float) -> None:
    specs = {str(number): LeaseSpec(lease_duration_seconds=each) for number, each in enumerate(seconds)}
    assert find_duration(specs) == duration
