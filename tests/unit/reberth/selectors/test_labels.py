"""Label selectors against tables and against a definition in one line per operator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.records import Labels, LabelSelector, LabelSelectorRequirement
from reberth.selectors import (
    EVERYTHING,
    NOTHING,
    Selector,
    SelectorError,
    combine,
    compile_labels,
    compile_selector,
    is_qualified_name,
    parse_selector,
)

keys = st.sampled_from(["a", "b", "example.com/c"])
values = st.sampled_from(["", "x", "y", "7"])
labels = st.dictionaries(keys, values)
requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=keys,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(LabelSelectorRequirement, key=keys, operator=st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.builds(
    LabelSelector,
    match_labels=st.none() | labels,
    match_expressions=st.none() | st.lists(requirements, max_size=3).map(tuple),
)

SIGNS = {"In": "in", "NotIn": "notin"}


def defined(selector: LabelSelector | None, asked: Labels) -> bool:
    if selector is None:
        return False
    equal = all(asked.get(key) == value for key, value in (selector.match_labels or {}).items())
    return equal and all(holds(each, asked) for each in selector.match_expressions or ())


def holds(requirement: LabelSelectorRequirement, asked: Labels) -> bool:
    is_there = requirement.key in asked
    is_one_of = is_there and asked[requirement.key] in (requirement.values or ())
    return {
        "In": is_one_of,
        "NotIn": not is_one_of,
        "Exists": is_there,
        "DoesNotExist": not is_there,
    }[requirement.operator]


def as_text(selector: LabelSelector) -> str:
    equal = [f"{key}={value}" for key, value in (selector.match_labels or {}).items()]
    return " , ".join(equal + [write(each) for each in selector.match_expressions or ()])


def write(requirement: LabelSelectorRequirement) -> str:
    if requirement.values:
        return f"{requirement.key} {SIGNS[requirement.operator]} ({', '.join(requirement.values)})"
    return f"{'!' if requirement.operator == 'DoesNotExist' else ''}{requirement.key}"


def requirement(operator: str, *wanted: str, key: str = "a") -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, wanted or None),))


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    for asked in (None, {}, {"a": "x"}):
        assert not compile_selector(None).matches(asked)
        assert compile_selector(LabelSelector()).matches(asked)
        assert compile_selector(LabelSelector(match_labels={}, match_expressions=())).matches(asked)
    assert compile_selector(None) == NOTHING
    assert compile_selector(LabelSelector()) == EVERYTHING


@pytest.mark.parametrize(
    ("selector", "matched", "unmatched"),
    [
        (requirement("In", "x", "y"), {"a": "y"}, {"a": "z"}),
        (requirement("In", ""), {"a": ""}, {}),
        (requirement("NotIn", "x"), {}, {"a": "x"}),
        (requirement("NotIn", "x"), {"a": "y"}, {"a": "x"}),
        (requirement("Exists"), {"a": ""}, {"b": "x"}),
        (requirement("DoesNotExist"), {"b": "x"}, {"a": ""}),
        (LabelSelector(match_labels={"a": "x", "b": "y"}), {"a": "x", "b": "y", "c": ""}, {"a": "x"}),
    ],
)
def test_each_operator_matches_and_rejects_labels(
    selector: LabelSelector, matched: Labels, unmatched: Labels
) -> None:
    assert compile_selector(selector).matches(matched)
    assert not compile_selector(selector).matches(unmatched)


@pytest.mark.parametrize(
    ("selector", "reason"),
    [
        (
            requirement("Is", "x"),
            "operator 'Is' of label 'a' is invalid, expected one of In, NotIn, Exists, DoesNotExist",
        ),
        (requirement("Gt", "1"), "operator 'Gt'"),
        (requirement("In"), "In of label 'a' needs values"),
        (requirement("NotIn"), "NotIn of label 'a' needs values"),
        (requirement("Exists", "x"), "Exists of label 'a' takes no values"),
        (requirement("DoesNotExist", "x"), "DoesNotExist of label 'a' takes no values"),
        (requirement("Exists", key=""), "invalid label key ''"),
        (requirement("In", "x y"), "invalid value 'x y' of label 'a'"),
        (LabelSelector(match_labels={"-a": "x"}), "invalid label key '-a'"),
        (LabelSelector(match_labels={"a": "x" * 64}), "x' of label 'a'"),
    ],
)
def test_a_malformed_selector_is_refused_with_the_reason(selector: LabelSelector, reason: str) -> None:
    with pytest.raises(SelectorError, match=reason):
        compile_selector(selector)


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "example.com/gpu", "a" * 63, f"{'a' * 253}/b"])
def test_a_qualified_name_is_known(name: str) -> None:
    assert is_qualified_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "-a", "a-", "a b", "a/", "/a", "a/b/c", "A.com/a", "a..b/c", "-a/b", "a\n", "ä"),
        *("a" * 64, f"{'a' * 254}/b"),
    ],
)
def test_an_invalid_qualified_name_is_recognised(name: str) -> None:
    assert not is_qualified_name(name)


def test_a_plain_map_is_a_selector_without_checks() -> None:
    selector = compile_labels({"bad key": "x"})
    assert selector.matches({"bad key": "x"})
    assert not selector.matches(None)
    assert compile_labels(None) == compile_labels({}) == EVERYTHING


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_text_matches_everything(text: str) -> None:
    assert parse_selector(text) == EVERYTHING


@pytest.mark.parametrize(
    ("text", "matched", "unmatched"),
    [
        ("a=b", {"a": "b"}, {"a": "c"}),
        ("a==b", {"a": "b"}, {}),
        (" a = b ", {"a": "b"}, {"a": ""}),
        ("a=", {"a": ""}, {"a": "b"}),
        ("a!=b", {}, {"a": "b"}),
        ("a", {"a": "x"}, {"b": "x"}),
        ("!a", {"b": "x"}, {"a": "x"}),
        ("! a,b", {"b": "x"}, {"a": "x", "b": "x"}),
        ("a in (b,c)", {"a": "c"}, {"a": "d"}),
        ("a in(b)", {"a": "b"}, {"a": ""}),
        ("a in ()", {"a": ""}, {}),
        ("a in (,b)", {"a": ""}, {"a": "c"}),
        ("a notin ( b , c )", {}, {"a": "c"}),
        ("in in (in)", {"in": "in"}, {"in": "a"}),
        ("notin", {"notin": ""}, {}),
        ("a=in", {"a": "in"}, {"a": "b"}),
        ("a=b,c in (d,e),!f", {"a": "b", "c": "e"}, {"a": "b", "c": "e", "f": ""}),
        ("a>5", {"a": "6"}, {"a": "5"}),
        ("a > 5", {"a": "007"}, {"a": "x"}),
        ("a<5", {"a": "-3"}, {}),
        ("a<9223372036854775807", {"a": "1"}, {"a": "-9223372036854775809"}),
    ],
)
def test_the_text_form_is_read_as_kubectl_does(text: str, matched: Labels, unmatched: Labels) -> None:
    selector = parse_selector(text)
    assert selector.matches(matched)
    assert not selector.matches(unmatched)


@pytest.mark.parametrize(
    "text",
    [
        *(",", "a,", ",a", "a,,b", "a b", "a in", "a in b", "a in (b", "a in b)", "a in ((b))", "a in (b c)"),
        *("a=b=c", "a=(b)", "!a=b", "!!a", "!", "=b", "a=b c", "a>x", "a>", "a>-1", "a===b", "ain (b)"),
        *("-a=b", "a=b-", "a in (b-)", "a notin", "a>9223372036854775808"),
    ],
)
def test_a_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_selector(text)


def test_the_refusal_of_a_text_shows_where_reading_stopped() -> None:
    with pytest.raises(SelectorError, match="invalid label selector 'a=b,c in d', from 'c in d' on"):
        parse_selector("a=b,c in d")


def test_nothing_combined_with_anything_is_nothing() -> None:
    assert combine([EVERYTHING, NOTHING]) == NOTHING
    assert combine([]) == EVERYTHING


@given(selectors, st.none() | labels)
def test_a_compiled_selector_agrees_with_the_definition(
    selector: LabelSelector, asked: Labels | None
) -> None:
    assert compile_selector(selector).matches(asked) is defined(selector, asked or {})


@given(selectors, labels)
def test_the_text_form_means_the_same_as_the_objects_form(selector: LabelSelector, asked: Labels) -> None:
    assert parse_selector(as_text(selector)).matches(asked) is defined(selector, asked)


@given(st.lists(st.none() | selectors, max_size=3), labels)
def test_combined_selectors_all_have_to_match(parts: list[LabelSelector | None], asked: Labels) -> None:
    compiled = combine(compile_selector(part) for part in parts)
    assert compiled.matches(asked) is all(defined(part, asked) for part in parts)


@given(selectors)
def test_the_same_selector_is_compiled_once_and_can_be_a_key(selector: LabelSelector) -> None:
    again = LabelSelector(
        match_labels=dict(reversed((selector.match_labels or {}).items())),
        match_expressions=selector.match_expressions,
    )
    compiled: Selector = compile_selector(selector)
    assert compile_selector(again) is compiled
    assert {compiled: 1}[compile_selector(again)] == 1
