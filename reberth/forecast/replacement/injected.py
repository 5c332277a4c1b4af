"""What webhooks and admission policies do to the pods of a template, learnt from the newest of them.

Nobody can read what a webhook will do. But what it did to the newest pod that is as it was created can be
seen: the difference between that pod and what its template and the known admission plugins make of it. The
same is done to the next pod. Where the difference may have another cause, such as a template that was edited
since, nothing is said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from reberth.forecast.replacement.admission.limit_ranges import ANNOTATION as LIMIT_RANGER
from reberth.forecast.replacement.admission.limit_ranges import is_set_by_range
from reberth.forecast.replacement.admission.plugins import DEFAULTS, NamespaceDemands
from reberth.forecast.replacement.admission.vertical_autoscaler import ANNOTATION as AUTOSCALED
from reberth.forecast.replacement.admission.vertical_autoscaler import Asked
from reberth.forecast.replacement.origin import Origin
from reberth.forecast.replacement.pod_draft import (
    PodDraft,
    are_same,
    as_template_container,
    is_same,
    list_containers,
    requests_of,
    set_requests,
)
from reberth.forecast.replacement.refusals import cannot_forecast
from reberth.forecast.replacement.siblings import Sibling
from reberth.records import (
    Affinity,
    Container,
    Labels,
    Quantities,
    Quantity,
    TemplateContainer,
    TemplateSpec,
    Toleration,
    Volume,
)
from reberth.values.refusal import Refused
from reberth.values.text_limits import LONGEST_TEXT

# Nothing of these changes after the creation of a pod.
_WHOLE_FIELDS = (
    "affinity",
    "topology_spread_constraints",
    "scheduler_name",
    "host_network",
    "host_users",
    "resource_claims",
    "scheduling_group",
    "workload_ref",
    "eviction_responders",
    "restart_policy",
    "termination_grace_period_seconds",
    "active_deadline_seconds",
)
_OF_PRIORITY = ("priority_class_name", "priority", "preemption_policy")
_MEMORY_PRESSURE = "node.kubernetes.io/memory-pressure"
# The controllers themselves set these.
_OF_CONTROLLERS = frozenset({"pod-template-hash", "controller-revision-hash"})


@dataclass(frozen=True)
class Injected:
    """What is done to a pod beyond its template and the plugins that are known."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    init_order: tuple[str, ...] = ()
    volumes: tuple[Volume, ...] = ()
    requests: dict[tuple[str, str], Quantity] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    dropped: tuple[Toleration, ...] = ()
    labels: Labels = field(default_factory=dict)
    annotations: Labels = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    overhead: Quantities | None = None

    @property
    def hides_limits(self) -> bool:
        """Tell whether there are limits that nobody sees: pods are cached without them."""
        return bool(self.containers or self.init_containers or self.requests)

    @property
    def changes(self) -> tuple[str, ...]:
        """Say what the template has, too, and differently."""
        return (*self._list_requests(), *self._list_selectors(), *self.fields)

    @property
    def words(self) -> tuple[str, ...]:
        """Say what was learnt."""
        return tuple(self._list_words())

    def _list_words(self) -> Iterator[str]:
        yield from (f"container {each.name}" for each in (*self.containers, *self.init_containers))
        yield from self._list_requests()
        yield from (f"toleration of {each.key or 'every taint'}" for each in self.tolerations)
        yield from self._list_selectors()
        yield from (f"label {key}={value}" for key, value in self.labels.items())
        yield from (f"volume {each.name}" for each in self.volumes)
        yield from self.fields
        yield from ("overhead",) if self.overhead else ()

    def _list_selectors(self) -> Iterator[str]:
        yield from (f"nodeSelector {key}={value}" for key, value in self.node_selector.items())

    def _list_requests(self) -> Iterator[str]:
        for (owner, name), amount in self.requests.items():
            yield f"{name} {amount} of container {owner}"


class _DisagreesError(Exception):
    """The newest pod and its template disagree in a way that has no single explanation."""


def learn(
    drafted: PodDraft, sibling: Sibling, demands: NamespaceDemands, autoscaled: Asked, origin: Origin
) -> Injected | Refused:
    """Learn what was done to a pod of the template that was drafted. Raises QuantityError."""
    try:
        found = _compare(drafted, sibling, demands, autoscaled)
    except _DisagreesError as said:
        return cannot_forecast(str(said))
    differing = found.changes if origin.is_custom else found.words
    if differing and not origin.is_fixed and (sibling.is_whole or sibling.is_changed):
        return cannot_forecast(
            f"the newest pod differs from the template, which anybody may have edited since: {differing[0]}"
        )
    return found


