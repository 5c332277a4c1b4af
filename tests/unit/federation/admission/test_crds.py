"""The CRDs have a field for everything in the records, and describe every field."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect as look
import pytest

from federation import api
from tests.support.builders import Object
from tests.support.federation.crds import (
    CRDS,
    DOCUMENT,
    EXAMPLES,
    RECORDS,
    example,
    name_of,
    schema_of,
)

# The API server sees to these; a schema need not name them.
COMMON = {"apiVersion", "kind", "metadata"}
# Records that two places share, of which one place has less.
ELSEWHERE = {
    ".spec.failover.cluster.purgeMode: not Never",  # of applications
    ".spec.suspension.scheduling: unknown",  # of bindings
    ".spec.components[].replicaRequirements.namespace: unknown",  # of whole workloads
}
PLAIN = {look.IntType: "integer", look.StrType: "string", look.BoolType: "boolean"}

every_kind = pytest.mark.parametrize("kind", RECORDS)


def lacking(kind: look.Type, schema: Object, place: str = "") -> Iterator[str]:
    """What a record holds that the schema would not keep."""
    match kind:
        case look.UnionType(types=types):
            found = [list(lacking(one, schema, place)) for one in types if not isinstance(one, look.NoneType)]
            yield from min(found, key=len)
        case look.RawType() | look.AnyType():
            if not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{place}: the schema does not keep whatever stands there"
        case look.StructType(fields=fields):
            yield from lacking_fields(fields, schema, place)
        case look.VarTupleType(item_type=item):
            yield from (f"{place}: no list" for _ in [0] if schema.get("type") != "array")
            yield from lacking(item, schema.get("items", {}), f"{place}[]")
        case look.DictType(value_type=value):
            yield from lacking(value, schema.get("additionalProperties", {}), f"{place}.*")
        case look.EnumType(cls=cls):
            yield from (f"{place}: not {one}" for one in cls if str(one) not in schema.get("enum", ()))
        case look.IntType() | look.StrType() | look.BoolType():
            plain = PLAIN[type(kind)]
            if plain != schema.get("type") and not schema.get("x-kubernetes-int-or-string"):
                yield f"{place}: no {plain}"
        case _:
            yield f"{place}: no schema is known for {kind}"


def lacking_fields(fields: tuple[look.Field, ...], schema: Object, place: str) -> Iterator[str]:
    for field in fields:
        name = field.encode_name
        if name in COMMON:
            continue
        if name not in schema.get("properties", {}):
            yield f"{place}.{name}: unknown"
            continue
        yield from lacking(field.type, schema["properties"][name], f"{place}.{name}")
        if field.required and name not in schema.get("required", ()):
            yield f"{place}.{name}: need not be there"


@every_kind
def test_the_schema_keeps_all_that_a_record_holds(kind: str) -> None:
    assert not set(lacking(look.type_info(RECORDS[kind]), schema_of(kind))) - ELSEWHERE


@pytest.mark.parametrize(
    ("path", "key", "value", "said"),
    [
        ("spec", "properties", {"workloads": {}}, ".spec.workloads: no list"),
        ("spec", "properties", {}, ".spec.workloads: unknown"),
        (
            "status.observedWorkloads",
            "items",
            {"required": []},
            ".status.observedWorkloads[].workload: unknown",
        ),
        ("spec.workloads", "type", "object", ".spec.workloads: no list"),
        ("spec.ttlSecondsAfterFinished", "type", "string", ".spec.ttlSecondsAfterFinished: no integer"),
        ("status.finishTime", "type", "integer", ".status.finishTime: no string"),
    ],
)
def test_a_field_missing_in_a_schema_is_detected(path: str, key: str, value: Any, said: str) -> None:
    schema = msgspec.json.decode(msgspec.json.encode(schema_of("WorkloadRebalancer")))
    place = schema
    for step in path.split("."):
        place = place["properties"][step]
    place[key] = value
    assert said in list(lacking(look.type_info(api.WorkloadRebalancer), schema))


@pytest.mark.parametrize("one", EXAMPLES, ids=name_of)
def test_a_documented_object_is_read_whole_and_written_again(one: Object) -> None:
    written = msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(one), type=RECORDS[one["kind"]]))
    assert set(paths(msgspec.json.decode(written))) >= set(paths(one)) - defaults(one)


def paths(value: Any, place: str = "") -> Iterator[str]:
    """Where something stands in an object."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    yield place
    for step, part in inner:
        yield from paths(part, f"{place}.{step}")


