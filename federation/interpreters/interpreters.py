"""The interpreters of all kinds: the scripts of all customizations, merged, and their answers.

Of several customizations of one kind, the first by name that has a script for an operation counts, as in
Karmada; dependencies are those that any of them finds.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from federation.api import ResourceInterpreterCustomization
from federation.interpreters.operations import FORMS, Operation, list_sources
from federation.interpreters.sandbox import Sandbox, Script, ScriptFailure, ScriptLimits
from federation.interpreters.script_pauses import ScriptPauses

NamedKind = tuple[str, str]
"""API version and kind."""
_FAILS_FOR = 60.0
"""Seconds after its last failure until a script is called working again."""


class ScriptName(NamedTuple):
    """A script: its customization and its operation."""

    customization: str
    operation: Operation


class LoadedScript(NamedTuple):
    name: ScriptName
    source: str
    script: Script | ScriptFailure


class KnownFailure(NamedTuple):
    """The last failure of a script."""

    reason: str
    at: float


class Interpreters:
    """What is known of all kinds that users have described. Runs one script at a time."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sandbox: Sandbox | None = None,
        count: Callable[[Operation, str], None] = lambda _operation, _result: None,
    ) -> None:
        self._clock = clock
        self._sandbox = sandbox or Sandbox()
        self._count = count
        self._pauses = ScriptPauses()
        self._kinds: dict[NamedKind, dict[Operation, list[LoadedScript]]] = {}
        self._loaded: dict[ScriptName, LoadedScript] = {}
        self._failures: dict[ScriptName, KnownFailure] = {}
        self._waiting: dict[NamedKind, float] = {}

    @property
    def count(self) -> int:
        """How many scripts are loaded."""
        return len(self._loaded)

    @property
    def memory(self) -> int:
        """Bytes that Lua holds."""
        return self._sandbox.memory

    def load(self, customizations: Iterable[ResourceInterpreterCustomization]) -> set[NamedKind]:
        """Replace all customizations; return the kinds whose scripts have changed."""
        loaded: dict[ScriptName, LoadedScript] = {}
        kinds: dict[NamedKind, dict[Operation, list[LoadedScript]]] = {}
        for each in sorted(customizations, key=lambda one: one.metadata.name):
            target = (each.spec.target.api_version, each.spec.target.kind)
            for operation, source in list_sources(each.spec.customizations):
                name = ScriptName(each.metadata.name, operation)
                loaded[name] = self._load(name, source)
                _merge(kinds.setdefault(target, {}), loaded[name])
        changed = {kind for kind in {*kinds, *self._kinds} if kinds.get(kind) != self._kinds.get(kind)}
        self._kinds, self._loaded = kinds, loaded
        self._failures = {name: known for name, known in self._failures.items() if name in loaded}
        return changed

    def _load(self, name: ScriptName, source: str) -> LoadedScript:
        had = self._loaded.get(name)
        if had is not None and had.source == source:
            return had
        self._pauses.forget(name)
        self._failures.pop(name, None)
        try:
            script = self._sandbox.compile(source, FORMS[name.operation].function, is_tried=False)
        except Exception as error:  # noqa: BLE001 - it is about this script alone, and is told
            script = ScriptFailure(f"it cannot be loaded: {error!r}")
        if isinstance(script, ScriptFailure):
            self._count(name.operation, "refused")
        return LoadedScript(name, source, script)

    def has(self, api_version: str, kind: str, operation: Operation) -> bool:
        return operation in self._kinds.get((api_version, kind), {})

    def list_kinds(self, operation: Operation) -> list[NamedKind]:
        return [kind for kind, rules in self._kinds.items() if operation in rules]

    def ask(self, kind: NamedKind, operation: Operation, *arguments: Any) -> Any | ScriptFailure:  # noqa: ANN401 - any JSON
        """Return the first result of the script; of InterpretReplica both results."""
        script = self._kinds[kind][operation][0]
        found = self._run(kind, script, arguments)
        if isinstance(found, ScriptFailure) or operation is Operation.REPLICAS:
            return found
        return found[0]

    def ask_all(self, kind: NamedKind, operation: Operation, *arguments: Any) -> list[Any | ScriptFailure]:  # noqa: ANN401 - any JSON
        """Return the first results of the scripts of all customizations."""
        found = (self._run(kind, script, arguments) for script in self._kinds[kind][operation])
        return [each if isinstance(each, ScriptFailure) else each[0] for each in found]

    def fail(self, kind: NamedKind, operation: Operation, reason: str) -> ScriptFailure:
        """Note that a result is not of the form that the operation demands."""
        return self._note_failure(self._kinds[kind][operation][0].name, ScriptFailure(reason))

    def list_failures(self) -> Mapping[str, list[str]]:
        """Return what is wrong with each customization: scripts that are refused, and that failed lately."""
        now, found = self._clock(), dict[str, list[str]]()
        for name, loaded in self._loaded.items():
            known = self._failures.get(name)
            if isinstance(loaded.script, ScriptFailure):
                reason = loaded.script.reason
            elif known is not None and now < known.at + _FAILS_FOR:
                reason = known.reason
            else:
                continue
            found.setdefault(name.customization, []).append(f"{name.operation}: {reason}")
        return found

    def take_due(self) -> set[NamedKind]:
        """Return the kinds that had to wait for an answer, and may ask again now."""
        now = self._clock()
        due = {kind for kind, until in self._waiting.items() if until <= now}
        for kind in due:
            del self._waiting[kind]
        return due

    def _run(
        self, kind: NamedKind, loaded: LoadedScript, arguments: tuple[Any, ...]
    ) -> tuple[Any, Any] | ScriptFailure:
        if isinstance(loaded.script, ScriptFailure):
            return self._note_failure(loaded.name, loaded.script)
        now = self._clock()
        if self._pauses.find_wait(loaded.name, now):
            return self._wait(kind, loaded.name, now)
        return self._run_now(kind, loaded.name, loaded.script, arguments)

    def _run_now(
        self, kind: NamedKind, name: ScriptName, script: Script, arguments: tuple[Any, ...]
    ) -> tuple[Any, Any] | ScriptFailure:
        now = self._clock()
        is_crowded = self._pauses.is_crowded(now)
        found = self._sandbox.run(script, *arguments, limits=_SMALL if is_crowded else None)
        if not isinstance(found, ScriptFailure):
            self._pauses.note_result(name)
            self._count(name.operation, "answered")
            return found
        if found.is_spent:
            ended = self._clock()
            if is_crowded:
                self._pauses.note_small_excess(name)
                return self._wait(kind, name, ended)
            self._pauses.note_excess(name, now=ended, took=ended - now)
            self._wait(kind, name, ended)
        return self._note_failure(name, found)

    def _wait(self, kind: NamedKind, name: ScriptName, now: float) -> ScriptFailure:
        """Have the kind ask again when the script may run."""
        again = now + self._pauses.find_wait(name, now)
        self._waiting[kind] = min(self._waiting.get(kind, again), again)
        known = self._failures.get(name)
        reason = known.reason if known else "waits for scripts that take too much time"
        return ScriptFailure(reason, is_waiting=True)

    def _note_failure(self, name: ScriptName, failure: ScriptFailure) -> ScriptFailure:
        self._failures[name] = KnownFailure(failure.reason, self._clock())
        self._count(name.operation, "exceeded" if failure.is_spent else "failed")
        return failure


_SMALL = ScriptLimits(instructions=100_000, seconds=0.003)


def _merge(rules: dict[Operation, list[LoadedScript]], loaded: LoadedScript) -> None:
    operation = loaded.name.operation
    if operation not in rules or operation is Operation.DEPENDENCIES:
        rules.setdefault(operation, []).append(loaded)