def inject(draft: PodDraft, found: Injected, learnt_on: PodDraft) -> PodDraft | Refused:
    """Do the same to another draft. Raises QuantityError."""
    if draft is not learnt_on:
        changed = _find_changed(draft.spec, learnt_on.spec, found)
        if changed:
            return cannot_forecast(
                f"the template has changed in what a webhook has changed in the newest pod: {changed}"
            )
    spec = set_requests(_inject_containers(draft.spec, found), found.requests)
    tolerations = [each for each in spec.tolerations or () if each not in found.dropped]
    tolerations += [each for each in found.tolerations if each not in tolerations]
    spec = replace(
        spec,
        **found.fields,
        node_selector={**(spec.node_selector or {}), **found.node_selector} or None,
        tolerations=tuple(tolerations) or None,
        volumes=(*(spec.volumes or ()), *found.volumes) or None,
        overhead=found.overhead or spec.overhead,
    )
    return PodDraft(
        {**found.labels, **draft.labels}, {**found.annotations, **draft.annotations}, spec, draft.template
    )


def _compare(drafted: PodDraft, sibling: Sibling, demands: NamespaceDemands, autoscaled: Asked) -> Injected:
    shown, spec = sibling.template.pod, drafted.spec
    tolerations, dropped = _compare_tolerations(drafted, sibling, demands)
    shown_labels, annotations = shown.metadata.labels or {}, shown.metadata.annotations or {}
    return Injected(
        containers=_find_more(spec.containers, shown.spec.containers, sibling),
        init_containers=_find_more(spec.init_containers, shown.spec.init_containers, sibling),
        init_order=tuple(each.name for each in shown.spec.init_containers or ()),
        volumes=_find_volumes(spec, shown.spec.volumes),
        requests=_compare_requests(drafted, sibling, autoscaled),
        node_selector=_compare_selectors(drafted, sibling, demands),
        tolerations=tolerations,
        dropped=dropped,
        labels={
            key: value
            for key, value in shown_labels.items()
            if key not in drafted.labels and key not in _OF_CONTROLLERS
        },
        annotations={key: each for key, each in annotations.items() if key not in {LIMIT_RANGER, AUTOSCALED}},
        fields=_compare_fields(spec, sibling) | _compare_class(drafted.template, sibling),
        overhead=shown.spec.overhead if not drafted.template.runtime_class_name else None,
    )


def _find_more(
    made: Iterable[Container] | None, shown: Iterable[Container] | None, sibling: Sibling
) -> tuple[Container, ...]:
    """Find the containers that were added; none of the template's may be missing."""
    names, found = [each.name for each in made or ()], tuple(shown or ())
    missing = set(names) - {each.name for each in found}
    if missing:
        raise _DisagreesError(f"the newest pod lacks container {min(missing)} of the template")
    more = tuple(each for each in found if each.name not in names)
    if sibling.is_changed and any(requests_of(each) for each in more):
        raise _DisagreesError(
            f"the pod was changed since its creation: what container {more[0].name} asked for is not known"
        )
    return more


def _find_volumes(spec: TemplateSpec, shown: tuple[Volume, ...] | None) -> tuple[Volume, ...]:
    names = {each.name for each in spec.volumes or ()}
    more = tuple(each for each in shown or () if each.name not in names)
    claimed = next((each for each in more if each.persistent_volume_claim), None)
    if claimed:
        raise _DisagreesError(
            f"the newest pod has a claim that its template does not have: volume {claimed.name}"
        )
    return more


def _compare_requests(
    drafted: PodDraft, sibling: Sibling, autoscaled: Asked
) -> dict[tuple[str, str], Quantity]:
    """Find the requests that were changed at the creation; a pod that was changed later shows none."""
    if not sibling.is_whole:
        return {}
    shown, template = list_containers(sibling.template.spec), list_containers(drafted.template)
    annotations = sibling.template.pod.metadata.annotations or {}
    found: dict[tuple[str, str], Quantity] = {}
    for name, container in list_containers(drafted.spec).items():
        made, theirs = requests_of(container), requests_of(shown.get(name))
        for resource in sorted({*made, *theirs}):
            if is_same(made.get(resource), theirs.get(resource)):
                continue
            if (name, resource) in autoscaled:
                _check_autoscaled(name, resource, annotations)
            elif resource not in theirs and resource in requests_of(template.get(name)):
                raise _DisagreesError(
                    f"the newest pod lacks the {resource} of container {name} in the template"
                )
            elif resource in theirs and not _is_explained(name, resource, template.get(name), annotations):
                found[name, resource] = theirs[resource]
    return found


def _check_autoscaled(container: str, resource: str, annotations: Labels) -> None:
    if AUTOSCALED not in annotations:
        raise _DisagreesError(
            f"a VerticalPodAutoscaler recommends another {resource} for container {container}, "
            "and the newest pod was created without it"
        )


