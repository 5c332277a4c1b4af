"""ResourceInterpreterCustomization: scripts in Lua that say what objects of a kind mean."""

from reberth.records import Condition, ObjectMeta, Record

CONFIG_API_VERSION = "config.karmada.io/v1alpha1"
INTERPRETER_KIND = "ResourceInterpreterCustomization"


class InterpretedKind(Record, frozen=True):
    api_version: str = ""
    kind: str = ""


class LuaRule(Record, frozen=True):
    lua_script: str = ""


class InterpreterRules(Record, frozen=True):
    """One script for each operation; none is required."""

    retention: LuaRule | None = None
    replica_resource: LuaRule | None = None
    replica_revision: LuaRule | None = None
    status_reflection: LuaRule | None = None
    status_aggregation: LuaRule | None = None
    health_interpretation: LuaRule | None = None
    dependency_interpretation: LuaRule | None = None


class InterpreterSpec(Record, frozen=True):
    target: InterpretedKind = InterpretedKind()
    customizations: InterpreterRules = InterpreterRules()


class InterpreterStatus(Record, frozen=True):
    observed_generation: int = 0
    conditions: tuple[Condition, ...] | None = None


class ResourceInterpreterCustomization(Record, frozen=True):
    metadata: ObjectMeta
    spec: InterpreterSpec = InterpreterSpec()
    api_version: str = ""
    kind: str = ""
    status: InterpreterStatus = InterpreterStatus()
