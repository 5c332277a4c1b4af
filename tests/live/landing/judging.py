"""Whether the forecast is the truth, case after case; what is not goes into a file that can be replayed."""

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.live.landing import truth
from tests.live.landing.asking import Oracle
from tests.live.landing.comparing import differences
from tests.live.landing.foretelling import foretell
from tests.live.landing.truth import Recorded


@dataclass
class Judgement:
    """What was seen: how many nodes the pods had to choose from, what was refused, what was wrong."""

    pods: int = 0
    wrong: list[str] = field(default_factory=list)
    choices: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    scores: Counter[str] = field(default_factory=Counter)

    def add(self, recorded: Recorded) -> None:
        self.pods += 1
        found = recorded.truth
        self.choices[("none", "one", "several")[min(len(found.feasible), 2)]] += 1
        self.refusals.update(found.refusals or {})
        self.scores.update(
            plugin for scores in found.plugins.values() for plugin, score in scores.items() if score
        )

    @property
    def report(self) -> str:
        return "\n".join(self.wrong) or f"{self.pods} pods; nodes to choose from: {dict(self.choices)}"


async def judge(oracle: Oracle, seeds: Iterable[int]) -> Judgement:
    """Compare the forecast with what the scheduler does, for all probes of these cases."""
    judgement = Judgement()
    for seed in seeds:
        for number, recorded in enumerate(await oracle.ask(oracle.case(seed))):
            judgement.add(recorded)
            if lines := compare(recorded):
                path = truth.write(_folder(), f"case-{seed}-{number}", recorded)
                judgement.wrong.append("\n  ".join([f"case {seed}, probe {number} ({path})", *lines]))
    return judgement


def compare(recorded: Recorded) -> list[str]:
    """List where the forecast for a recorded question differs from its true answer."""
    objects = truth.objects_of(recorded)
    answer = foretell(objects, recorded.pod, recorded.configuration, recorded.kubernetes)
    return differences(answer, recorded.truth)


def _folder() -> Path:
    return Path(tempfile.gettempdir()) / "landing-differences"
