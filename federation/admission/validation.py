"""Validation of an object after defaulting: why it is refused, and which fields have no effect."""

from collections.abc import Iterable, Iterator
from functools import cache

import msgspec

from federation.admission.defaulting import APPLICATION, GRACEFULLY
from federation.admission.json_access import Object, entries, mapping, member
from federation.admission.permanent_ids import find_changed_identity
from federation.api import INTERPRETER_KIND
from federation.api.bindings import BINDING_KINDS
from federation.api.labels import POLICY_KINDS
from federation.api.paths import read_path
from federation.interpreters.operations import FORMS
from federation.interpreters.sandbox import Sandbox, ScriptFailure
from reberth.records import LabelSelector
from reberth.selectors.labels import SelectorError, compile_selector


def find_refusals(kind: str, wanted: Object, before: object) -> Iterator[str]:
    """Yield the reasons to refuse the object."""
    changed = find_changed_identity(kind, wanted, before)
    if changed:
        yield changed
    if kind in POLICY_KINDS:
        yield from _find_endless_wait(wanted)
        yield from _find_unreadable_selectors(wanted)
    if kind in BINDING_KINDS:
        yield from _find_foreign_resource(wanted)
    if kind == INTERPRETER_KIND:
        yield from _find_unusable_scripts(wanted)


def find_ignored_fields(kind: str, wanted: Object) -> Iterator[str]:
    """Yield a warning for each field that is set and has no effect."""
    if kind in POLICY_KINDS:
        yield from _in_policies(wanted)
    if kind == "Cluster":
        yield from _in_clusters(wanted)


def _find_endless_wait(policy: Object) -> Iterator[str]:
    application = mapping(policy, *APPLICATION)
    if application.get("purgeMode") == GRACEFULLY and application.get("gracePeriodSeconds") is None:
        place = ".".join((*APPLICATION, "gracePeriodSeconds"))
        yield f"{place}: Invalid value: null: should not be empty when purgeMode is gracefully"


def _find_unreadable_selectors(policy: Object) -> Iterator[str]:
    for path, selector in entries(policy, "spec", "resourceSelectors"):
        try:
            compile_selector(msgspec.convert(selector.get("labelSelector"), LabelSelector | None))
        except msgspec.ValidationError:
            continue  # the schema refuses it
        except SelectorError as error:
            yield f"spec.resourceSelectors[{path[-1]}].labelSelector: Invalid value: {error}"


def _find_foreign_resource(binding: Object) -> Iterator[str]:
    own, place = mapping(binding, "metadata").get("namespace", ""), ("spec", "resource")
    named = mapping(binding, *place).get("namespace", "")
    if own != named:
        where = ".".join((*place, "namespace"))
        yield f"{where}: Invalid value: {named!r}: must be the namespace of the binding, {own!r}"


def _find_unusable_scripts(customization: Object) -> Iterator[str]:
    """Compile each script, and run it once to see that it defines its function."""
    for form in FORMS.values():
        place = ("spec", "customizations", form.field, "luaScript")
        source = member(customization, *place)
        if isinstance(source, str) and isinstance(
            found := _sandbox().compile(source, form.function), ScriptFailure
        ):
            yield f"{'.'.join(place)}: Invalid value: {found.reason}"


@cache
def _sandbox() -> Sandbox:
    return Sandbox()


_IDLE_IN_POLICIES = (
    ("spec", "placement", "workloadAffinity"),
    ("spec", "dependentOverrides"),
    ("spec", "schedulePriority"),
)
_IDLE_IN_CLUSTERS = (("spec", "resourceModels"), ("spec", "proxyHeader"))


def _in_policies(policy: Object) -> Iterator[str]:
    yield from _find_set(policy, _IDLE_IN_POLICIES)
    if member(policy, "spec", "activationPreference") == "Lazy":
        yield _kept("spec.activationPreference: Lazy")
    placement = mapping(policy, "spec", "placement")
    if placement.get("spreadConstraints") and _has_static_weights(placement):
        yield "spec.placement.spreadConstraints: ignored when replicas are divided by static weights"
    for path, constraint in entries(placement, "spreadConstraints"):
        if constraint.get("spreadByLabel"):
            yield _kept(f"spec.placement.spreadConstraints[{path[-1]}].spreadByLabel")
    yield from _in_preservation(policy)


def _in_preservation(policy: Object) -> Iterator[str]:
    for part in ("application", "cluster"):
        where = ("spec", "failover", part, "statePreservation")
        for path, rule in entries(mapping(policy, *where), "rules"):
            if read_path(str(rule.get("jsonPath", ""))) is None:
                yield _kept(f"{'.'.join(where)}.rules[{path[-1]}].jsonPath")


def _has_static_weights(placement: Object) -> bool:
    scheduling = mapping(placement, "replicaScheduling")
    return (
        scheduling.get("replicaSchedulingType") == "Divided"
        and scheduling.get("replicaDivisionPreference") == "Weighted"
        and not member(scheduling, "weightPreference", "dynamicWeight")
    )


def _in_clusters(cluster: Object) -> Iterator[str]:
    yield from _find_set(cluster, _IDLE_IN_CLUSTERS)
    if member(cluster, "spec", "syncMode") == "Pull":
        yield _kept("spec.syncMode: Pull")


def _find_set(wanted: Object, paths: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a warning for each of these fields that is set."""
    for path in paths:
        if member(wanted, *path):
            yield _kept(".".join(path))


def _kept(place: str) -> str:
    return f"{place}: stored, but has no effect"
