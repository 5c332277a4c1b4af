"""Pods of a Kubernetes PodGroup: which of them may be moved singly, though they are scheduled together.

Controllers may put ordinary workloads into groups. A group with the policy `basic` is only a label. One of
the policy `gang` needs `minCount` pods: as long as so many others are Ready, the replacement of one gets in
alone. Nothing watches a gang afterwards: one that falls below its `minCount` stays broken.
"""

import numpy as np

from reberth.cluster.kinds import POD_GROUP
from reberth.cluster.templates import Template
from reberth.records import PodGroup
from rescheduler.observe.rule_context import RuleContext

# None is the default. What is not known here is left alone.
_SINGLE_MODES = (None, "Pod")
_SINGLE = "single"


def find_bond(template: Template, context: RuleContext) -> str | None:
    """Tell why a pod of a group must not be moved singly."""
    link = template.spec.scheduling_group
    name = (link.pod_group_name if link else None) or ""
    group = context.snapshot.of(POD_GROUP).named(template.namespace, name)
    if group is None:
        return "its PodGroup is not in the cache"
    if not _is_single(group.spec.disruption_mode):
        return "its pods are disrupted together (disruptionMode)"
    constraints = group.spec.scheduling_constraints
    if constraints and constraints.topology:
        return "its pods are kept in one topology domain"
    return _find_lack(group, name, context)


def _is_single(mode: object) -> bool:
    return list(mode) == [_SINGLE] if isinstance(mode, dict) else mode in _SINGLE_MODES


def _find_lack(group: PodGroup, name: str, context: RuleContext) -> str | None:
    policy = group.spec.scheduling_policy
    if policy.gang is None:
        return None if policy.basic is not None else "its schedulingPolicy is not known"
    least = policy.gang.min_count
    if least is None:
        return "its minCount is not known"
    ready = _count_ready(group.metadata.namespace, name, context)
    return None if ready - 1 >= least else f"{ready} of its pods are Ready, and minCount is {least}"


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
