"""The admission plugins that change a pod by objects that are read: classes, and a namespace's annotations.

kube-apiserver: `plugin/pkg/admission/priority/admission.go`: `(*Plugin).admitPod`;
`plugin/pkg/admission/runtimeclass/admission.go`: `setOverhead`, `setScheduling`;
`plugin/pkg/admission/podnodeselector/admission.go`: `(*Plugin).Admit`;
`plugin/pkg/admission/podtolerationrestriction/admission.go`: `(*Plugin).Admit`;
`plugin/pkg/admission/defaulttolerationseconds/admission.go`: `(*Plugin).Admit`;
`pkg/util/tolerations/tolerations.go`: `MergeTolerations`
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from reberth.cluster.kinds import PRIORITY_CLASS, RUNTIME_CLASS, SERVICE_ACCOUNT
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.replacement.refusals import cannot_be_replaced, cannot_forecast
from reberth.forecast.replacement.siblings import CLOCK_DIFFERENCE, Sibling
from reberth.records import Labels, Namespace, PriorityClass, RuntimeClass, TemplateSpec, Toleration
from reberth.values.refusal import Refused
from reberth.values.text_limits import LONGEST_TEXT, read_json
from reberth.values.timestamp import TimeError, parse_time

NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
DEFAULT_TOLERATIONS = "scheduler.alpha.kubernetes.io/defaultTolerations"
ALLOWED_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
DEFAULTS = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect="NoExecute")
    for key in ("not-ready", "unreachable")
)
_PREEMPTING = "PreemptLowerPriority"
_DEFAULT_ACCOUNT = "default"


class NamespaceDemands(NamedTuple):
    """What the annotations of a namespace ask of its pods."""

    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    allowed: tuple[Toleration, ...] = ()


def read_demands(namespace: Namespace | None) -> NamespaceDemands | Refused:
    annotations = (namespace.metadata.annotations or {}) if namespace else {}
    keys = [key for key in (NODE_SELECTOR, DEFAULT_TOLERATIONS, ALLOWED_TOLERATIONS) if key in annotations]
    if not keys:
        return NamespaceDemands()
    tolerations = [
        _read_tolerations(annotations.get(key)) for key in (DEFAULT_TOLERATIONS, ALLOWED_TOLERATIONS)
    ]
    pairs = [part.partition("=") for part in annotations.get(NODE_SELECTOR, "").split(",") if part.strip()]
    is_cut = any(len(annotations[key]) > LONGEST_TEXT for key in keys)
    given, allowed = tolerations
    if is_cut or given is None or allowed is None or not all(equals for _, equals, _ in pairs):
        return cannot_forecast(f"the namespace's annotation {' or '.join(keys)} cannot be read")
    return NamespaceDemands({key.strip(): value.strip() for key, _, value in pairs}, given, allowed)


def drop_ignored(
    demands: NamespaceDemands, sibling: Sibling, *, changed: float
) -> NamespaceDemands | Refused:
    """Drop what the newest pod shows to be asked of nobody: the plugins that read it are off by default.

    A pod that may be older than the last change of the annotations shows nothing.
    """
    left = _drop_ignored(demands, sibling)
    if left != demands and sibling.created - CLOCK_DIFFERENCE <= changed < float("inf"):
        return cannot_forecast(
            "the namespace's annotations were changed after its newest pod was created: "
            "whether the API server reads them is not known"
        )
    return left


def _drop_ignored(demands: NamespaceDemands, sibling: Sibling) -> NamespaceDemands:
    shown = sibling.template.spec
    selector, tolerations = shown.node_selector or {}, shown.tolerations or ()
    if any(selector.get(key) != value for key, value in demands.node_selector.items()):
        demands = demands._replace(node_selector={})
    is_given = all(any(_covers(one, each) for one in tolerations) for each in demands.tolerations)
    if not is_given or (sibling.is_whole and not _allows(demands, tolerations)):
        demands = demands._replace(tolerations=(), allowed=())
    return demands


def apply_demands(spec: TemplateSpec, demands: NamespaceDemands) -> TemplateSpec | Refused:
    """Add the node selector of the namespace, the tolerations that every pod gets, and its own."""
    selector = _join(demands.node_selector, spec.node_selector)
    if selector is None:
        return cannot_be_replaced("its nodeSelector contradicts that of its namespace")
    given = spec.tolerations or ()
    missing = [each for each in DEFAULTS if not any(_takes(one, each) for one in given)]
    tolerations = (*given, *missing)
    if demands.tolerations:
        tolerations = merge_tolerations(tolerations, demands.tolerations)
    if not _allows(demands, tolerations):
        return cannot_be_replaced(f"the namespace's annotation {ALLOWED_TOLERATIONS} forbids a toleration")
    return replace(spec, node_selector=selector or spec.node_selector, tolerations=tolerations)


def apply_runtime_class(spec: TemplateSpec, snapshot: Snapshot, sibling: Sibling) -> TemplateSpec | Refused:
    """Add the overhead, the node selector and the tolerations of the RuntimeClass."""
    classes, name = snapshot.of(RUNTIME_CLASS), spec.runtime_class_name
    if name is None:
        return spec
    if not len(classes):  # they were not read
        return _copy_runtime_class(spec, sibling)
    found: RuntimeClass | None = classes.named("", name)
    if found is None:
        return cannot_be_replaced(f"RuntimeClass {name} does not exist")
    if found.overhead and found.overhead.pod_fixed is not None:
        spec = replace(spec, overhead=found.overhead.pod_fixed)
    if found.scheduling is None:
        return spec
    selector = _join(found.scheduling.node_selector or {}, spec.node_selector)
    if selector is None:
        return cannot_be_replaced(f"its nodeSelector contradicts that of RuntimeClass {name}")
    tolerations = merge_tolerations(spec.tolerations or (), found.scheduling.tolerations or ())
    return replace(spec, node_selector=selector or None, tolerations=tolerations)


def _copy_runtime_class(spec: TemplateSpec, sibling: Sibling) -> TemplateSpec:
    """Take what the class gave to the newest pod. One that was changed may have tolerations of others."""
    shown = sibling.template.spec
    given = (shown.tolerations or ()) if sibling.is_whole else ()
    return replace(
        spec,
        overhead=shown.overhead,
        node_selector={**(shown.node_selector or {}), **(spec.node_selector or {})} or None,
        tolerations=merge_tolerations(spec.tolerations or (), given) or None,
    )


def apply_priority(spec: TemplateSpec, snapshot: Snapshot, sibling: Sibling) -> TemplateSpec | Refused:
    """Set the priority of the class that the template names, or of today's default class."""
    classes, shown = snapshot.of(PRIORITY_CLASS), sibling.template.spec
    name = spec.priority_class_name
    if not len(classes):  # not even those of the system: they were not read
        return replace(
            spec,
            priority_class_name=name or shown.priority_class_name,
            priority=shown.priority,
            preemption_policy=shown.preemption_policy,
        )
    found = classes.named("", name) if name else _find_default(classes, sibling)
    if name and found is None:
        return cannot_be_replaced(f"PriorityClass {name} does not exist")
    value = found.value if found else 0
    if spec.priority not in {None, value}:
        return cannot_be_replaced(f"its priority is {spec.priority}, and its class has {value}")
    return replace(
        spec,
        priority_class_name=found.metadata.name if found else None,
        priority=value,
        preemption_policy=(found.preemption_policy if found else None) or _PREEMPTING,
    )


