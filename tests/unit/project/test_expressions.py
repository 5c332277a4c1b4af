"""No regular expression costs more than the length of its text, whatever the text is.

Each one is given the texts that make it try most: what each of its repetitions takes, over and over, with an
end that does not match. The slowest of them are then measured at their full length.
"""

import ast
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from re import _compiler, _constants, _parser
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.suites import PACKAGES
from tests.support.repository import parse_source

KIB = 1024
TRIED, WHOLE = KIB // 2, 256 * KIB
# The full length is compared with an eighth of it: eight times the cost is just, 64 times is steep. On a busy
# machine the ratio was 9.5 at most. That of a doubling is 2 and 4, which leaves less room for what disturbs.
SHORTER = 8
MOST_RATIO = 13.0
# What is below this at the full length is a matter of the clock.
UNTIMED = 0.001
# Another process may slow any single measurement.
MEASURED, FIRST_MEASURED = 20, 3
# What costs this much when it is tried is steep enough to be measured.
CLEARLY_SLOW = 0.005
# A doubling that costs more than this is not tried again at twice the length.
CLEARLY_MORE = 3.0
SEARCHING = {"search", "sub", "subn", "findall", "finditer", "split"}
ANCHORED = {"match", "fullmatch"}
ENDS = ("", "\x00", "\n", "!")
COMMON = "aAzh019-_.:/ \t\"'\\=,(é٣\x00"
CHARACTERS = (*COMMON, *map(chr, range(128)))


class Expression(NamedTuple):
    """A compiled expression: where it is, and whether it is looked for anywhere in a text."""

    place: str
    pattern: re.Pattern[Any]
    is_searched: bool

    def tries(self, text: str) -> None:
        given: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        self.pattern.fullmatch(given)
        self.pattern.match(given)
        if self.is_searched:
            for _ in self.pattern.finditer(given):
                pass

    def cost(self, text: str) -> float:
        begin = time.thread_time()
        self.tries(text)
        return time.thread_time() - begin


def list_modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def tree_of(module: ModuleType) -> ast.Module:
    return parse_source(Path(module.__file__ or "").read_text(encoding="utf-8"))


