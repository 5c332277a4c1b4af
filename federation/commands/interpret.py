"""The command that tries a customization on an object, with the limits that it has in the federation.

Without a customization it says what is built in for the kind of the object.
"""

import argparse
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from federation.api import INTERPRETER_KIND, ResourceInterpreterCustomization
from federation.interpreters.interpreters import Interpreters
from federation.interpreters.operations import FORMS, Operation, list_sources
from federation.interpreters.sandbox import ScriptFailure
from federation.objects.health import HEALTHY, find_health, has_health_rule, is_rolling_out
from federation.objects.names import Key
from federation.objects.template import read_template
from federation.propagation.replica_demand import ReplicaDemand, read_replica_demand
from reberth.cli.inputs import UsageError, read_bytes
from reberth.cluster.object_files import TextError, list_documents
from reberth.values.object_error import ObjectError

DESCRIPTION = "try a customization of a kind on an object, before it is applied"
WORKS, FAILS = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    files = "JSON or YAML; - reads standard input"
    parser.add_argument(
        "--kind",
        action="append",
        metavar="FILE",
        help=f"customizations, {files}; repeatable. Without them: what is built in for the object's kind",
    )
    parser.add_argument("--object", required=True, metavar="FILE", help=f"the object, {files}")
    parser.add_argument("--operation", choices=[str(each) for each in Operation], help="default: all")
    parser.add_argument("--observed", metavar="FILE", help="the copy in a member, for Retain")
    parser.add_argument(
        "--desired-replica", type=int, default=1, metavar="N", help="for ReviseReplica (default: 1)"
    )
    parser.add_argument(
        "--status",
        action="append",
        metavar="FILE",
        help="aggregatedStatus items, for AggregateStatus; repeatable",
    )


def answer(arguments: argparse.Namespace) -> tuple[str, int]:
    """Return what the scripts answer, and the exit code. Raises UsageError."""
    if not arguments.kind:
        if arguments.operation or arguments.observed or arguments.status:
            raise UsageError("--kind: is needed for --operation, --observed and --status")
        return _answer_built_in(_read_wanted(arguments.object)), WORKS
    interpreters = Interpreters()
    customizations = [each for path in arguments.kind for each in _read_customizations(path)]
    interpreters.load(customizations)
    wanted = _read_wanted(arguments.object)
    asked = _find_operations(arguments, customizations, wanted)
    answers = {operation: _ask(interpreters, operation, wanted, arguments) for operation in asked}
    lines = [f"{operation}: {_write(each)}" for operation, each in answers.items()]
    return "\n".join(lines), FAILS if any(map(_is_failure, answers.values())) else WORKS


def _answer_built_in(wanted: Any) -> str:  # noqa: ANN401 - any JSON
    """Return the health and the replicas of an object by what is known of its kind."""
    api_version, kind = str(wanted.get("apiVersion", "")), str(wanted.get("kind", ""))
    if not has_health_rule(api_version, kind):
        raise UsageError(f"--kind: is needed: nothing is known of the health of {api_version} {kind}")
    health = find_health(api_version, kind, wanted)
    rolls = " (a rollout is in progress)" if is_rolling_out(api_version, kind, wanted) else ""
    lines = [f"{Operation.HEALTH}: {_write(health == HEALTHY)}{rolls}"]
    try:
        template = read_template(msgspec.json.encode(wanted))
        meta = template.metadata
        demand = read_replica_demand(Key(api_version, kind, meta.namespace, meta.name), template)
    except (ObjectError, msgspec.MsgspecError) as error:
        raise UsageError(f"--object: {error}") from None
    if demand != ReplicaDemand():
        needs = msgspec.to_builtins(demand.requirements)
        lines.append(f"{Operation.REPLICAS}: {demand.replicas}, {_write(needs)}")
    return "\n".join(lines)


def _read_wanted(path: str) -> Any:  # noqa: ANN401 - any JSON
    found = _read_objects(path, "--object")
    if len(found) != 1:
        raise UsageError(f"--object: {path}: has {len(found)} objects, one is expected")
    return found[0]


