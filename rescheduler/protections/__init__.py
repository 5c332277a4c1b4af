"""Which pods no policy moves: a table of rules, checked in its order.

A rule about a template holds for all its pods, so it is checked once. A rule about single pods is checked for
all pods at once, as a column. docs/protections.md says what each rule looks at.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Bools, seal
from reberth.values.refusal import Refused
from rescheduler.model.guardrails import ProtectionSettings
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections import (
    annotations,
    ownership,
    pod_state,
    replacing,
    rollouts,
    selection,
    volumes,
    workloads,
)
from rescheduler.protections.annotations import Prices, read_prices
from rescheduler.protections.selection import (
    ApplyByAnnotation,
    Automation,
    find_automation,
    list_marked,
    may_apply,
)

__all__ = [
    "RULES",
    "ApplyByAnnotation",
    "Automation",
    "Prices",
    "ProtectionSettings",
    "explain",
    "find_automation",
    "find_protected",
    "list_marked",
    "may_apply",
    "read_prices",
    "refuse_protected",
]


class TemplateRule(NamedTuple):
    """A rule about what pods have in common."""

    name: str
    refuse: Callable[[int, RuleContext], Refused | None]


class PodRule(NamedTuple):
    """A rule about single pods: it finds all that it protects, and gives the reason for one of them."""

    name: str
    find: Callable[[RuleContext], Bools]
    refuse: Callable[[int, RuleContext], Refused]


RULES: tuple[TemplateRule | PodRule, ...] = (
    PodRule("Terminating", pod_state.find_terminating, pod_state.refuse_terminating),
    PodRule("Finished", pod_state.find_finished, pod_state.refuse_finished),
    PodRule("NotBound", pod_state.find_unbound, pod_state.refuse_unbound),
    TemplateRule("MirrorPod", ownership.refuse_mirror),
    TemplateRule("DaemonSetPod", ownership.refuse_daemon),
    TemplateRule("BarePod", ownership.refuse_bare),
    TemplateRule("CriticalPod", ownership.refuse_critical),
    TemplateRule("JobPod", ownership.refuse_job),
    TemplateRule("RestartPolicy", replacing.refuse_finite),
    TemplateRule("UnknownController", replacing.refuse_unknown),
    TemplateRule("SystemNamespace", selection.refuse_system),
    TemplateRule("Namespace", selection.refuse_namespace),
    PodRule("Labels", selection.find_unselected, selection.refuse_unselected),
    TemplateRule("MarkedNo", annotations.refuse_marked),
    PodRule("MarkedForAWhile", pod_state.find_kept_for_a_while, pod_state.refuse_kept_for_a_while),
    TemplateRule("MarkedWait", annotations.refuse_busy),
    TemplateRule("AutomationOff", selection.refuse_off),
    TemplateRule("LocalStorage", volumes.refuse_local_storage),
    PodRule("Claims", volumes.find_bound_to_claims, volumes.refuse_claim),
    TemplateRule("ResourceClaims", ownership.refuse_resource_claims),
    TemplateRule("Gang", ownership.refuse_gang),
    TemplateRule("EvictionResponders", ownership.refuse_responders),
    TemplateRule("CannotForecast", ownership.refuse_unforeseeable),
    TemplateRule("CannotBeReplaced", ownership.refuse_irreplaceable),
    TemplateRule("Surge", workloads.refuse_surge),
    TemplateRule("RolloutPaused", rollouts.refuse_paused),
    PodRule("Rollout", rollouts.find_rolling, rollouts.refuse_rolling),
    TemplateRule("Quota", workloads.refuse_quota),
    TemplateRule("MinReplicas", workloads.refuse_few),
    PodRule("MinAge", pod_state.find_young, pod_state.refuse_young),
    PodRule("LastReady", pod_state.find_last_ready, pod_state.refuse_last_ready),
)
_TEMPLATE_RULES = tuple((rank, rule) for rank, rule in enumerate(RULES) if isinstance(rule, TemplateRule))
_POD_RULES = tuple((rank, rule) for rank, rule in enumerate(RULES) if isinstance(rule, PodRule))

# For each pod one number: a bit for each rule that concerns it, at the rule's rank.
_Flags = NDArray[np.uint64]


def refuse_protected(place: int, context: RuleContext) -> Refused | None:
    """Refuse a pod by the first rule in the table that protects it."""
    rank, refused = _ask_template(context.template_of(place), context)
    flags = int(_flag(context)[place])
    first = (flags & -flags).bit_length() - 1
    if flags and first < rank:
        rule = RULES[first]
        return rule.refuse(place, context)
    return refused


def explain(place: int, context: RuleContext) -> tuple[tuple[str, Refused | None], ...]:
    """Give the result of every rule for a pod."""
    return tuple((rule.name, _ask(rank, rule, place, context)) for rank, rule in enumerate(RULES))


def find_protected(context: RuleContext) -> Bools:
    """Tell of all pods whether some rule protects them."""
    count = len(context.snapshot.templates.all)
    templates = np.array([_ask_template(number, context)[1] is not None for number in range(count)], np.bool_)
    return seal((_flag(context) != 0) | templates[context.snapshot.pods.template])


def _ask(rank: int, rule: TemplateRule | PodRule, place: int, context: RuleContext) -> Refused | None:
    if isinstance(rule, TemplateRule):
        return rule.refuse(context.template_of(place), context)
    concerned = int(_flag(context)[place]) >> rank & 1
    return rule.refuse(place, context) if concerned else None


def _ask_template(template: int, context: RuleContext) -> tuple[int, Refused | None]:
    """Give the first refusal and its rank in the table."""
    return context.once(("protected", template), partial(_find_first, template, context))


def _find_first(template: int, context: RuleContext) -> tuple[int, Refused | None]:
    for rank, rule in _TEMPLATE_RULES:
        refused = rule.refuse(template, context)
        if refused:
            return rank, refused
    return len(RULES), None


def _flag(context: RuleContext) -> _Flags:
    return context.once_of_cluster("flags", partial(_collect_flags, context))


def _collect_flags(context: RuleContext) -> _Flags:
    flags = np.zeros(len(context.snapshot.pods.rows), np.uint64)
    for rank, rule in _POD_RULES:
        flags |= rule.find(context).astype(np.uint64) << np.uint64(rank)
    return seal(flags)