def defaults(one: Object) -> set[str]:
    """Where a value stands that a record need not write, being what it means anyway."""
    meant = {"Divided", "Weighted", "default-scheduler", 0}
    return {place for place in paths(one) if at(one, place) in meant}


def at(value: Any, place: str) -> Any:
    for step in place.split(".")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value if isinstance(value, str | int) else None


@every_kind
def test_the_names_are_those_that_existing_objects_have(kind: str) -> None:
    group, version, plural, short, scope = {
        "Cluster": ("cluster.karmada.io", "v1alpha1", "clusters", [], "Cluster"),
        "PropagationPolicy": ("policy.karmada.io", "v1alpha1", "propagationpolicies", ["pp"], "Namespaced"),
        "ClusterPropagationPolicy": (
            "policy.karmada.io",
            "v1alpha1",
            "clusterpropagationpolicies",
            ["cpp"],
            "Cluster",
        ),
        "ResourceBinding": ("work.karmada.io", "v1alpha2", "resourcebindings", ["rb"], "Namespaced"),
        "ClusterResourceBinding": (
            "work.karmada.io",
            "v1alpha2",
            "clusterresourcebindings",
            ["crb"],
            "Cluster",
        ),
        "Work": ("work.karmada.io", "v1alpha1", "works", ["wk"], "Namespaced"),
        "ResourceInterpreterCustomization": (
            "config.karmada.io",
            "v1alpha1",
            "resourceinterpretercustomizations",
            ["ric"],
            "Cluster",
        ),
        "WorkloadRebalancer": ("apps.karmada.io", "v1alpha1", "workloadrebalancers", [], "Cluster"),
    }[kind]
    spec = CRDS[kind]["spec"]
    assert CRDS[kind]["metadata"]["name"] == f"{plural}.{group}"
    assert (spec["group"], spec["scope"], spec["names"]["plural"]) == (group, scope, plural)
    assert spec["names"].get("shortNames", []) == short
    assert [one["name"] for one in spec["versions"]] == [version]


def walk(schema: Object, place: str = "") -> Iterator[tuple[str, Object]]:
    yield place, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{place}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from walk(schema[key], f"{place}[]")


@every_kind
def test_every_field_is_described(kind: str) -> None:
    assert not [
        place for place, field in walk(schema_of(kind)) if not field.get("description", "").endswith(".")
    ]


@every_kind
def test_every_validation_rule_has_a_message(kind: str) -> None:
    rules = [rule for _, field in walk(schema_of(kind)) for rule in field.get("x-kubernetes-validations", ())]
    assert all(rule["message"] for rule in rules)


def spec_of(kind: str) -> Object:
    found: Object = schema_of(kind)["properties"]["spec"]["properties"]
    return found


def test_fields_shared_by_several_kinds_have_one_schema() -> None:
    policies = [spec_of("PropagationPolicy"), spec_of("ClusterPropagationPolicy")]
    bindings = [schema_of("ResourceBinding"), schema_of("ClusterResourceBinding")]
    assert policies[0] == policies[1]
    assert bindings[0]["properties"] == bindings[1]["properties"]
    for shared in ("placement", "failover", "conflictResolution", "preserveResourcesOnDeletion"):
        assert policies[0][shared] == spec_of("ResourceBinding")[shared]


def test_the_documentation_lists_the_message_of_every_rule() -> None:
    told = " ".join(re.sub(r"\s+", " ", DOCUMENT).split("`"))
    told = told.replace('unsupported key "…"', "unsupported key").replace(
        'unsupported operator "…"', "unsupported operator"
    )
    texts = {
        rule["message"]
        for kind in RECORDS
        for _, field in walk(schema_of(kind))
        for rule in field.get("x-kubernetes-validations", ())
    }
    shortened = {text.partition(";")[0] for text in texts} - {"must be a label key"}
    spread = {text for text in shortened if re.match(r"multiple (region|zone|provider) ", text)}
    assert not [text for text in shortened - spread if text not in told]


def test_the_documentation_has_an_object_of_every_kind() -> None:
    assert {one["kind"] for one in EXAMPLES} == set(RECORDS)
    assert example("Cluster")["metadata"]["name"] == "member1"
