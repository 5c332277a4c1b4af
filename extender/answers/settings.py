"""The settings that an answer depends on: which signals count, and when an answer must be neutral."""

from typing import Annotated, Literal

from msgspec import Meta

from reberth.config.settings import Section
from reberth.memory.addon_scores import ScoreSettings
from reberth.memory.advice import AdviceSettings
from reberth.values.duration import Duration, PositiveDuration


class PreemptSettings(Section, frozen=True):
    """How a preemption treats PodDisruptionBudgets.

    `strict`: remove every candidate that would break one. `prefer`: keep such candidates only if no other is
    left. `off`: ignore the budgets.
    """

    budgets: Literal["strict", "prefer", "off"] = "prefer"


class CallTrackerSettings(Section, frozen=True):
    """Warn that kube-scheduler does not call after this many pods placed by these schedulers."""

    pods: Annotated[int, Meta(ge=1)] = 20
    schedulers: tuple[str, ...] = ("default-scheduler",)


class AnswerSettings(Section, frozen=True):
    """The settings of the answers; a changed file is applied without a restart."""

    advice: AdviceSettings = AdviceSettings()
    scores: ScoreSettings = ScoreSettings()
    preempt: PreemptSettings = PreemptSettings()
    deadline: PositiveDuration = PositiveDuration(0.1)
    stale_after: Duration = Duration(120)
    attention: CallTrackerSettings = CallTrackerSettings()
