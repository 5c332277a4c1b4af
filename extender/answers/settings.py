"""What an answer depends on besides the cluster: which signals count, and when an answer must be neutral."""

from typing import Annotated, Literal

from msgspec import Meta

from reberth.config.settings import Section
from reberth.memory.addon_scores import ScoreSettings
from reberth.memory.advice import AdviceSettings
from reberth.values.duration import Duration, PositiveDuration


class PreemptSettings(Section, frozen=True):
    """How a preemption treats PodDisruptionBudgets.

    `strict`: no candidate is left that would break one. `prefer`: such a candidate only if there is no other.
    `off`: budgets are ignored.
    """

    budgets: Literal["strict", "prefer", "off"] = "prefer"


class CallTrackerSettings(Section, frozen=True):
    """Warn that kube-scheduler does not call, after so many pods that these schedulers have placed."""

    pods: Annotated[int, Meta(ge=1)] = 20
    schedulers: tuple[str, ...] = ("default-scheduler",)


class AnswerSettings(Section, frozen=True):
    """What the answers depend on; taken from a changed file without a restart."""

    advice: AdviceSettings = AdviceSettings()
    scores: ScoreSettings = ScoreSettings()
    preempt: PreemptSettings = PreemptSettings()
    deadline: PositiveDuration = PositiveDuration(0.1)
    stale_after: Duration = Duration(120)
    attention: CallTrackerSettings = CallTrackerSettings()