def refuse_account(spec: TemplateSpec, snapshot: Snapshot, namespace: str) -> Refused | None:
    accounts = snapshot.of(SERVICE_ACCOUNT)
    name = spec.service_account_name or _DEFAULT_ACCOUNT
    if not accounts.parts or accounts.named(namespace, name) is not None:
        return None
    return cannot_be_replaced(f"ServiceAccount {name} does not exist")


def merge_tolerations(first: Iterable[Toleration], second: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Join tolerations without those that another one covers."""
    every, merged = [*first, *second], list[Toleration]()
    for place, each in enumerate(every):
        is_covered = any(_covers(one, each) for one in merged) or any(
            one != each and _covers(one, each) for one in every[place + 1 :]
        )
        if not is_covered:
            merged.append(each)
    return tuple(merged)


def _find_default(classes: Iterable[PriorityClass], sibling: Sibling) -> PriorityClass | None:
    """Find the default class; or the one that a webhook gave to the newest pod, in spite of the default.

    A pod that is older than the default class may have had another default, which says nothing about today.
    """
    every = list(classes)
    defaults = sorted((each for each in every if each.global_default), key=lambda each: each.value)
    default = defaults[0] if defaults else None
    given = sibling.template.spec.priority_class_name
    shown = next((each for each in every if each.metadata.name == given), None)
    if shown is None or (default and sibling.created <= _read_birth(default)):
        return default
    return shown


def _read_birth(each: PriorityClass) -> float:
    try:
        return parse_time(each.metadata.creation_timestamp or "")
    except TimeError:
        return float("inf")


def _allows(demands: NamespaceDemands, tolerations: Iterable[Toleration]) -> bool:
    return not demands.allowed or all(
        any(_covers(one, each) for one in demands.allowed) for each in tolerations
    )


def _read_tolerations(text: str | None) -> tuple[Toleration, ...] | None:
    return () if not text else read_json(text, tuple[Toleration, ...])


def _join(first: Mapping[str, str], second: Labels | None) -> dict[str, str] | None:
    """Join two node selectors; None if they contradict each other."""
    joined = {**first, **(second or {})}
    return joined if all(joined[key] == value for key, value in first.items()) else None


def _takes(toleration: Toleration, default: Toleration) -> bool:
    """Tell whether a pod that tolerates this gets no default toleration: by key and effect alone."""
    return (toleration.key in {default.key, None, ""}) and toleration.effect in {default.effect, None, ""}


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    if wide == narrow:
        return True
    is_any = not wide.key and wide.operator == "Exists"
    if (narrow.key or "") != (wide.key or "") and not is_any:
        return False
    if wide.effect and (narrow.effect or "") != wide.effect:
        return False
    if wide.operator == "Exists":
        return True
    return narrow.operator in {wide.operator, None, ""} and (narrow.value or "") == (wide.value or "")
