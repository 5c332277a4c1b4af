"""The forecast with our extender agrees with kube-scheduler with our extender."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.build.products import KUBERNETES, OTHER_KUBERNETES
from reberth.values.timestamp import write_micro_time
from tests.live.forecast.support.comparison import differences
from tests.live.forecast.support.extender_oracle import RecallingOracle, recalling
from tests.live.forecast.support.truth import objects_of
from tests.live.forecast.support.verdicts import Judgement, judge
from tests.support.resumable_rounds import Proof

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

SAMPLE = range(2, 10)
SAMPLE_OF_COMMAND = 10
ALL_SAID = {"one node", "some nodes", "scores", "strictly no"}
WEIGHTS_OF_SCORES = (1, 2, 3)
_AT_ONCE = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def oracle() -> AsyncIterator[RecallingOracle]:
    async with recalling() as oracle:
        yield oracle


async def test_the_forecast_with_the_extender_matches_the_scheduler(oracle: RecallingOracle) -> None:
    await oracle.ask_extender(weight_of_scores=1)
    judgement = await judge(oracle, SAMPLE)
    assert not judgement.wrong, judgement.report
    assert await oracle.find_doubts() == 0
    assert judgement.said.keys() == ALL_SAID, judgement.report


async def test_the_command_gives_the_same_answer(oracle: RecallingOracle, tmp_path: Path) -> None:
    await oracle.ask_extender(weight_of_scores=3)
    recorded = (await oracle.ask(oracle.case(SAMPLE_OF_COMMAND)))[0]
    files = {
        "--cluster": objects_of(recorded),
        "--scheduler-config": (recorded.configuration or "").encode(),
        "--extender-settings": (recorded.settings or "").encode(),
    }
    command = ["-m", "reberth", "landing", recorded.pod, "--kubernetes", recorded.kubernetes]
    command += ["--now", write_micro_time(recorded.between[0])]
    for option, content in files.items():
        path = tmp_path / option
        path.write_bytes(content)
        command += [option, str(path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, check=True)
    assert done.stderr == b""
    assert differences(json.loads(done.stdout)["pods"][recorded.pod], recorded.truth) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kubernetes", "cases"), [(KUBERNETES, 300), *((other, 60) for other in OTHER_KUBERNETES)]
)
async def test_the_forecast_with_the_extender_matches_the_scheduler_in_many_clusters(
    kubernetes: str, cases: int
) -> None:
    proof, judgement = Proof(f"landing-extended-{kubernetes}"), Judgement()
    remaining = proof.remaining(range(3000, 3000 + cases))
    async with recalling("recalling-many", kubernetes=kubernetes) as oracle:
        for start in range(0, len(remaining), _AT_ONCE):
            some = remaining[start : start + _AT_ONCE]
            await oracle.ask_extender(weight_of_scores=WEIGHTS_OF_SCORES[some[0] // _AT_ONCE % 3])
            await judge(oracle, some, judgement)
            assert not judgement.wrong, judgement.report
            assert await oracle.find_doubts() == 0
            proof.note(some)
    print(f"\n{len(proof.passed())} cases passed; {judgement.report}")
