"""What the federation's CRDs accept, the code reads: the same limits and the same grammar."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.values.quantity import QuantityError, nanos
from reberth.values.text_limits import LONGEST_VALUE
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


FIELDS = [each for kind in CRDS for each in walk(schema_of(kind), kind)]
QUANTITIES = [field for _, field in FIELDS if field.get("x-kubernetes-int-or-string")]
QUANTITY = QUANTITIES[0]["pattern"]


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
