"""What the federation's CRDs accept, the code reads: the same limits and the same grammar."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.membership import cluster_status
from reberth.values.api_path import join_path
from reberth.values.errors import ImpossibleName
from reberth.values.quantity import QuantityError, nanos
from reberth.values.text_limits import LONGEST_TEXT, LONGEST_VALUE
from tests.support.builders import Object
from tests.support.federation.crds import CRDS, schema_of


def walk(schema: Object, place: str) -> Iterator[tuple[str, Object]]:
    """Every field of a schema, and where it is."""
    yield place, schema
    for name, field in schema.get("properties", {}).items():
        yield from walk(field, f"{place}.{name}")
    for inner, step in (("items", "[]"), ("additionalProperties", ".*")):
        if inner in schema:
            yield from walk(schema[inner], f"{place}{step}")


COMMON = {"apiVersion", "kind", "metadata"}
FIELDS = [
    each
    for kind in CRDS
    for name, field in schema_of(kind)["properties"].items()
    if name not in COMMON
    for each in walk(field, f"{kind}.{name}")
]
QUANTITIES = [field for _, field in FIELDS if field.get("x-kubernetes-int-or-string")]
QUANTITY = QUANTITIES[0]["pattern"]


def test_every_text_list_and_map_has_a_limit() -> None:
    texts = [(place, field) for place, field in FIELDS if field.get("type") == "string"]
    assert not [place for place, field in texts if not field.keys() & {"maxLength", "enum", "format"}]
    assert not [place for place, field in FIELDS if field.get("type") == "array" and "maxItems" not in field]
    maps = [(place, field) for place, field in FIELDS if "additionalProperties" in field]
    assert not [place for place, field in maps if "maxProperties" not in field]


def test_messages_and_paths_are_limited_as_in_the_code() -> None:
    texts = {place: field for place, field in FIELDS if place.endswith((".message", "Message", ".jsonPath"))}
    assert {field["maxLength"] for field in texts.values()} == {LONGEST_TEXT}
    assert len(texts) >= 15


def field_of(place: str) -> Object:
    return next(field for each, field in FIELDS if each == place)


def test_what_a_member_says_of_itself_fits_into_its_cluster() -> None:
    apis, most = field_of("Cluster.status.apiEnablements"), cluster_status
    group = apis["items"]["properties"]
    assert apis["maxItems"] == most.MOST_GROUP_VERSIONS
    assert group["groupVersion"]["maxLength"] == most.LONGEST_GROUP_VERSION
    assert group["resources"]["maxItems"] == most.MOST_KINDS
    kind = group["resources"]["items"]["properties"]
    assert (kind["name"]["maxLength"], kind["kind"]["maxLength"]) == (most.LONGEST_NAME, most.LONGEST_KIND)
    summary = field_of("Cluster.status.resourceSummary")["properties"]
    sums = [field for field in summary.values() if "additionalProperties" in field]
    assert {field["maxProperties"] for field in sums} == {most.MOST_RESOURCES}


SELECTOR = "PropagationPolicy.spec.resourceSelectors[]"
printable = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


@given(printable | st.text(alphabet="ab./%", max_size=6))
def test_a_name_is_accepted_if_and_only_if_it_can_be_part_of_a_path(text: str) -> None:
    pattern = field_of(f"{SELECTOR}.name")["pattern"]
    try:
        join_path("/api/v1", text)
    except ImpossibleName:
        assert not text or not re.search(pattern, text)
    else:
        assert re.search(pattern, text)


@given(st.from_regex(field_of(f"{SELECTOR}.apiVersion")["pattern"], fullmatch=True))
def test_every_api_version_that_is_accepted_makes_a_path(text: str) -> None:
    join_path("/apis", *text.split("/"))


@pytest.mark.parametrize(
    ("field", "right", "wrong"),
    [
        ("apiVersion", ["v1", "apps/v1", "a.b-c.d/v1alpha1"], ["", "/v1", "a/b/c", "../v1", "a/", "A/v1"]),
        ("kind", ["Pod", "CSIDriver", "VirtualService", "x"], ["", "Pod/log", "9", "a b", "-"]),
        ("namespace", ["", "default", "a-1"], ["..", "a/b", "A", "a.b", "-a"]),
        ("name", ["", "web", "system:node", "a.b", ".a", "...", "Web_1"], ["..", ".", "a/b", "a%b", "a b"]),
    ],
)
def test_the_grammar_of_a_reference(field: str, right: list[str], wrong: list[str]) -> None:
    pattern = field_of(f"{SELECTOR}.{field}")["pattern"]
    assert [text for text in right if not re.search(pattern, text)] == []
    assert [text for text in wrong if re.search(pattern, text)] == []
    patterns = {
        schema["pattern"]
        for place, schema in FIELDS
        if place.startswith(("ResourceBinding.spec.resource.", "WorkloadRebalancer.spec.workloads[]."))
        and place.endswith(f".{field}")
    }
    assert patterns == {pattern}


def test_every_quantity_has_the_same_form_and_length() -> None:
    assert {(field["pattern"], field["maxLength"]) for field in QUANTITIES} == {(QUANTITY, LONGEST_VALUE)}
    assert len(QUANTITIES) >= 9


@given(st.from_regex(QUANTITY, fullmatch=True).filter(lambda text: len(text) <= LONGEST_VALUE))
def test_every_quantity_that_the_definitions_accept_is_read(text: str) -> None:
    nanos(text)


@pytest.mark.parametrize("text", ["1e1.5", "1" * 16 + "e1.5", "1K", "", "1 Gi", "0x1"])
def test_what_they_do_not_accept_is_not_read_either(text: str) -> None:
    assert not re.search(QUANTITY, text)
    with pytest.raises(QuantityError):
        nanos(text)
