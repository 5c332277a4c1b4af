"""Compare forecasts with the scheduler, case by case; a wrong one becomes a file that can be replayed."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reberth.memory.addon_scores import MOST_GRADE
from reberth.memory.advice import STRICTLY_NOTED
from tests.live.forecast.support import truth
from tests.live.forecast.support.comparison import differences
from tests.live.forecast.support.forecasts import make_forecast
from tests.live.forecast.support.oracle import Oracle
from tests.live.forecast.support.truth import Recorded, Truth


@dataclass
class Judgement:
    """What was seen: how many nodes the pods had to choose from, what was refused, what was wrong."""

    pods: int = 0
    wrong: list[str] = field(default_factory=list)
    choices: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    """What our extender said, where it was asked: of how many pods it mattered."""

    def add(self, recorded: Recorded) -> None:
        self.pods += 1
        found = recorded.truth
        self.choices[("none", "one", "several")[min(len(found.feasible), 2)]] += 1
        self.refusals.update(found.refusals or {})
        self.scores.update(
            plugin for scores in found.plugins.values() for plugin, score in scores.items() if score
        )
        self.said.update(_tell_said(found))

    @property
    def report(self) -> str:
        seen = f"{self.pods} pods; nodes to choose from: {dict(self.choices)}; said: {dict(self.said)}"
        return "\n".join(self.wrong) or seen


async def judge(oracle: Oracle, seeds: Iterable[int], into: Judgement | None = None) -> Judgement:
    """Compare the forecast with what the scheduler does, for all probes of these cases."""
    judgement = into or Judgement()
    for seed in seeds:
        for number, recorded in enumerate(await oracle.ask(oracle.case(seed))):
            judgement.add(recorded)
            if lines := compare(recorded):
                path = truth.write(_folder(), f"case-{seed}-{number}", recorded)
                judgement.wrong.append("\n  ".join([f"case {seed}, probe {number} ({path})", *lines]))
    return judgement


def compare(recorded: Recorded) -> list[str]:
    """List where the forecast for a recorded question differs from its true answer.

    Of what ends between the question and the answer nobody knows which came first: either will do.
    """
    found: list[str] = []
    for now in recorded.between:
        found = differences(make_forecast(recorded, now), recorded.truth)
        if not found:
            break
    return found


def _tell_said(found: Truth) -> Iterator[str]:
    avoid, scores = (
        [grade for said in found.extenders.values() for url, grade in said.items() if url.endswith(path)]
        for path in ("/avoid", "/scores")
    )
    if len(avoid) > 2 and sum(avoid) == MOST_GRADE:
        yield "one node"
    elif 0 in avoid:
        yield "some nodes"
    if len(set(scores)) > 1:
        yield "scores"
    if STRICTLY_NOTED.reason in (found.refusals or {}):
        yield "strictly no"


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / "landing-differences"
