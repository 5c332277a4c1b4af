"""The next pod is assembled: template, defaults, admission plugins, webhooks, and whether it may exist."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from reberth.cluster.kinds import (
    LIMIT_RANGE,
    NAMESPACE,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    SERVICE_ACCOUNT,
    VERTICAL_AUTOSCALER,
)
from reberth.cluster.pods.interning import keep_known, split_pod
from reberth.cluster.rows import find_last_change
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template, make_bare_template
from reberth.forecast.replacement.admission.limit_ranges import ANNOTATION as LIMIT_RANGER
from reberth.forecast.replacement.admission.limit_ranges import (
    add_up,
    apply_limit_ranges,
    find_above_limit,
    find_contradiction,
    find_violation,
)
from reberth.forecast.replacement.admission.plugins import (
    NamespaceDemands,
    apply_demands,
    apply_priority,
    apply_runtime_class,
    drop_ignored,
    read_demands,
    refuse_account,
)
from reberth.forecast.replacement.admission.pod_security import find_forbidden
from reberth.forecast.replacement.admission.vertical_autoscaler import (
    Asked,
    find_autoscaler,
    list_kept_limits,
    list_requests,
)
from reberth.forecast.replacement.defaults import fill_in, merge_label_keys
from reberth.forecast.replacement.injected import Injected, inject, learn
from reberth.forecast.replacement.likeness import is_alike
from reberth.forecast.replacement.origin import Origin, find_earlier
from reberth.forecast.replacement.pod_draft import PodDraft, list_containers, set_requests, simplify
from reberth.forecast.replacement.refusals import cannot_be_replaced, cannot_forecast
from reberth.forecast.replacement.revisions import REVISION
from reberth.forecast.replacement.siblings import CLOCK_DIFFERENCE, Sibling
from reberth.records import (
    ClaimVolume,
    DatedMeta,
    Namespace,
    ObjectMeta,
    Pod,
    PodSpec,
    TemplateSpec,
    VerticalPodAutoscaler,
    Volume,
)
from reberth.values.refusal import Refused

POD_NAME = "\0"
"""Stands for the name of the pod in the names of its claims."""
_Step = Callable[[TemplateSpec], TemplateSpec | Refused]


class Question(NamedTuple):
    """A pod's template, what its replacement is made from, and all else that the answer depends on."""

    snapshot: Snapshot
    template: Template
    origin: Origin
    sibling: Sibling

    @property
    def namespace(self) -> Namespace | None:
        return self.snapshot.of(NAMESPACE).named("", self.template.namespace)

    @property
    def inputs(self) -> tuple[Any, ...]:
        """Give what the answer depends on, beside the templates of pods."""
        snapshot, name = self.snapshot, self.template.namespace
        return (
            self.origin,
            find_earlier(snapshot, self.origin, name, self.sibling.revision),
            self.sibling[1:],
            self.namespace,
            snapshot.of(LIMIT_RANGE).part(name),
            snapshot.of(SERVICE_ACCOUNT).part(name),
            snapshot.of(VERTICAL_AUTOSCALER).part(name),
            snapshot.of(PRIORITY_CLASS),
            snapshot.of(RUNTIME_CLASS),
        )


class Assembled(NamedTuple):
    """The next pod. Without a template of its own it has that of the newest sibling, or of the pod itself."""

    made: Template | None
    is_siblings: bool
    claims: tuple[str, ...]
    learnt: tuple[str, ...]
    limits: Mapping[str, int] | None
    """The sums of its limits in nanos; None if a webhook adds containers or requests, and maybe limits."""


def assemble(question: Question) -> Assembled | Refused:
    """Assemble the next pod. Raises QuantityError."""
    draft = _draft(question, question.origin)
    if isinstance(draft, Refused):
        return draft
    learnt_on = _draft_sibling(question, draft)
    if isinstance(learnt_on, Refused):
        return learnt_on
    injected = _learn(question, learnt_on)
    if isinstance(injected, Refused):
        return injected
    made = inject(draft, injected, learnt_on)
    if isinstance(made, Refused):
        return made
    return _refuse(question, made, injected) or _finish(question, made, injected)


def _draft(question: Question, origin: Origin) -> PodDraft | Refused:
    """Make the pod of a template as far as it can be foretold."""
    template = origin.read()
    if isinstance(template, Refused):
        return template
    if template.spec.scheduling_gates:
        return _refuse_gate(template.spec)
    labels = {**(template.metadata.labels or {}), **_name_revision(question, origin)}
    spec = _admit(question, _add_claims(fill_in(template.spec), origin))
    if isinstance(spec, Refused):
        return spec
    annotations = keep_known(template.metadata.annotations) or {}
    return PodDraft(labels, annotations, merge_label_keys(spec, labels), template.spec)


def _name_revision(question: Question, origin: Origin) -> dict[str, str]:
    """Give the label of the revision; what other projects write there, the newest pod shows."""
    shown = question.sibling.template.labels.get(REVISION) if origin.is_custom else origin.revision
    return {REVISION: shown} if shown else {}


def _refuse_gate(spec: PodSpec) -> Refused:
    gates = ", ".join(each.name for each in spec.scheduling_gates or ())
    return cannot_forecast(f"the replacement would wait for its scheduling gates: {gates}")


def _add_claims(spec: TemplateSpec, origin: Origin) -> TemplateSpec:
    """A StatefulSet puts the claims of the pod in place of volumes of the same names."""
    if not origin.claims:
        return spec
    claimed = [
        Volume(name, persistent_volume_claim=ClaimVolume(f"{name}-{POD_NAME}")) for name in origin.claims
    ]
    others = [each for each in spec.volumes or () if each.name not in origin.claims]
    return replace(spec, volumes=(*claimed, *others))