def list_patterns(value: object, place: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield place, value
    elif isinstance(value, type) and place.startswith(f"{value.__module__}."):
        yield from list_patterns(dict(vars(value)), place)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from list_patterns(each, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from list_patterns(each, f"{place}[{index}]")


def find_searched(tree: ast.Module) -> set[str]:
    """Find the names whose expressions are looked for anywhere in a text, also if a loop does it."""
    loops = {
        target.id: ast.unparse(each.iter)
        for each in ast.walk(tree)
        if isinstance(each, ast.For | ast.comprehension)
        for target in ast.walk(each.target)
        if isinstance(target, ast.Name)
    }
    called = {
        ast.unparse(each.func.value)
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in SEARCHING
    }
    return called | {loops[name] for name in called if name in loops}


def find_expressions(module: ModuleType) -> Iterator[Expression]:
    searched = find_searched(tree_of(module))
    for name, value in vars(module).items():
        for place, pattern in list_patterns(value, f"{module.__name__}.{name}"):
            yield Expression(place, pattern, name in searched or any(f"{name}." in each for each in searched))


def calls_of_re(tree: ast.Module) -> list[str]:
    return [
        each.func.attr
        for each in ast.walk(tree)
        if isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and ast.unparse(each.func.value) == "re"
    ]


MODULES = list(list_modules())
EXPRESSIONS = list({each.pattern: each for module in MODULES for each in find_expressions(module)}.values())


def test_every_expression_is_compiled_once_where_it_is_found() -> None:
    for module in MODULES:
        calls = calls_of_re(tree_of(module))
        assert set(calls) <= {"compile", "escape"}, module.__name__
        assert bool(calls) <= bool(list(find_expressions(module))), module.__name__
    assert len(EXPRESSIONS) > 30


class Repetition(NamedTuple):
    """A part of an expression that takes any number of characters, and a text that leads to it."""

    before: str
    units: frozenset[str]


def compiled(part: Any, flags: int) -> re.Pattern[str]:
    return _compiler.compile(part, flags)


def example(part: Any, flags: int) -> str:
    """Give a short text that matches a part of an expression, as far as one is easily found."""
    return "".join(_example_of(kind, value, flags) for kind, value in part)


def _example_of(kind: Any, value: Any, flags: int) -> str:  # noqa: PLR0911 - one for each kind
    match kind:
        case _constants.LITERAL:
            return chr(value)
        case _constants.ANY | _constants.NOT_LITERAL | _constants.CATEGORY:
            return "a" if value != ord("a") else "b"
        case _constants.IN:
            return next((each for each in CHARACTERS if _takes(value, each, flags)), "")
        case _constants.BRANCH:
            return example(value[1][0], flags)
        case _constants.SUBPATTERN:
            return example(value[3], flags)
        case _constants.MAX_REPEAT | _constants.MIN_REPEAT | _constants.POSSESSIVE_REPEAT:
            return example(value[2], flags) * int(value[0])
        case _constants.ATOMIC_GROUP:
            return example(value, flags)
        case _:
            return ""  # anchors, and what looks ahead or behind


def _takes(chosen: Any, character: str, flags: int) -> bool:
    state = _parser.State()
    return (
        compiled(_parser.SubPattern(state, [(_constants.IN, chosen)]), flags).fullmatch(character) is not None
    )


def list_repetitions(part: Any, flags: int, before: str = "") -> Iterator[Repetition]:
    for kind, value in part:
        match kind:
            case _constants.MAX_REPEAT | _constants.MIN_REPEAT | _constants.POSSESSIVE_REPEAT:
                inner = value[2]
                if int(value[1]) > 32:
                    yield Repetition(before, frozenset(list_units(inner, flags)))
                yield from list_repetitions(inner, flags, before)
            case _constants.BRANCH:
                for branch in value[1]:
                    yield from list_repetitions(branch, flags, before)
            case _constants.SUBPATTERN:
                yield from list_repetitions(value[3], flags, before)
            case _constants.ASSERT | _constants.ASSERT_NOT:
                yield from list_repetitions(value[1], flags, before)
            case _constants.ATOMIC_GROUP:
                yield from list_repetitions(value, flags, before)
        before += _example_of(kind, value, flags)


def list_units(inner: Any, flags: int) -> Iterator[str]:
    taken = compiled(inner, flags)
    yield example(inner, flags) or "a"
    yield from (each for each in COMMON if taken.fullmatch(each))


def list_texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """List texts of a length of which one should be the worst."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    flags = pattern.flags | re.UNICODE
    characters = sorted({*COMMON[:12], *source})
    yield from (fill("", "".join(pair), "\x00", length) for pair in product(characters, characters))
    for found in list_repetitions(_parser.parse(source, flags), flags):
        for unit, end in product(found.units, ENDS):
            yield fill(found.before, unit, end, length)
            yield fill("", found.before + unit, end, length)
            yield fill("", unit + found.before, end, length)
            yield fill("", "-" + found.before + unit, end, length)


def fill(before: str, unit: str, end: str, length: int) -> str:
    return (before + unit * (length // len(unit) + 1))[:length] + end


def find_worst(expression: Expression) -> list[int]:
    """Give the places of the slowest texts."""
    costs = []
    for place, text in enumerate(list_texts(expression.pattern, TRIED)):
        costs.append((expression.cost(text), place))
        if costs[-1][0] > CLEARLY_SLOW:
            break
    return [place for _, place in sorted(costs, reverse=True)[:2]]


def refuse_steep(expression: Expression, place: int) -> None:
    """Double the length step by step, so that a failure takes seconds instead of hours."""
    length = TRIED
    while length < WHOLE:
        length *= 2
        compare_lengths(expression, place, length // 2, length, CLEARLY_MORE)
    compare_lengths(expression, place, WHOLE // SHORTER, WHOLE, MOST_RATIO)


def compare_lengths(expression: Expression, place: int, short: int, length: int, limit: float) -> None:
    shorter, longer = (text_at(expression, place, each) for each in (short, length))
    cost = measure_steep(expression, shorter, longer, limit)
    assert cost is None, f"{expression.place}: {length} characters of {longer[:40]!r}… take {cost:.3f} s"


def text_at(expression: Expression, place: int, length: int) -> str:
    return next(text for index, text in enumerate(list_texts(expression.pattern, length)) if index == place)


def measure_steep(expression: Expression, shorter: str, longer: str, limit: float) -> float | None:
    """Give what the longer text costs if that is too much however often it is measured; None if it is not.

    The shorter one is measured a few times first: a slow first time would hide a steep one.
    """
    least_shorter = min(expression.cost(shorter) for _ in range(FIRST_MEASURED))
    least_longer = float("inf")
    for _ in range(MEASURED):
        least_longer = min(least_longer, expression.cost(longer))
        if least_longer <= max(UNTIMED, limit * least_shorter):
            return None
        least_shorter = min(least_shorter, expression.cost(shorter))
    return least_longer


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt an expression that would not end: it looks for signals now and then."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def refuse_slow(expression: Expression, *, most_seconds: float = 10.0) -> None:
    with within(most_seconds):
        for place in find_worst(expression):
            refuse_steep(expression, place)


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda each: each.place)
def test_the_worst_text_of_eight_times_the_length_costs_eight_times_as_much(expression: Expression) -> None:
    refuse_slow(expression)


@pytest.mark.parametrize(
    ("pattern", "is_searched"),
    [
        (r"[0-9]+\.?[0-9]*m", False),
        (r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[nu]|[eE](?P<exponent>[+-]?[0-9]+))", False),
        (r"\beyJ[\w-]*\.[\w-]+\.[\w-]*", True),
        (r"(?:a|ab|b)+c", False),
        (r"(x+x+)+y", False),
        (r"\s*,", True),
    ],
)
def test_an_expression_that_tries_more_would_be_seen(pattern: str, is_searched: bool) -> None:  # noqa: FBT001 - a column
    with pytest.raises((AssertionError, TimeoutError)):
        refuse_slow(Expression("bad", re.compile(pattern), is_searched), most_seconds=1.0)


class Priced(Expression):
    """An expression whose cost is known: in part it grows with the square of the length."""

    def cost(self, text: str) -> float:
        length = len(text) / WHOLE
        return 0.01 * (length + self.quadratic * length**2)

    @property
    def quadratic(self) -> float:
        return float(self.place)


@pytest.mark.parametrize(("quadratic", "is_steep"), [(0.0, False), (0.9, True)])
def test_a_cost_that_grows_with_the_square_is_seen_once_it_is_half_of_all(
    quadratic: float, *, is_steep: bool
) -> None:
    priced = Priced(str(quadratic), re.compile("a"), is_searched=False)
    cost = measure_steep(priced, "a" * (WHOLE // SHORTER), "a" * WHOLE, MOST_RATIO)
    assert (cost is not None) == is_steep
