"""Protections by choice: by namespace, by labels, or by the annotation reberth.dev/automation."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from reberth.cluster.columns import Bools
from reberth.cluster.kinds import NAMESPACE, Kind
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template
from reberth.records import Labels
from reberth.selectors import parse_selector
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import WORKLOAD_KINDS, RuleContext
from rescheduler.protections.annotations import is_lifted

AUTOMATION = "reberth.dev/automation"
ApplyByAnnotation = Literal["none", "namespaces", "all"]


class Automation(StrEnum):
    """What may be done with the move of a pod."""

    OFF = "off"
    RECOMMEND = "recommend"
    APPLY = "apply"


class AutomationMark(NamedTuple):
    """The value of the annotation reberth.dev/automation, and the object that has it."""

    value: str
    where: str

    @property
    def automation(self) -> Automation | None:
        """None: the value is invalid."""
        return next((each for each in Automation if each == self.value), None)


def refuse_system(template: int, context: RuleContext) -> Refused | None:
    namespace = context.template(template).namespace
    if namespace not in context.protections.system_namespaces or is_lifted(template, context):
        return None
    return Refused("SystemNamespace", f"namespace {namespace} is in systemNamespaces")


def refuse_namespace(template: int, context: RuleContext) -> Refused | None:
    """Refuse all pods of a namespace."""
    name = context.template(template).namespace
    return context.once(("namespace", name), lambda: _judge_namespace(name, context))


def refuse_off(template: int, context: RuleContext) -> Refused | None:
    said = list_marked(context).get(template)
    if said is None or said.automation in (Automation.RECOMMEND, Automation.APPLY):
        return None
    known = "" if said.automation else ", which is not off, recommend or apply"
    return Refused("AutomationOff", f"the {said.where}'s annotation {AUTOMATION}={said.value:.60}{known}")


def find_automation(template: int, context: RuleContext) -> AutomationMark | None:
    """Give the annotation of the pods, else that of their workload, else that of their namespace."""
    pod, root = context.template(template), context.root(template)
    namespace = context.namespace(pod.namespace)
    carriers = (("pod", pod.pod), ("workload", root), ("namespace", namespace))
    marks = ((where, _read_mark(each.metadata.annotations)) for where, each in carriers if each)
    return next((AutomationMark(value, where) for where, value in marks if value is not None), None)


def may_apply(template: int, context: RuleContext, given: ApplyByAnnotation) -> bool:
    """Tell whether the operator lets the annotation of these pods turn `recommend` into `apply`."""
    if given == "namespaces":
        # Owners of workloads may change pods and workloads, but usually not the Namespace object.
        namespace = context.namespace(context.template(template).namespace)
        return namespace is not None and _read_mark(namespace.metadata.annotations) == Automation.APPLY
    return given == "all"


def list_marked(context: RuleContext) -> Mapping[int, AutomationMark]:
    """Give the annotation for each template whose pods, workload or namespace have it."""
    return context.once("automation", lambda: dict(_list_marked(context)))


def find_unselected(context: RuleContext) -> Bools:
    """Find the pods that podSelector does not select."""
    snapshot, selected = context.snapshot, context.protections.pod_selector
    found = np.zeros(len(snapshot.pods.rows), np.bool_)
    return ~_mark_selected(snapshot, selected) if selected else found


def refuse_unselected(_place: int, context: RuleContext) -> Refused:
    return Refused("Labels", f"the labels do not match podSelector {context.protections.pod_selector}")


def _mark_selected(snapshot: Snapshot, text: str) -> Bools:
    selector = parse_selector(text)
    found = np.zeros(len(snapshot.pods.rows), np.bool_)
    for namespace in snapshot.pods.namespaces:
        found[snapshot.select(selector, namespace)] = True
    return found


def _judge_namespace(name: str, context: RuleContext) -> Refused | None:
    settings, namespace = context.protections, context.namespace(name)
    if name in settings.excluded_namespaces:
        return Refused("Namespace", f"namespace {name} is in excludedNamespaces")
    if settings.namespaces and name not in settings.namespaces:
        return Refused("Namespace", f"namespace {name} is not in namespaces")
    if not parse_selector(settings.namespace_selector).matches(context.snapshot.namespace_labels(name)):
        return Refused("Namespace", f"namespaceSelector {settings.namespace_selector} does not match {name}")
    if namespace and namespace.status.phase == "Terminating":
        return Refused("Namespace", f"namespace {name} is being deleted")
    return None


def _list_marked(context: RuleContext) -> Iterator[tuple[int, AutomationMark]]:
    """Look up the templates only in namespaces where a workload or the namespace has the annotation."""
    kinds: tuple[Kind[Any, Any], ...] = (NAMESPACE, *WORKLOAD_KINDS)
    snapshot = context.snapshot
    parts = (part for kind in kinds for part in snapshot.of(kind).parts)
    marked = frozenset(chain.from_iterable(part.read(_list_marking) for part in parts))
    asked = set(snapshot.templates_where(_is_marked))
    if marked:
        asked.update(place for place, each in enumerate(snapshot.templates.all) if each.namespace in marked)
    for number in sorted(asked):
        said = find_automation(number, context)
        if said:
            yield number, said


def _list_marking(rows: Iterable[Any]) -> frozenset[str]:
    """List the namespaces of the objects that have the annotation, or that have it themselves."""
    marked = (each.metadata for each in rows if _read_mark(each.metadata.annotations) is not None)
    return frozenset(each.namespace or each.name for each in marked)


def _is_marked(template: Template) -> bool:
    return _read_mark(template.pod.metadata.annotations) is not None


def _read_mark(annotations: Labels | None) -> str | None:
    return (annotations or {}).get(AUTOMATION)