def _find_operations(
    arguments: argparse.Namespace,
    customizations: list[ResourceInterpreterCustomization],
    wanted: Any,  # noqa: ANN401
) -> list[Operation]:
    """Return the operations for which the object's kind has a script."""
    kind = (wanted.get("apiVersion"), wanted.get("kind"))
    had = {
        operation
        for each in customizations
        if (each.spec.target.api_version, each.spec.target.kind) == kind
        for operation, _ in list_sources(each.spec.customizations)
    }
    given = {Operation.RETENTION: arguments.observed, Operation.AGGREGATION: arguments.status}
    if arguments.operation:
        had &= {Operation(arguments.operation)}
    else:
        had -= {operation for operation, file in given.items() if not file}
    if not had:
        said = f"--kind: no script for {arguments.operation or 'any operation'} of {kind[0]} {kind[1]}"
        targets = sorted(
            {f"{each.spec.target.api_version} {each.spec.target.kind}" for each in customizations}
        )
        raise UsageError(f"{said}; there are scripts for {', '.join(targets)}")
    return [operation for operation in Operation if operation in had]


def _ask(interpreters: Interpreters, operation: Operation, wanted: Any, arguments: argparse.Namespace) -> Any:  # noqa: ANN401 - any JSON
    kind = (wanted["apiVersion"], wanted["kind"])
    if operation is Operation.DEPENDENCIES:
        return interpreters.ask_all(kind, operation, wanted)
    more: list[Any] = []
    if operation is Operation.REVISION:
        more = [arguments.desired_replica]
    elif operation is Operation.RETENTION:
        more = [_read_one(arguments.observed, "--observed")]
    elif operation is Operation.AGGREGATION:
        more = [[item for path in arguments.status or () for item in _read_objects(path, "--status")]]
    return interpreters.ask(kind, operation, wanted, *more)


def _read_one(path: str | None, argument: str) -> Any:  # noqa: ANN401 - any JSON
    if path is None:
        raise UsageError(f"{argument}: is needed for this operation")
    return _read_objects(path, argument)[0]


def _read_customizations(path: str) -> Iterator[ResourceInterpreterCustomization]:
    for each in _read_objects(path, "--kind"):
        if each.get("kind") != INTERPRETER_KIND:
            raise UsageError(f"--kind: {path}: has a {each.get('kind')}, not a {INTERPRETER_KIND}")
        try:
            read = msgspec.convert(each, ResourceInterpreterCustomization)
        except msgspec.ValidationError as error:
            raise UsageError(f"--kind: {path}: {error}") from None
        if problem := _find_problem(each, read):
            raise UsageError(f"--kind: {path}: {problem}")
        yield read


def _find_problem(wire: Any, read: ResourceInterpreterCustomization) -> str | None:  # noqa: ANN401 - any JSON
    """Find what the API server would refuse, or drop with a warning that is easily overlooked."""
    target = read.spec.target
    missing = {"apiVersion": target.api_version, "kind": target.kind}
    for name, value in missing.items():
        if not value:
            return f"spec.target.{name}: must be set"
    known = {form.field for form in FORMS.values()}
    for name in (wire.get("spec") or {}).get("customizations") or {}:
        if name not in known:
            return f"spec.customizations.{name}: unknown field; known: {', '.join(sorted(known))}"
    return None


def _read_objects(path: str, argument: str) -> list[Any]:
    try:
        found = [msgspec.json.decode(each) for each in list_documents(read_bytes(path, argument))]
    except (TextError, msgspec.MsgspecError) as error:
        raise UsageError(f"{argument}: {path}: {error}") from None
    if not found or not all(isinstance(each, dict) for each in found):
        raise UsageError(f"{argument}: {path}: has no object")
    return found


def _is_failure(found: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(found, ScriptFailure) or (isinstance(found, list) and any(map(_is_failure, found)))


def _write(found: Any) -> str:  # noqa: ANN401 - any JSON
    if isinstance(found, ScriptFailure):
        return f"failed: {found.reason}"
    if isinstance(found, list) and any(map(_is_failure, found)):
        return "; ".join(map(_write, found))
    if isinstance(found, tuple):
        return ", ".join(map(_write, found))
    return json.dumps(found, sort_keys=True, ensure_ascii=False)
