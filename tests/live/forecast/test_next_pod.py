"""The pod that a controller creates is the one that was foretold, whatever has changed since."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster.build import products
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER
from localcluster.state_dir import running
from reberth.cluster.pods.requests import read_version
from tests.live.forecast.changes.autoscaler import AUTOSCALED, autoscaling
from tests.live.forecast.changes.change import ChangeClass
from tests.live.forecast.changes.classes import CLASSES
from tests.live.forecast.changes.replacing import Replaced, Stage
from tests.live.forecast.changes.report import LANDED, MOVED, STUCK, WRONGLY, count_moves, list_faults, say

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

VERSION = read_version(products.kubernetes().version)
NAMES = [each.name for each in CLASSES]
_HUNDRED = 100
_WITH_POLICIES = (
    "--feature-gates=MutatingAdmissionPolicy=true",
    "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
)
"""Before 1.36 policies that change objects are not on by default."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def own() -> AsyncIterator[Cluster]:
    """A control plane of its own: a default PriorityClass is for the whole cluster."""
    flags = {API_SERVER: _WITH_POLICIES} if VERSION < (1, 36) else {}
    async with running("next-pods", flags=flags) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(own: Cluster) -> AsyncIterator[Stage]:
    async with own.client() as client:
        stage = Stage(client, VERSION)
        await stage.prepare()
        yield stage


@pytest.mark.parametrize("each", CLASSES, ids=NAMES)
async def test_the_pod_that_comes_is_the_one_that_was_foretold(stage: Stage, each: ChangeClass) -> None:
    found = await stage.replace_all(each, count=2)
    assert len(found) == 2
    refuse_faults(each, found)


@pytest.mark.soak
@pytest.mark.parametrize("each", CLASSES, ids=NAMES)
async def test_a_hundred_pods_of_each_class_come_as_foretold(stage: Stage, each: ChangeClass) -> None:
    await replace_hundred(stage, each._replace(name=f"{each.name}-100"))


@pytest.mark.soak
async def test_a_hundred_pods_that_an_autoscaler_changes_come_as_foretold(own: Cluster, stage: Stage) -> None:
    async with own.client() as client, autoscaling(own, client):
        await replace_hundred(stage, AUTOSCALED)


async def replace_hundred(stage: Stage, each: ChangeClass) -> None:
    found = await stage.replace_all(each, count=_HUNDRED)
    print(f"\n{say(each.name, found)}")
    refuse_faults(each, found)


def refuse_faults(each: ChangeClass, found: list[Replaced]) -> None:
    """No replacement is another pod than foretold, none is stuck, nearly all land as foretold."""
    assert list_faults(each, found) == []
    counted = count_moves(found, lambda one: one.verdict)
    assert counted[STUCK] == 0, say(each.name, found)
    assert counted[LANDED] >= 0.99 * counted[MOVED], say(each.name, found)
    assert counted[WRONGLY] <= 0.05 * len(found), say(each.name, found)
