"""The operations of an interpreter: where the script of each stands, and the function that it defines."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from federation.api import InterpreterRules, LuaRule


class Operation(StrEnum):
    HEALTH = "InterpretHealth"
    REPLICAS = "InterpretReplica"
    REVISION = "ReviseReplica"
    STATUS = "InterpretStatus"
    AGGREGATION = "AggregateStatus"
    DEPENDENCIES = "InterpretDependency"
    RETENTION = "Retain"


class OperationForm(NamedTuple):
    """Where the script of an operation stands, and how its function is called."""

    field: str
    function: str
    arguments: str


FORMS: dict[Operation, OperationForm] = {
    Operation.HEALTH: OperationForm("healthInterpretation", "InterpretHealth", "observedObj"),
    Operation.REPLICAS: OperationForm("replicaResource", "GetReplicas", "desiredObj"),
    Operation.REVISION: OperationForm("replicaRevision", "ReviseReplica", "desiredObj, desiredReplica"),
    Operation.STATUS: OperationForm("statusReflection", "ReflectStatus", "observedObj"),
    Operation.AGGREGATION: OperationForm("statusAggregation", "AggregateStatus", "desiredObj, statusItems"),
    Operation.DEPENDENCIES: OperationForm("dependencyInterpretation", "GetDependencies", "desiredObj"),
    Operation.RETENTION: OperationForm("retention", "Retain", "desiredObj, observedObj"),
}


def list_sources(rules: InterpreterRules) -> Iterator[tuple[Operation, str]]:
    """Yield the operations that have a script, with it."""
    found: dict[Operation, LuaRule | None] = {
        Operation.HEALTH: rules.health_interpretation,
        Operation.REPLICAS: rules.replica_resource,
        Operation.REVISION: rules.replica_revision,
        Operation.STATUS: rules.status_reflection,
        Operation.AGGREGATION: rules.status_aggregation,
        Operation.DEPENDENCIES: rules.dependency_interpretation,
        Operation.RETENTION: rules.retention,
    }
    for operation, rule in found.items():
        if rule is not None and rule.lua_script:
            yield operation, rule.lua_script
