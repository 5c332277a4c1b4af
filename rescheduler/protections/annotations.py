"""Marks: labels and annotations by which other tools allow, forbid or delay the eviction of a pod.

A mark means *no*, *wait* (another tool is already evicting the pod), or *yes*: a pod without a controller,
in a system namespace or with local storage may be moved nevertheless. Any *no* takes precedence. A mark
that can only mean *no* counts with any value but `false`; a value that its tool does not define means
nothing.
"""

import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache, partial
from typing import Literal, NamedTuple

from reberth.records import Labels
from reberth.values.duration import LONGEST_DURATION
from reberth.values.refusal import Refused
from reberth.values.text_limits import LONGEST_VALUE
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.observe.rule_context import RuleContext

FOR_A_WHILE = "karpenter.sh/do-not-disrupt"
EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
EVICTION_COST = "scheduling.koordinator.sh/eviction-cost"
PREFER_NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

_LONGEST_VALUE = 60
_GO_DURATION = re.compile(r"([+-]?)((?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))++|0)")
_GO_PART = re.compile(r"(?<![0-9.])([0-9.]+)([a-zµμ]+)")
_INT32 = re.compile(r"[+-]?[0-9]{1,10}")
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class MarkMeaning(Enum):
    """What a mark means."""

    NO = "no"
    WAIT = "wait"
    YES = "yes"


class Mark(NamedTuple):
    """A label or an annotation, and the meaning of its values."""

    where: Literal["label", "annotation"]
    key: str
    read: Callable[[str], MarkMeaning | None]


class Prices(NamedTuple):
    """What raises the cost of a move, by the marks of other tools."""

    deletion_cost: int = 0
    eviction_cost: int = 0
    is_unwelcome: bool = False


def _unless_false(value: str, *, meaning: MarkMeaning) -> MarkMeaning | None:
    return None if value == "false" else meaning


def _always(_value: str, *, meaning: MarkMeaning) -> MarkMeaning:
    return meaning


def _read_drain(value: str) -> MarkMeaning | None:
    return MarkMeaning.WAIT if value == "wait-completed" else _no(value)


_no = partial(_unless_false, meaning=MarkMeaning.NO)
_wait = partial(_unless_false, meaning=MarkMeaning.WAIT)
_only_true = {"true": MarkMeaning.YES}.get

MARKS = (
    Mark("annotation", FOR_A_WHILE, {"true": MarkMeaning.NO}.get),
    Mark("annotation", "karpenter.sh/do-not-evict", _no),
    Mark(
        "annotation",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        {"false": MarkMeaning.NO, "on-completion": MarkMeaning.WAIT, "true": MarkMeaning.YES}.get,
    ),
    Mark("annotation", PREFER_NO_EVICTION, partial(_always, meaning=MarkMeaning.NO)),
    Mark("annotation", EVICTION_COST, {"2147483647": MarkMeaning.NO}.get),
    Mark("label", "cluster.x-k8s.io/drain", _read_drain),
    Mark("annotation", "autoscaling.cast.ai/removal-disabled", _no),
    Mark("label", "spotinst.io/restrict-scale-down", _no),
    Mark("label", "nvidia.com/gpu-driver-upgrade-drain.skip", _no),
    Mark("label", "nvidia.com/ofed-driver-upgrade-drain.skip", _no),
    Mark("label", "agones.dev/safe-to-evict", {"false": MarkMeaning.NO}.get),
    Mark("annotation", "node-lifecycle.datadoghq.com/enabled", {"false": MarkMeaning.NO}.get),
    Mark("annotation", EVICTION_IN_PROGRESS, partial(_always, meaning=MarkMeaning.WAIT)),
    Mark("annotation", "scheduling.koordinator.sh/soft-eviction", partial(_always, meaning=MarkMeaning.WAIT)),
    Mark("label", "apps.kruise.io/specified-delete", _wait),
    Mark("annotation", "descheduler.alpha.kubernetes.io/evict", partial(_always, meaning=MarkMeaning.YES)),
    Mark("annotation", "autoscaling.cast.ai/disposable", _only_true),
    Mark("annotation", "beta.evictor.cast.ai/disposable", _only_true),
)
_KEYS = frozenset(mark.key for mark in MARKS)


def refuse_marked(template: int, context: RuleContext) -> Refused | None:
    said = _read_marks(template, context).get(MarkMeaning.NO)
    return Refused("MarkedNo", said) if said else None


def refuse_busy(template: int, context: RuleContext) -> Refused | None:
    said = _read_marks(template, context).get(MarkMeaning.WAIT)
    return Refused("MarkedWait", f"{said}: another tool is evicting the pod") if said else None


def is_lifted(template: int, context: RuleContext) -> bool:
    """Tell whether a mark lifts BarePod, SystemNamespace and LocalStorage."""
    return MarkMeaning.YES in _read_marks(template, context)


def read_prices(place: int, context: RuleContext) -> Prices:
    """Read the marks that add to the cost of a pod's move."""
    annotations = context.row(place).annotations
    is_price = context.protections.prefer_no_eviction == "price"
    return Prices(
        _read_int(annotations.get(DELETION_COST, "")),
        _read_int(annotations.get(EVICTION_COST, "")),
        is_price and PREFER_NO_EVICTION in annotations,
    )


def read_go_duration(text: str) -> float | None:
    """Read a duration in Go's syntax, in seconds; None if it is invalid. It is ten years at most."""
    return _read_go_duration(text) if len(text) <= LONGEST_VALUE else None


@lru_cache(maxsize=1024)
def _read_go_duration(text: str) -> float | None:
    found = _GO_DURATION.fullmatch(text)
    if found is None:
        return None
    seconds = sum(float(count) * _GO_UNITS[unit] for count, unit in _GO_PART.findall(found[2]))
    return (-1 if found[1] == "-" else 1) * min(seconds, LONGEST_DURATION)


def _read_marks(template: int, context: RuleContext) -> dict[MarkMeaning, str]:
    """Give for each meaning the first mark of the template's pods."""
    pod, own = context.template(template).pod.metadata, context.protections.protected_pod_annotations
    if _KEYS.isdisjoint(pod.labels or ()) and not (
        pod.annotations and (own or _KEYS & pod.annotations.keys())
    ):
        return {}
    return context.once(
        ("marks", template),
        lambda: _find_meanings(pod.labels or {}, pod.annotations or {}, context.protections),
    )


def _find_meanings(
    labels: Labels, annotations: Labels, settings: ProtectionSettings
) -> dict[MarkMeaning, str]:
    found: dict[MarkMeaning, str] = {}
    for where, key, read in MARKS:
        value = (labels if where == "label" else annotations).get(key)
        meaning = None if value is None or _is_priced(key, settings) else read(value)
        if meaning and value is not None:
            found.setdefault(meaning, f"{where} {key}={value:.{_LONGEST_VALUE}}")
    own = (each for each in settings.protected_pod_annotations if _has(annotations, each))
    for each in own:
        found.setdefault(MarkMeaning.NO, f"annotation {each}")
    return found


def _is_priced(key: str, settings: ProtectionSettings) -> bool:
    return key == PREFER_NO_EVICTION and settings.prefer_no_eviction == "price"


def _has(annotations: Labels, wanted: str) -> bool:
    key, sign, value = wanted.partition("=")
    return key in annotations and (not sign or annotations[key] == value)


def _read_int(text: str) -> int:
    """Read an int32; anything else counts as 0."""
    number = int(text) if _INT32.fullmatch(text) else 0
    return number if -(2**31) <= number < 2**31 else 0