def _is_explained(container: str, resource: str, asked: Container | None, annotations: Labels) -> bool:
    """Tell whether a LimitRange, or an autoscaler that is gone, is why the newest pod had another request."""
    if AUTOSCALED in annotations:
        return True
    ranged = annotations.get(LIMIT_RANGER, "")
    return resource not in requests_of(asked) and (
        len(ranged) > LONGEST_TEXT or is_set_by_range(container, resource, ranged)
    )


def _compare_tolerations(
    drafted: PodDraft, sibling: Sibling, demands: NamespaceDemands
) -> tuple[tuple[Toleration, ...], tuple[Toleration, ...]]:
    """Find those that were added, and the default ones that were not."""
    made, shown = drafted.spec.tolerations or (), sibling.template.spec.tolerations or ()
    missing = [each for each in made if each not in shown]
    for each in missing:
        if each not in DEFAULTS and (
            each in demands.tolerations or each in (drafted.template.tolerations or ())
        ):
            raise _DisagreesError(f"the newest pod lacks the toleration of {each.key or 'every taint'}")
    more = tuple(each for each in shown if each not in made)
    if more and sibling.is_changed:
        key = more[0].key or "every taint"
        raise _DisagreesError(
            f"the pod was changed since its creation: whether it tolerated {key} before is not known"
        )
    if drafted.template.runtime_class_name and any(each.key != _MEMORY_PRESSURE for each in more):
        raise _DisagreesError(
            "a toleration of the newest pod may be a webhook's or of an earlier RuntimeClass"
        )
    return more, tuple(each for each in missing if each in DEFAULTS)


def _compare_selectors(drafted: PodDraft, sibling: Sibling, demands: NamespaceDemands) -> dict[str, str]:
    made, shown = drafted.spec.node_selector or {}, sibling.template.spec.node_selector or {}
    expected = {**demands.node_selector, **(drafted.template.node_selector or {})}
    missing = min((key for key in expected if key not in shown), default=None)
    if missing:
        raise _DisagreesError(f"the newest pod lacks nodeSelector {missing}={expected[missing]}")
    differing = {key: value for key, value in shown.items() if made.get(key) != value}
    found = {key: value for key, value in differing.items() if key not in made or key in expected}
    if found and drafted.template.runtime_class_name:
        raise _DisagreesError(
            f"nodeSelector {min(found)} of the newest pod may be a webhook's or of an earlier RuntimeClass"
        )
    return found


def _compare_fields(spec: TemplateSpec, sibling: Sibling) -> dict[str, Any]:
    shown = sibling.template.spec
    found = {
        name: getattr(shown, name)
        for name in _WHOLE_FIELDS
        if _plain(getattr(shown, name)) != _plain(getattr(spec, name))
    }
    is_known = shown.resources is not None and sibling.is_whole
    if is_known and not are_same(requests_of(spec), requests_of(shown)):
        raise _DisagreesError("the newest pod has requests as a whole that its template does not have")
    return found


def _compare_class(template: TemplateSpec, sibling: Sibling) -> dict[str, Any]:
    """Find the PriorityClass that was put in place of the one that the template names."""
    shown, name = sibling.template.spec, sibling.template.spec.priority_class_name
    asked = template.priority_class_name
    if not (sibling.is_whole and asked and name) or name == asked:
        return {}
    return {each: getattr(shown, each) for each in _OF_PRIORITY}


def _plain(value: object) -> object:
    """An empty value is as none."""
    return None if not value or value == Affinity() else value


def _find_changed(spec: TemplateSpec, learnt_on: TemplateSpec, found: Injected) -> str | None:
    """Find a field that was learnt, and in which the two templates differ."""
    for name in found.fields:
        if _plain(getattr(spec, name)) != _plain(getattr(learnt_on, name)):
            return name
    mine, theirs = list_containers(spec), list_containers(learnt_on)
    for container, resource in found.requests:
        ours, before = requests_of(mine.get(container)), requests_of(theirs.get(container))
        if not is_same(ours.get(resource), before.get(resource)):
            return f"{resource} of container {container}"
    return None


def _inject_containers(spec: TemplateSpec, found: Injected) -> TemplateSpec:
    if not found.containers and not found.init_containers:
        return spec
    initial = {
        each.name: each
        for each in (*(spec.init_containers or ()), *map(as_template_container, found.init_containers))
    }
    order = [name for name in found.init_order if name in initial]
    in_order = [initial.pop(name) for name in order]
    mine: tuple[TemplateContainer, ...] = spec.containers or ()
    names = {each.name for each in mine}
    more = tuple(as_template_container(each) for each in found.containers if each.name not in names)
    return replace(spec, containers=(*mine, *more), init_containers=(*in_order, *initial.values()) or None)
