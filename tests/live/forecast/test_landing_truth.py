"""The forecast agrees with kube-scheduler: the same nodes, reasons and scores."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.build.products import KUBERNETES_VERSIONS, OTHER_KUBERNETES
from tests.live.forecast.support.comparison import differences
from tests.live.forecast.support.configurations import CONFIGURATIONS
from tests.live.forecast.support.oracle import Oracle, asking
from tests.live.forecast.support.truth import objects_of
from tests.live.forecast.support.verdicts import judge
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

SAMPLE = range(12)
BEFORE = OTHER_KUBERNETES[0]
"""The release before the main one; a third would be a third control plane to build for `make test`."""
SAMPLE_OF_COMMAND = 12
SAMPLE_OF_EACH = range(100, 102)
_AT_ONCE = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def oracle() -> AsyncIterator[Oracle]:
    async with asking() as oracle:
        yield oracle


async def test_the_forecast_matches_the_scheduler(oracle: Oracle) -> None:
    judgement = await judge(oracle, SAMPLE)
    assert not judgement.wrong, judgement.report
    assert judgement.choices["several"] > judgement.pods / 3, "the cases say little"


async def test_the_forecast_matches_the_scheduler_before() -> None:
    async with asking("before", kubernetes=BEFORE) as before:
        judgement = await judge(before, SAMPLE)
    assert not judgement.wrong, judgement.report


async def test_the_command_gives_the_same_answer(oracle: Oracle, tmp_path: Path) -> None:
    recorded = (await oracle.ask(oracle.case(SAMPLE_OF_COMMAND)))[0]
    objects = tmp_path / "objects.json"
    objects.write_bytes(objects_of(recorded))
    command = ["-m", "reberth", "landing", recorded.pod, "--cluster", str(objects)]
    version = ["--kubernetes", recorded.kubernetes]
    done = subprocess.run([sys.executable, *command, *version], capture_output=True, check=True)
    assert done.stderr == b""
    assert differences(json.loads(done.stdout)["pods"][recorded.pod], recorded.truth) == []


@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_the_forecast_holds_for_a_scheduler_with(name: str, oracle: Oracle) -> None:
    await oracle.configure(CONFIGURATIONS[name])
    judgement = await judge(oracle, SAMPLE_OF_EACH)
    assert not judgement.wrong, judgement.report


@pytest.mark.soak
@pytest.mark.parametrize("kubernetes", KUBERNETES_VERSIONS)
async def test_the_forecast_matches_the_scheduler_in_many_clusters(kubernetes: str) -> None:
    await prove(f"landing-{kubernetes}", range(1000, 1500), kubernetes=kubernetes)


@pytest.mark.soak
@pytest.mark.parametrize("name", CONFIGURATIONS)
async def test_the_forecast_holds_in_many_clusters_with(name: str) -> None:
    await prove(f"landing-{name.replace(' ', '-')}", range(2000, 2500), configuration=name)


async def prove(
    proof_name: str, seeds: range, *, configuration: str | None = None, kubernetes: str | None = None
) -> None:
    """Judge the cases that this very code has not passed yet."""
    proof = Proof(proof_name)
    remaining = proof.remaining(seeds)
    async with asking(kubernetes=kubernetes) as oracle:
        if configuration:
            await oracle.configure(CONFIGURATIONS[configuration])
        for start in range(0, len(remaining), _AT_ONCE):
            some = remaining[start : start + _AT_ONCE]
            judgement = await judge(oracle, some)
            assert not judgement.wrong, judgement.report
            proof.note(some)
    print(f"\n{proof_name}: cases passed: {len(proof.passed())}")
