"""The custom resource definitions say what the records say: field by field, bound by bound."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import msgspec
import msgspec.inspect as look
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.kinds import HISTORIES, LEDGERS, SCORES, Resource
from reberth.cluster.pods.identity import name_history
from reberth.memory.addon_scores import MOST_SCORE, ScoreSettings, WeightedScore, choose_weights
from reberth.memory.history import MOST_DESTINATIONS, MOST_OPEN, MOST_PAST
from reberth.memory.ledger import LEDGER_NAME, MOST_BYTES, MOST_DEBITS
from reberth.memory.ledger_slots import MOST_SLOTS, hash_name, read_counts, write_counts
from reberth.memory.refusals import MOST_KEY, MOST_REASON, MOST_REFUSED
from reberth.memory.replacements import MOST_KNOWN
from reberth.values.timestamp import TimeError, parse_time, write_micro_time, write_time
from tests.support.builders import Object
from tests.support.repository import ROOT

RESOURCES: tuple[Resource[Any], ...] = (HISTORIES, LEDGERS, SCORES)
CRDS = {
    crd["spec"]["names"]["plural"]: crd
    for crd in (yaml.safe_load(file.read_text()) for file in (ROOT / "manifests" / "crds").glob("*.yaml"))
}
MEMORY = (ROOT / "docs" / "memory.md").read_text()
# The API server sees to these; a schema need not name them.
COMMON = {"apiVersion", "kind", "metadata"}

every_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.name)


def schema_of(resource: Resource[Any]) -> Object:
    schema: Object = version_of(resource)["schema"]["openAPIV3Schema"]
    return schema


def version_of(resource: Resource[Any]) -> Object:
    """The one version that is served, and stored."""
    (version,) = (each for each in CRDS[resource.name]["spec"]["versions"] if each["served"])
    assert isinstance(version, dict)
    assert version["storage"]
    return version


def at(schema: Object, path: str) -> Object:
    """The schema of a field: `status.open[].id`."""
    for step in path.replace("[]", ".[]").split("."):
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    return schema


def differences(kind: look.Type, schema: Object, place: str = "") -> Iterator[str]:
    """Where a record and a schema disagree, and how."""
    match kind:
        case look.UnionType(types=types):
            (only,) = (one for one in types if not isinstance(one, look.NoneType))
            yield from differences(only, schema, place)
        case look.CustomType(cls=cls) if cls is object:
            pass  # the record reads whatever stands there
        case look.StructType(fields=fields):
            yield from differences_of_fields(fields, schema, place)
        case look.VarTupleType(item_type=item):
            yield from unequal(f"{place} type", "array", schema["type"])
            yield from differences(item, schema["items"], f"{place}[]")
        case look.EnumType(cls=cls):
            yield from unequal(f"{place} enum", [str(one) for one in cls], schema.get("enum"))
        case look.IntType():
            yield from unequal(f"{place} type", "integer", schema["type"])
        case look.BoolType():
            yield from unequal(f"{place} type", "boolean", schema["type"])
        case look.StrType():
            yield from unequal(f"{place} type", "string", schema["type"])
        case _:
            yield f"{place}: no schema is known for {kind}"


def differences_of_fields(fields: tuple[look.Field, ...], schema: Object, place: str) -> Iterator[str]:
    record = {field.encode_name: field for field in fields if field.encode_name not in COMMON}
    yield from unequal(f"{place} fields", sorted(record), sorted(schema["properties"].keys() - COMMON))
    needed = {name for name, field in record.items() if field.required} - set(schema.get("required", ()))
    yield from unequal(f"{place} required", set(), needed)
    for name in record.keys() & schema["properties"].keys():
        yield from differences(record[name].type, schema["properties"][name], f"{place}.{name}")


def unequal(place: str, record: object, schema: object) -> Iterator[str]:
    if record != schema:
        yield f"{place}: the record has {record}, the schema {schema}"


@every_resource
def test_record_and_schema_agree(resource: Resource[Any]) -> None:
    assert not list(differences(look.type_info(resource.record), schema_of(resource)))


@pytest.mark.parametrize(
    ("path", "key", "value", "said"),
    [
        ("status", "properties", {}, ".status fields"),
        ("status.open[]", "required", [], ".status.open[] required"),
        ("status.open[].phase", "enum", ["Planned"], ".status.open[].phase enum"),
        ("status.open[].pod", "type", "integer", ".status.open[].pod type"),
        ("status.past", "type", "object", ".status.past type"),
        ("status.past[].timeToReady", "type", "string", ".status.past[].timeToReady type"),
    ],
)
def test_a_disagreement_would_be_seen(path: str, key: str, value: Any, said: str) -> None:
    schema = copy.deepcopy(schema_of(HISTORIES))
    at(schema, path)[key] = value
    assert [one.partition(":")[0] for one in differences(look.type_info(HISTORIES.record), schema)] == [said]


@every_resource
def test_the_definition_is_of_the_resource_that_the_library_asks_for(resource: Resource[Any]) -> None:
    crd = CRDS[resource.name]
    spec, version = crd["spec"], version_of(resource)
    assert crd["metadata"]["name"] == f"{resource.name}.{spec['group']}"
    assert f"{spec['group']}/{version['name']}" == resource.api_version
    assert spec["names"]["kind"] == resource.kind.name
    assert spec["scope"] == ("Namespaced" if resource.namespaced else "Cluster")
    assert version["subresources"] == {"status": {}}


def walk(schema: Object, place: str = "") -> Iterator[tuple[str, Object]]:
    """Every field of a schema, but not the metadata, of which only the name may be spoken of."""
    yield place, schema
    for name, field in schema.get("properties", {}).items():
        if name not in COMMON:
            yield from walk(field, f"{place}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{place}[]")


FIELDS = [(f"{one.name}{place}", field) for one in RESOURCES for place, field in walk(schema_of(one))]


def test_every_field_is_described() -> None:
    assert not [place for place, field in FIELDS if not field.get("description", "").endswith(".")]


def test_every_string_and_list_is_bounded() -> None:
    """The API server refuses rules whose cost it cannot bound."""
    texts = [(place, field) for place, field in FIELDS if field["type"] == "string"]
    assert not [place for place, field in texts if not field.keys() & {"maxLength", "enum", "format"}]
    lists = [(place, field) for place, field in FIELDS if field["type"] == "array"]
    assert not [place for place, field in lists if not field.keys() >= {"maxItems", "x-kubernetes-list-type"}]


@pytest.mark.parametrize(
    ("resource", "path", "key", "value"),
    [
        (HISTORIES, "status.open", "maxItems", MOST_OPEN),
        (HISTORIES, "status.open[].destinations", "maxItems", MOST_DESTINATIONS),
        (HISTORIES, "status.open[].knownPods", "maxItems", MOST_KNOWN),
        (HISTORIES, "status.past", "maxItems", MOST_PAST),
        (HISTORIES, "status.refused", "maxItems", MOST_REFUSED),
        (HISTORIES, "status.refused[].key", "maxLength", MOST_KEY),
        (HISTORIES, "status.refused[].reason", "maxLength", MOST_REASON),
        (LEDGERS, "status.debits", "maxItems", MOST_DEBITS),
        (LEDGERS, "status.slots", "maxItems", MOST_SLOTS),
        (LEDGERS, "status.slots[].workloads", "maxLength", MOST_BYTES),
        (LEDGERS, "status.spentMoves[].moves", "maxLength", MOST_BYTES),
        (LEDGERS, "metadata.name", "enum", [LEDGER_NAME]),
        (SCORES, "status.scores[].value", "minimum", -MOST_SCORE),
        (SCORES, "status.scores[].value", "maximum", MOST_SCORE),
    ],
)
def test_the_bounds_are_those_of_the_code(resource: Resource[Any], path: str, key: str, value: Any) -> None:
    assert at(schema_of(resource), path)[key] == value


TIMES = [field for _, field in FIELDS if field.get("format") == "date-time"]
TIME = TIMES[0]["pattern"]


def test_every_time_has_the_same_form() -> None:
    assert {field["pattern"] for field in TIMES} == {TIME}
    named = [place for place, field in FIELDS if re.search(r"(At|[uU]ntil|[tT]ime)$", place)]
    assert len(TIMES) == len(named)


@given(st.from_regex(TIME, fullmatch=True))
def test_of_the_times_of_that_form_only_the_calendar_forbids_some(text: str) -> None:
    """The API server asks the calendar, too: what it lets in can be read."""
    try:
        parse_time(text)
    except TimeError:
        month, day, hour, minute, second = (int(part) for part in re.findall(r"[0-9]{2}", text[4:19]))
        beyond = not 1 <= month <= 12 or not 1 <= day <= 28 or hour > 23 or minute > 59 or second > 59
        assert beyond, text


@given(st.floats(parse_time("1000-01-01T00:00:00Z"), parse_time("9999-12-31T23:59:59Z")))
def test_every_time_that_we_write_has_that_form(seconds: float) -> None:
    assert re.fullmatch(TIME, write_time(seconds))
    assert re.fullmatch(TIME, write_micro_time(seconds))


@given(st.dictionaries(st.text().map(hash_name), st.integers(1, 10**9), min_size=1))
def test_counts_in_a_slot_are_accepted_as_they_are_written_and_read_back(
    counts: dict[str, int],
) -> None:
    text = write_counts(counts)
    for field in ("namespaces", "workloads"):
        assert re.fullmatch(at(schema_of(LEDGERS), f"status.slots[].{field}")["pattern"], text)
    assert read_counts(text) == counts


@given(
    st.from_regex(at(schema_of(SCORES), "spec.source")["pattern"], fullmatch=True),
    st.from_regex(at(schema_of(SCORES), "status.scores[].name")["pattern"], fullmatch=True),
)
def test_a_pod_can_choose_every_score_that_may_be_written(source: str, name: str) -> None:
    settings = ScoreSettings((WeightedScore(source, name, most=10),))
    assert choose_weights(f"{source}/{name}=7", settings).weights == {(source, name): 7}


EXAMPLES = {
    example["kind"]: example
    for example in map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", MEMORY, re.MULTILINE | re.DOTALL))
}


@every_resource
def test_the_documented_example_is_all_read(resource: Resource[Any]) -> None:
    example = EXAMPLES[resource.kind.name]
    record = msgspec.convert(example, resource.record)
    assert msgspec.json.decode(resource.encode(record)) == example


def test_the_documented_history_has_the_name_derived_from_its_workload() -> None:
    history = msgspec.convert(EXAMPLES["EvictionHistory"], HISTORIES.record)
    assert history.metadata.name == name_history(history.spec.workload)


@every_resource
def test_the_documentation_lists_every_field_and_value(resource: Resource[Any]) -> None:
    told = set(re.findall(r"[\w-]+", " ".join(re.findall(r"`([^`\n]+)`", MEMORY))))
    own = [field for place, field in walk(schema_of(resource)) if "conditions[]" not in place]
    names = {name for field in own for name in field.get("properties", {})} - COMMON
    values = {value for field in own for value in field.get("enum", ())}
    assert names | values <= told
