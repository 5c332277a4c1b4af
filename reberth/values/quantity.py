"""Kubernetes resource quantities ("250m", "1Gi", 2, 1e3), read exactly and written canonically.

A quantity is never finer than a billionth and never larger than an int64, so a whole number of nanos
represents each one exactly: smaller values become 1n and larger ones the maximum, as in Kubernetes. Sums are
made in nanos and rounded once, at the end, always away from zero: a small request never becomes zero.
"""

import re
from decimal import ROUND_UP, Context
from functools import lru_cache

from reberth.records import Quantity
from reberth.values.text_limits import LONGEST_VALUE

MILLI = 10**6
UNIT = 10**9
LARGEST = 2**63 - 1

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_MULTIPLIERS = {suffix: UNIT * 1024**power for power, suffix in enumerate(_BINARY)}
_MULTIPLIERS |= {suffix: 1000**power for power, suffix in enumerate(_DECIMAL)}
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_FORM = re.compile(
    rf"(?P<number>{_NUMBER})(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i|)|[eE](?P<exponent>[+-]?[0-9]+))"
)


class QuantityError(ValueError):
    """The text is not a quantity."""


def nanos(quantity: Quantity) -> int:
    """Read a quantity exactly."""
    return _read(quantity if type(quantity) is str else repr(quantity))


def value(quantity: Quantity) -> int:
    return round_up(nanos(quantity), UNIT)


def round_up(amount: int, unit: int) -> int:
    """Convert an amount of nanos to units (UNIT or MILLI), rounded away from zero; it fits an int64."""
    count = -(-abs(amount) // unit)
    return _cap(count if amount >= 0 else -count, LARGEST)


def write_quantity(amount: int, *, binary: bool = False) -> str:
    """Write nanos as Kubernetes does: 1500m, 3G, or with `binary` 2Gi if that is exact."""
    if not amount:
        return "0"
    if binary and abs(amount) >= 1024 * UNIT and amount % UNIT == 0:
        return _shorten(amount // UNIT, 1024, _BINARY)
    return _shorten(amount, 1000, _DECIMAL)


# A cluster knows some thousands of different quantities: each is parsed once.
@lru_cache(maxsize=2**14)
def _read(text: str) -> int:
    form = _FORM.fullmatch(text.strip()) if len(text) <= LONGEST_VALUE else None
    if not form:
        raise QuantityError(f"invalid quantity {text!r:.80}, e.g. 2, 250m, 1.5Gi or 1e3")
    number, suffix, exponent = form.groups()
    multiplier = UNIT if exponent else _MULTIPLIERS[suffix]
    if number.isdigit() and len(number) <= 19 and not exponent:
        return _cap(int(number) * multiplier, LARGEST * UNIT)
    return _scale(f"{number}e{exponent or 0}", multiplier)


def _scale(number: str, multiplier: int) -> int:
    """Multiply without loss. A power of ten beyond a million ends next to zero, or as the largest."""
    most = LARGEST * UNIT
    context = Context(prec=len(number) + 40, rounding=ROUND_UP, traps=[])
    amount = context.multiply(context.create_decimal(number), multiplier)
    return int(context.min(context.max(amount, -most), most).to_integral_value(ROUND_UP))


def _cap(amount: int, most: int) -> int:
    return max(-most, min(amount, most))


def _shorten(amount: int, step: int, suffixes: tuple[str, ...]) -> str:
    """Divide by the step as often as it divides evenly."""
    index = 0
    while amount % step == 0 and index < len(suffixes) - 1:
        amount //= step
        index += 1
    return f"{amount}{suffixes[index]}"
