"""The guard of dry runs: when it is read, and what its errors mean."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reberth.client.api import Api
from reberth.cluster.kinds import Resource
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.dry_runs.guard import ACCOUNT, BINDING, POLICY, DryRunGuard


class GuardedApi:
    """It has policy and binding as shipped, unless an error is set."""

    def __init__(self) -> None:
        self.error: ApiError | None = None
        self.reads = 0
        self.specs: dict[str, Any] = {
            "validatingadmissionpolicies": POLICY,
            "validatingadmissionpolicybindings": BINDING,
        }
        self.account = ACCOUNT

    async def get(self, resource: Resource[Any], _name: str) -> Any:
        if self.error:
            raise self.error
        self.reads += 1
        return SimpleNamespace(spec=self.specs[resource.name])

    async def create(self, *_: Any) -> Any:
        return SimpleNamespace(status=SimpleNamespace(user_info=SimpleNamespace(username=self.account)))


def begin() -> tuple[GuardedApi, DryRunGuard]:
    api = GuardedApi()
    return api, DryRunGuard(cast("Api", api))


@pytest.mark.looptime
async def test_the_guard_is_read_once_a_minute() -> None:
    api, guard = begin()
    assert [await guard.find_trouble() for _ in range(3)] == [None] * 3
    api.specs["validatingadmissionpolicies"] = {}
    await asyncio.sleep(59)
    assert await guard.find_trouble() is None
    assert api.reads == 2
    await asyncio.sleep(1)
    assert "was changed" in str(await guard.find_trouble())
    assert api.reads == 4


async def test_a_guard_about_another_account_allows_nothing() -> None:
    api, guard = begin()
    api.account = "system:admin"
    assert await guard.find_trouble() == "the guard of dry runs is not about system:admin"


@pytest.mark.parametrize(
    "error",
    [
        errors.ServerFault("get", "etcd is down", status=503),
        errors.TooManyRequests("get", "slow down", status=429),
        errors.Unanswered("get", "no answer within 30 s"),
    ],
)
async def test_a_passing_error_refuses_one_move_and_switches_nothing_off(error: ApiError) -> None:
    api, guard = begin()
    api.error = error
    refused = await guard.find_trouble()
    assert isinstance(refused, Refused)
    assert refused.rule == "CannotForecast"
    api.error = None
    assert await guard.find_trouble() is None


@pytest.mark.looptime
@pytest.mark.parametrize(
    "error",
    [errors.NotFound("get", "no such policy", status=404), errors.Forbidden("get", "no", status=403)],
)
async def test_without_policy_or_right_dry_runs_are_off_for_a_minute(error: ApiError) -> None:
    api, guard = begin()
    api.error = error
    assert isinstance(await guard.find_trouble(), str)
    api.error = None
    assert isinstance(await guard.find_trouble(), str)
    await asyncio.sleep(60)
    assert await guard.find_trouble() is None
