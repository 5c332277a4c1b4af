"""Quantities against Kubernetes' own answers, and against plain fractions."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.records import Quantity
from reberth.values.quantity import (
    LARGEST,
    MILLI,
    UNIT,
    QuantityError,
    nanos,
    round_up,
    value,
    write_quantity,
)

POWERS = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
FACTORS = {suffix: Fraction(1000) ** power for suffix, power in POWERS.items()} | {
    f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)
}

signs = st.sampled_from(["", "+", "-"])
numbers = st.from_regex(r"[0-9]{1,21}(\.[0-9]{0,14})?|\.[0-9]{1,14}", fullmatch=True)
suffixes = st.sampled_from(sorted(FACTORS))
exponents = st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 25))


def away_from_zero(amount: Fraction) -> int:
    return math.ceil(amount) if amount >= 0 else math.floor(amount)


def capped(amount: int, most: int) -> int:
    return min(max(amount, -most), most)


def defined_nanos(number: str, factor: Fraction) -> int:
    return capped(away_from_zero(Fraction(Decimal(number)) * factor * UNIT), LARGEST * UNIT)


@pytest.mark.parametrize(
    ("quantity", "units", "millis", "text"),
    [
        ("0", 0, 0, "0"),
        ("00012", 12, 12000, "12"),
        ("100m", 1, 100, "100m"),
        ("1500m", 2, 1500, "1500m"),
        ("1.5", 2, 1500, "1500m"),
        ("+.5", 1, 500, "500m"),
        ("1.", 1, 1000, "1"),
        ("250u", 1, 1, "250u"),
        ("3n", 1, 1, "3n"),
        ("0.1n", 1, 1, "1n"),
        ("1e-10", 1, 1, "1n"),
        ("-1n", -1, -1, "-1n"),
        ("-1.5", -2, -1500, "-1500m"),
        ("12e-4", 1, 2, "1200u"),
        ("1E-3", 1, 1, "1m"),
        ("1e3", 1000, 1000000, "1k"),
        ("1e+3", 1000, 1000000, "1k"),
        ("1500", 1500, 1500000, "1500"),
        ("100000", 100000, 100000000, "100k"),
        ("1E", 10**18, LARGEST, "1E"),
        ("1k", 1000, 1000000, "1k"),
        (" 2 ", 2, 2000, "2"),
    ],
)
def test_decimal_quantities_read_and_written_as_kubernetes_does(
    quantity: str, units: int, millis: int, text: str
) -> None:
    assert (value(quantity), round_up(nanos(quantity), MILLI)) == (units, millis)
    assert write_quantity(nanos(quantity)) == text


@pytest.mark.parametrize(
    ("quantity", "units", "text"),
    [
        ("1Ki", 1024, "1Ki"),
        ("1024Ki", 2**20, "1Mi"),
        ("1000Ki", 1024000, "1000Ki"),
        ("1.5Gi", 1536 * 2**20, "1536Mi"),
        ("2Gi", 2**31, "2Gi"),
        ("1.Gi", 2**30, "1Gi"),
        ("1Ti", 2**40, "1Ti"),
        ("1Pi", 2**50, "1Pi"),
        ("7Ei", 7 * 2**60, "7Ei"),
        ("8Ei", LARGEST, "9223372036854775807"),
        ("0.5Ki", 512, "512"),
        ("1000", 1000, "1k"),
        ("1.1Ki", 1127, "1126400m"),
        ("0.0001Ki", 1, "102400u"),
        ("0Ki", 0, "0"),
        ("-1.5Ki", -1536, "-1536"),
        ("-2Ki", -2048, "-2Ki"),
    ],
)
def test_binary_quantities_read_and_written_as_kubernetes_does(quantity: str, units: int, text: str) -> None:
    assert value(quantity) == units
    assert write_quantity(nanos(quantity), binary=True) == text


@pytest.mark.parametrize(
    ("quantity", "units"),
    [(2, 2), (0, 0), (-3, -3), (1.5, 2), (0.1, 1), (1e16, 10**16), (2**63, LARGEST), (1e300, LARGEST)],
)
def test_numbers_are_read_as_their_text(quantity: Quantity, units: int) -> None:
    assert value(quantity) == units


def test_a_float_is_read_as_its_decimal_text() -> None:
    assert nanos(0.1) == UNIT // 10


@pytest.mark.parametrize("quantity", ["10E", "9.3E", "8Ei", "1e20", "1e400", "9223372036854775808", "9" * 63])
def test_a_quantity_too_large_becomes_the_largest(quantity: str) -> None:
    assert value(quantity) == round_up(nanos(quantity), MILLI) == LARGEST
    assert value(f"-{quantity}") == -LARGEST


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("1e999999999999999999999", LARGEST * UNIT),
        ("-1e999999999999999999999", -LARGEST * UNIT),
        ("1e-999999999999999999999", 1),
        ("-1e-999999999999999999999", -1),
        ("0e999999999999999999999", 0),
        ("0e-999999999999999999999", 0),
        ("0." + "0" * 60 + "1", 1),
        ("0." + "0" * 57 + "1e58", UNIT),
        ("1" + "0" * 50 + "e-50", UNIT),
        ("1." + "0" * 50 + "1", UNIT + 1),
    ],
)
def test_exponents_of_any_size_are_read_in_no_time(quantity: str, amount: int) -> None:
    assert nanos(quantity) == amount


@pytest.mark.parametrize(
    "quantity",
    [
        *(
            "",
            " ",
            "+",
            "-",
            ".",
            "m",
            "Ki",
            ".m",
            "aoeu",
            "1i",
            ".5i",
            "1K",
            "1ki",
            "0.1mi",
            "1kb",
            "1GB",
            "1 Gi",
        ),
        *("1.1.M", "1+1.0M", "1e", "1e+", "1e1.5", "1e3m", "1Ee3", "0x10", "1_0", "١", "1,5", "1\n2", "1e٣"),  # noqa: RUF001 - digits of other scripts are the point
        *("inf", "nan", "Infinity", "1/2"),
    ],
)
def test_bad_text_is_refused_by_name(quantity: str) -> None:
    with pytest.raises(QuantityError, match="invalid quantity") as refusal:
        nanos(quantity)
    assert repr(quantity) in str(refusal.value)


@pytest.mark.parametrize("quantity", ["1" * 65, "1".ljust(65), "0." + "0" * 63, 10**64])
def test_a_text_that_is_longer_than_any_quantity_is_refused(quantity: Quantity) -> None:
    with pytest.raises(QuantityError):
        nanos(quantity)


@pytest.mark.parametrize("quantity", [True, False, math.inf, math.nan])
def test_an_invalid_quantity_is_refused_even_after_its_equal_was_cached(quantity: Quantity) -> None:
    nanos(0)
    nanos(1)
    with pytest.raises(QuantityError):
        nanos(quantity)


def test_a_long_bad_text_is_cut_in_the_message() -> None:
    with pytest.raises(QuantityError) as refusal:
        nanos("x" * 10**6)
    assert len(str(refusal.value)) < 200


def test_sums_beyond_every_quantity_are_written_with_the_largest_suffix() -> None:
    assert write_quantity(2000 * 10**18 * UNIT) == "2000E"
    assert write_quantity(2048 * 2**60 * UNIT, binary=True) == "2048Ei"


@given(signs, numbers, suffixes)
def test_every_suffix_multiplies_exactly(sign: str, number: str, suffix: str) -> None:
    assert nanos(f"{sign}{number}{suffix}") == defined_nanos(f"{sign}{number}", FACTORS[suffix])


@given(signs, numbers, exponents)
def test_every_exponent_multiplies_exactly(sign: str, number: str, exponent: str) -> None:
    factor = Fraction(10) ** int(exponent[1:])
    assert nanos(f"{sign}{number}{exponent}") == defined_nanos(f"{sign}{number}", factor)


@given(st.integers(-(10**30), 10**30), st.sampled_from([UNIT, MILLI]))
def test_rounding_goes_away_from_zero_and_stays_an_int64(amount: int, unit: int) -> None:
    assert round_up(amount, unit) == capped(away_from_zero(Fraction(amount, unit)), LARGEST)


@given(st.integers(-LARGEST * UNIT, LARGEST * UNIT), st.booleans())
def test_a_written_quantity_reads_back_the_same(amount: int, binary: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    assert nanos(write_quantity(amount, binary=binary)) == amount


@given(st.integers(1, LARGEST), st.booleans())
def test_a_written_quantity_uses_the_largest_exact_suffix(units: int, binary: bool) -> None:  # noqa: FBT001 - hypothesis gives it
    step = 1024 if binary else 1000
    number = write_quantity(units * UNIT, binary=binary).rstrip("kKMGTPEi")
    assert int(number) % step or units < step


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e18, max_value=1e18))
def test_floats_are_read_like_their_shortest_text(number: float) -> None:
    assert nanos(number) == away_from_zero(Fraction(Decimal(repr(number))) * UNIT)