def _admit(question: Question, spec: TemplateSpec) -> TemplateSpec | Refused:
    """Let the plugins change it, in the order in which the API server asks them."""
    demands = _read_demands(question)
    if isinstance(demands, Refused):
        return demands
    snapshot, sibling = question.snapshot, question.sibling
    steps: tuple[_Step, ...] = (
        partial(apply_demands, demands=demands),
        partial(apply_priority, snapshot=snapshot, sibling=sibling),
        partial(apply_runtime_class, snapshot=snapshot, sibling=sibling),
    )
    ranges = snapshot.of(LIMIT_RANGE).within(question.template.namespace)
    contradiction = find_contradiction(spec, ranges)
    if contradiction:
        return cannot_forecast(contradiction)
    changed: TemplateSpec | Refused = apply_limit_ranges(spec, ranges)
    for step in steps:
        changed = changed if isinstance(changed, Refused) else step(changed)
    if isinstance(changed, Refused):
        return changed
    autoscaler = _find_autoscaler(question)
    kept = list_kept_limits(autoscaler, changed) if autoscaler else frozenset[str]()
    return set_requests(changed, _list_autoscaled(question, changed), kept)


def _read_demands(question: Question) -> NamespaceDemands | Refused:
    namespace = question.namespace
    demands = read_demands(namespace)
    if isinstance(demands, Refused) or namespace is None:
        return demands
    return drop_ignored(demands, question.sibling, changed=find_last_change(namespace.metadata))


def _find_autoscaler(question: Question) -> VerticalPodAutoscaler | None:
    autoscalers = question.snapshot.of(VERTICAL_AUTOSCALER).within(question.template.namespace)
    return find_autoscaler(autoscalers, question.origin.owners) if autoscalers else None


def _list_autoscaled(question: Question, spec: TemplateSpec) -> Asked:
    found = _find_autoscaler(question)
    ranges = question.snapshot.of(LIMIT_RANGE).within(question.template.namespace)
    return list_requests(found, spec, ranges) if found else {}


def _draft_sibling(question: Question, draft: PodDraft) -> PodDraft | Refused:
    """Draft the newest sibling, which may be of another revision, as its own template has it."""
    sibling, origin = question.sibling, question.origin
    if sibling.template.spec.scheduling_gates:
        return _refuse_gate(sibling.template.spec)
    if not origin.revision or sibling.revision == origin.revision or not sibling.revision:
        return draft
    earlier = find_earlier(question.snapshot, origin, question.template.namespace, sibling.revision)
    if earlier is None:
        return cannot_forecast(f"no pod of revision {origin.revision} shows what webhooks make of it")
    return _draft(question, earlier)


def _learn(question: Question, learnt_on: PodDraft) -> Injected | Refused:
    demands = _read_demands(question)
    if isinstance(demands, Refused):
        return demands
    autoscaled = _list_autoscaled(question, learnt_on.spec)
    return learn(learnt_on, question.sibling, demands, autoscaled, question.origin)


def _refuse(question: Question, made: PodDraft, injected: Injected) -> Refused | None:
    """Refuse a pod that the API server would not create."""
    snapshot, name = question.snapshot, question.template.namespace
    refused = refuse_account(made.spec, snapshot, name)
    if refused:
        return refused
    said = _find_forbidden(question, made) or _find_beyond_limits(question, made, injected)
    return cannot_be_replaced(said) if said else None


def _find_forbidden(question: Question, made: PodDraft) -> str | None:
    """Tell what the Pod Security level forbids, unless a pod of the same template was created under it."""
    namespace = question.namespace
    if namespace is None or _was_admitted(question, namespace.metadata):
        return None
    return find_forbidden(made.template, namespace.metadata.labels or {})


def _find_beyond_limits(question: Question, made: PodDraft, injected: Injected) -> str | None:
    """Tell which limit forbids the pod. An autoscaler stays within it; limits of webhooks are not seen."""
    if injected.hides_limits or _list_autoscaled(question, made.spec):
        return None
    ranges = question.snapshot.of(LIMIT_RANGE).within(question.template.namespace)
    annotations = question.sibling.template.pod.metadata.annotations or {}
    was_limited = " limit for " in annotations.get(LIMIT_RANGER, "")
    if ranges and not was_limited and all(_was_admitted(question, each.metadata) for each in ranges):
        return None
    return find_above_limit(made.spec) or find_violation(made.spec, ranges)


def _was_admitted(question: Question, meta: DatedMeta) -> bool:
    """Tell whether the newest pod has the same template, and was created when this object was as it is.

    Whatever the template lacks, a webhook mends. API servers may differ in their clocks.
    """
    origin, sibling = question.origin, question.sibling
    is_alike = sibling.is_whole and origin.is_fixed and sibling.revision == origin.revision
    return is_alike and sibling.created > find_last_change(meta) + CLOCK_DIFFERENCE


def _finish(question: Question, made: PodDraft, injected: Injected) -> Assembled:
    """Give the pod the template of its newest sibling, if kube-scheduler would see no difference."""
    shown, own = question.sibling.template, question.template
    meta = ObjectMeta(
        namespace=own.namespace,
        labels=dict(made.labels) or None,
        annotations=dict(made.annotations) or None,
        owner_references=own.pod.metadata.owner_references,
    )
    common, fields = split_pod(Pod(meta, simplify(made.spec, list_containers(shown.spec))))
    template = make_bare_template(common)
    limits = None if injected.hides_limits else add_up(made.spec, "limits")
    is_shown = is_alike(template, shown)
    if is_shown or is_alike(template, own):
        return Assembled(None, is_shown, (), injected.words, limits)
    return Assembled(template, is_shown, fields.claims, injected.words, limits)
