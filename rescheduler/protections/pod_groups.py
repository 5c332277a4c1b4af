"""Pods of a Kubernetes PodGroup: which of them may be moved singly, though they are scheduled together.

Controllers may put ordinary workloads into groups. A group with the policy `basic` is only a label. One of
the policy `gang` needs `minCount` pods: as long as so many others are Ready, the replacement of one gets in
alone. Nothing watches a gang afterwards: one that falls below its `minCount` stays broken.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from reberth.cluster.kinds import POD_GROUP
from reberth.cluster.templates import Template
from reberth.records import PodGroup
from rescheduler.observe.rule_context import RuleContext

# None is the default. What is not known here is left alone.
_SINGLE_MODES = (None, "Pod")
_SINGLE = "single"


class Gang(NamedTuple):
    """The pods of a group that are Ready, and how many it needs."""

    group: str
    ready: int
    least: int


def find_gang(template: Template, context: RuleContext) -> Gang | None:
    """Find the gang of a pod; None for a pod that is in none, or in one that is not known."""
    group = _find_group(template, context)
    policy = group.spec.scheduling_policy if group else None
    least = policy.gang.min_count if policy and policy.gang else None
    if group is None or least is None:
        return None
    namespace, name = group.metadata.namespace, group.metadata.name
    ready = context.once_of_cluster(
        ("ready in group", namespace, name), partial(_count_ready, namespace, name, context)
    )
    return Gang(name, ready, least)


def find_bond(template: Template, context: RuleContext) -> str | None:
    """Tell why a pod of a group must not be moved singly."""
    group = _find_group(template, context)
    if group is None:
        return "its PodGroup is not in the cache"
    if not _is_single(group.spec.disruption_mode):
        return "its pods are disrupted together (disruptionMode)"
    constraints = group.spec.scheduling_constraints
    if constraints and constraints.topology:
        return "its pods are kept in one topology domain"
    return _find_lack(group, find_gang(template, context))


def _find_group(template: Template, context: RuleContext) -> PodGroup | None:
    link = template.spec.scheduling_group
    name = (link.pod_group_name if link else None) or ""
    return context.snapshot.of(POD_GROUP).named(template.namespace, name) if name else None


def _is_single(mode: object) -> bool:
    return list(mode) == [_SINGLE] if isinstance(mode, dict) else mode in _SINGLE_MODES


def _find_lack(group: PodGroup, gang: Gang | None) -> str | None:
    policy = group.spec.scheduling_policy
    if policy.gang is None:
        return None if policy.basic is not None else "its schedulingPolicy is not known"
    if gang is None:
        return "its minCount is not known"
    is_spare = gang.ready > gang.least
    return None if is_spare else f"{gang.ready} of its pods are Ready, and minCount is {gang.least}"


def _count_ready(namespace: str, name: str, context: RuleContext) -> int:
    pods, templates = context.snapshot.pods, context.snapshot.templates.all
    members = [
        each
        for each in context.snapshot.templates_in(namespace)
        if (link := templates[each].spec.scheduling_group) and link.pod_group_name == name
    ]
    within = pods.within(namespace)
    theirs = slice(within.start, within.stop)
    is_member = np.isin(pods.template[theirs], members)
    return int((is_member & pods.ready[theirs] & ~pods.terminating[theirs]).sum())
