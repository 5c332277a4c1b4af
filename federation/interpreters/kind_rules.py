"""What users say of kinds, as the federation asks for it: one method for each operation.

A script that fails gives a ScriptFailure, and for health Unknown. So does one whose result has another form.
One that may not run yet changes no health.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from federation.api import ReplicaRequirements, ResourceInterpreterCustomization
from federation.interpreters.interpreters import Interpreters, NamedKind
from federation.interpreters.operations import Operation
from federation.interpreters.sandbox import ScriptFailure

Object = dict[str, Any]
_HEALTH = {True: "Healthy", False: "Unhealthy"}
_UNKNOWN = "Unknown"
_MOST_REPLICAS = 2**31 - 1
_SAME = ("apiVersion", "kind")


class ReplicaAnswer(NamedTuple):
    replicas: int
    requirements: ReplicaRequirements | None


class KindRules:
    """The rules of users by kind; those that are built in count where there are none."""

    def __init__(self, interpreters: Interpreters | None = None) -> None:
        self.interpreters = interpreters or Interpreters()
        self.health: Mapping[NamedKind, Callable[[Object], str | None]] = {}

    def load(self, customizations: Iterable[ResourceInterpreterCustomization]) -> set[NamedKind]:
        """Replace all rules; return the kinds whose rules have changed."""
        changed = self.interpreters.load(customizations)
        kinds = self.interpreters.list_kinds(Operation.HEALTH)
        self.health = {kind: partial(self._find_health, kind) for kind in kinds}
        return changed

    def has(self, kind: NamedKind, operation: Operation) -> bool:
        return self.interpreters.has(*kind, operation)

    def _find_health(self, kind: NamedKind, found: Object) -> str | None:
        """Return the health; None while the script may not run: what was told last counts on."""
        said = self._ask(kind, Operation.HEALTH, bool, found)
        if isinstance(said, ScriptFailure) and said.is_waiting:
            return None
        return _UNKNOWN if isinstance(said, ScriptFailure) else _HEALTH[said]

    def count_replicas(self, kind: NamedKind, wanted: Object) -> ReplicaAnswer | ScriptFailure:
        """Return the replicas of an object, and what each of them needs."""
        found = self.interpreters.ask(kind, Operation.REPLICAS, wanted)
        if isinstance(found, ScriptFailure):
            return found
        count, needs = found
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _MOST_REPLICAS:
            return self._fail(
                kind, Operation.REPLICAS, f"a number of replicas was expected, not {_name(count)}"
            )
        try:
            return ReplicaAnswer(count, msgspec.convert(needs, ReplicaRequirements | None))
        except msgspec.ValidationError as error:
            return self._fail(kind, Operation.REPLICAS, f"the requirements of a replica: {error}")

    def revise(self, manifest: Object, replicas: int) -> Object | ScriptFailure:
        """Return the manifest with the replicas of one cluster."""
        kind = _kind_of(manifest)
        said = self._ask(kind, Operation.REVISION, dict, manifest, replicas)
        return said if isinstance(said, ScriptFailure) else _keep_identity(said, manifest)

    def reflect_status(self, found: Object) -> Object | ScriptFailure:
        """Return what is told of the status of a copy."""
        said: Object | ScriptFailure = self._ask(_kind_of(found), Operation.STATUS, dict, found)
        return said

    def aggregate(self, template: Object, items: Sequence[Object]) -> Object | ScriptFailure:
        """Return the status of a template from those of its copies."""
        kind = _kind_of(template)
        said = self._ask(kind, Operation.AGGREGATION, dict, template, list(items))
        if isinstance(said, ScriptFailure):
            return said
        status = said.get("status")
        if not isinstance(status, dict):
            return self._fail(kind, Operation.AGGREGATION, f"a status was expected, not {_name(status)}")
        return status

    def find_dependencies(self, kind: NamedKind, wanted: Object) -> list[Object] | ScriptFailure:
        """Return the references that any script finds."""
        found: list[Object] = []
        for said in self.interpreters.ask_all(kind, Operation.DEPENDENCIES, wanted):
            if isinstance(said, ScriptFailure):
                return said
            entries = said or []
            if not isinstance(entries, list) or not all(map(_is_reference, entries)):
                reason = "a list of apiVersion, kind, namespace and name was expected"
                return self._fail(kind, Operation.DEPENDENCIES, reason)
            found += entries
        return found

    def retain(self, manifest: Object, found: Object) -> Object | ScriptFailure:
        """Return the manifest with what the copy in a member keeps."""
        said = self._ask(_kind_of(manifest), Operation.RETENTION, dict, manifest, found)
        return said if isinstance(said, ScriptFailure) else _keep_identity(said, manifest)

    def _ask(self, kind: NamedKind, operation: Operation, form: type[Any], *arguments: Any) -> Any:  # noqa: ANN401 - a value of the form, or a ScriptFailure
        said = self.interpreters.ask(kind, operation, *arguments)
        if isinstance(said, ScriptFailure | form):
            return said
        return self._fail(kind, operation, f"{_FORMS[form]} was expected, not {_name(said)}")

    def _fail(self, kind: NamedKind, operation: Operation, reason: str) -> ScriptFailure:
        return self.interpreters.fail(kind, operation, reason)


_FORMS: dict[type[Any], str] = {bool: "true or false", dict: "an object"}
_NAMES = {type(None): "nil", bool: "a boolean", str: "text", list: "a list", dict: "an object"}


def _name(value: object) -> str:
    return _NAMES.get(type(value), str(value)[:32])


def _kind_of(wanted: Object) -> NamedKind:
    return str(wanted.get("apiVersion", "")), str(wanted.get("kind", ""))


def _keep_identity(said: Object, manifest: Object) -> Object:
    """A script may change all of an object but what it is, and what the federation has marked it with."""
    had, new = manifest.get("metadata") or {}, said.get("metadata")
    metadata = {**new, **had} if isinstance(new, dict) else dict(had)
    for part in ("labels", "annotations"):
        marks = new.get(part) if isinstance(new, dict) else None
        if isinstance(marks, dict) and part in had:
            metadata[part] = {**marks, **had[part]}
    return {**said, **{name: manifest[name] for name in _SAME if name in manifest}, "metadata": metadata}


def _is_reference(entry: object) -> bool:
    names = ("apiVersion", "kind", "name")
    return isinstance(entry, dict) and all(isinstance(entry.get(name), str) for name in names)
