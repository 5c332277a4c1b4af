"""Node rules and preferences against tables and against a definition in one line per operator."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.records import (
    Affinity,
    Labels,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodSpec,
    PreferredSchedulingTerm,
)
from reberth.selectors import (
    SelectorError,
    compile_node_preferences,
    compile_node_rule,
    compile_node_selector,
)

NAMES = ["n1", "n2", "n3"]
keys = st.sampled_from(["a", "b"])
values = st.sampled_from(["", "x", "1", "5"])
labels = st.dictionaries(keys, values | st.sampled_from(["-7", "2x"]))
listed = st.lists(values, min_size=1, max_size=2).map(tuple)
requirements = st.one_of(
    st.builds(NodeSelectorRequirement, key=keys, operator=st.sampled_from(["In", "NotIn"]), values=listed),
    st.builds(NodeSelectorRequirement, key=keys, operator=st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        NodeSelectorRequirement,
        key=keys,
        operator=st.sampled_from(["Gt", "Lt"]),
        values=st.sampled_from([("0",), ("3",)]),
    ),
)
fields = st.builds(
    NodeSelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.sampled_from(NAMES).map(lambda name: (name,)),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.none() | st.lists(requirements, max_size=2).map(tuple),
    match_fields=st.none() | st.lists(fields, max_size=2).map(tuple),
)
node_selectors = st.builds(NodeSelector, st.none() | st.lists(terms, max_size=3).map(tuple))


def expression(operator: str, *wanted: str, key: str = "a") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key, operator, wanted),))


def named(operator: str, *wanted: str, key: str = "metadata.name") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(NodeSelectorRequirement(key, operator, wanted),))


def requiring(*alternatives: NodeSelectorTerm, **node_selector: str) -> PodSpec:
    required = NodeSelector(alternatives)
    affinity = NodeAffinity(required_during_scheduling_ignored_during_execution=required)
    return PodSpec(node_selector=node_selector, affinity=Affinity(node_affinity=affinity))


def preferring(*preferred: tuple[int, NodeSelectorTerm]) -> PodSpec:
    weighed = tuple(PreferredSchedulingTerm(weight, term) for weight, term in preferred)
    affinity = NodeAffinity(preferred_during_scheduling_ignored_during_execution=weighed)
    return PodSpec(affinity=Affinity(node_affinity=affinity))


def defined(term: NodeSelectorTerm, name: str, asked: Labels) -> bool:
    clauses = (*(term.match_expressions or ()), *(term.match_fields or ()))
    known = asked | {"metadata.name": name}
    return bool(clauses) and all(holds(clause, known) for clause in clauses)


def holds(clause: NodeSelectorRequirement, known: Labels) -> bool:
    value = known.get(clause.key)
    wanted = clause.values or ()
    number = int(value) if value and value.removeprefix("-").isdigit() else None
    limit = int(wanted[0]) if clause.operator in {"Gt", "Lt"} else 0
    return {
        "In": value in wanted,
        "NotIn": value not in wanted,
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "Gt": number is not None and number > limit,
        "Lt": number is not None and number < limit,
    }[clause.operator]


@pytest.mark.parametrize(
    ("term", "matched", "unmatched"),
    [
        (expression("In", "x", "y"), {"a": "y"}, {}),
        (expression("NotIn", "x"), {}, {"a": "x"}),
        (expression("Exists"), {"a": ""}, {}),
        (expression("DoesNotExist"), {}, {"a": ""}),
        (expression("Gt", "5"), {"a": "6"}, {"a": "5"}),
        (expression("Gt", "5"), {"a": "+6"}, {"a": "six"}),
        (expression("Lt", "5"), {"a": "-6"}, {"a": "5"}),
        (expression("Lt", "5"), {"a": "4"}, {}),
        (expression("Lt", "5"), {"a": "-9223372036854775808"}, {"a": "-9223372036854775809"}),
    ],
)
def test_each_operator_matches_and_rejects_nodes(
    term: NodeSelectorTerm, matched: Labels, unmatched: Labels
) -> None:
    rule = compile_node_rule(requiring(term))
    assert rule.matches("n1", matched)
    assert not rule.matches("n1", unmatched)


MALFORMED = [
    expression("Is", "x"),
    expression("In"),
    expression("Exists", "x"),
    expression("Gt", "x"),
    expression("Gt", "-5"),
    expression("Gt"),
    expression("Lt", "1", "1"),
    expression("In", "no label"),
    expression("Exists", key="no key"),
    named("In", "n1", "n1"),
    named("In"),
    named("Exists"),
]


@pytest.mark.parametrize("term", [NodeSelectorTerm(), NodeSelectorTerm((), ()), *MALFORMED])
def test_an_empty_or_malformed_term_matches_no_node_and_spoils_no_other(term: NodeSelectorTerm) -> None:
    assert not compile_node_rule(requiring(term)).matches("n1", {"a": "x"})
    assert compile_node_rule(requiring(term, expression("In", "x"))).matches("n1", {"a": "x"})


@pytest.mark.parametrize("term", MALFORMED)
def test_a_malformed_preference_is_an_error_unless_it_has_no_weight(term: NodeSelectorTerm) -> None:
    with pytest.raises(SelectorError):
        compile_node_preferences(preferring((1, term)))
    assert compile_node_preferences(preferring((0, term))).weigh("n1", {"a": "x"}) == 0


def test_without_demands_every_node_matches() -> None:
    for spec in (PodSpec(), PodSpec(affinity=Affinity()), PodSpec(affinity=Affinity(NodeAffinity()))):
        assert compile_node_rule(spec).matches("n1", None)
        assert compile_node_preferences(spec).weigh("n1", None) == 0
    assert compile_node_selector(None).matches("n1", None)


@pytest.mark.parametrize("required", [NodeSelector(), NodeSelector(())])
def test_affinity_without_terms_matches_no_node(required: NodeSelector) -> None:
    assert not compile_node_selector(required).matches("n1", {"a": "x"})


def test_node_selector_and_affinity_must_both_hold() -> None:
    rule = compile_node_rule(requiring(expression("Exists"), b="y"))
    assert rule.matches("n1", {"a": "x", "b": "y"})
    assert not rule.matches("n1", {"a": "x"})
    assert not rule.matches("n1", {"b": "y"})


def test_a_field_is_compared_with_the_name_of_the_node() -> None:
    assert compile_node_rule(requiring(named("In", "n1"))).matches("n1", None)
    assert not compile_node_rule(requiring(named("In", "n1"))).matches("n2", None)
    assert compile_node_rule(requiring(named("NotIn", "n1"))).matches("n2", None)
    assert not compile_node_rule(requiring(named("In", "n1", key="spec.other"))).matches("n1", None)


def test_weights_of_matching_terms_add_up() -> None:
    preferences = compile_node_preferences(
        preferring(
            (10, expression("In", "x")),
            (5, named("In", "n1")),
            (3, NodeSelectorTerm()),
            (1, expression("Exists", key="b")),
        )
    )
    assert preferences.weigh("n1", {"a": "x"}) == 15
    assert preferences.weigh("n2", {"a": "x", "b": ""}) == 11
    assert preferences.weigh("n2", None) == 0


both = NodeSelectorTerm(
    match_fields=(
        NodeSelectorRequirement("metadata.name", "In", ("n1", "n2")),
        NodeSelectorRequirement("metadata.name", "In", ("n2", "n3")),
    )
)


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        (PodSpec(), None),
        (PodSpec(node_selector={"a": "x"}), None),
        (requiring(), None),
        (requiring(expression("Exists")), None),
        (requiring(named("NotIn", "n1")), None),
        (requiring(named("In", "n1", key="spec.other")), None),
        (requiring(named("In", "n1")), {"n1"}),
        (requiring(named("In", "n1"), named("In", "n2")), {"n1", "n2"}),
        (requiring(named("In", "n1"), expression("Exists")), None),
        (requiring(named("In", "n1"), NodeSelectorTerm()), None),
        (requiring(both), {"n2"}),
        (requiring(named("In")), set()),
    ],
)
def test_only_when_every_term_demands_names_are_these_the_only_nodes(
    spec: PodSpec, names: set[str] | None
) -> None:
    assert compile_node_rule(spec).names == names


@given(node_selectors, st.none() | labels, st.sampled_from(NAMES), labels)
def test_a_node_rule_agrees_with_the_definition(
    required: NodeSelector, wanted: Labels | None, name: str, asked: Labels
) -> None:
    alternatives = required.node_selector_terms or ()
    spec = msgspec.structs.replace(requiring(*alternatives), node_selector=wanted)
    selected = (wanted or {}).items() <= asked.items()
    meant = any(defined(term, name, asked) for term in alternatives)
    assert compile_node_selector(required).matches(name, asked) is meant
    assert compile_node_rule(spec).matches(name, asked) is (selected and meant)


@given(st.lists(st.tuples(st.integers(0, 100), terms), max_size=3), st.sampled_from(NAMES), labels)
def test_node_preferences_weigh_as_the_definition(
    preferred: list[tuple[int, NodeSelectorTerm]], name: str, asked: Labels
) -> None:
    meant = sum(weight for weight, term in preferred if defined(term, name, asked))
    assert compile_node_preferences(preferring(*preferred)).weigh(name, asked) == meant


@given(node_selectors, st.lists(st.tuples(st.integers(0, 100), terms), max_size=2))
def test_equal_rules_and_preferences_are_one_key(
    required: NodeSelector, preferred: list[tuple[int, NodeSelectorTerm]]
) -> None:
    rules = {compile_node_rule(requiring(*(required.node_selector_terms or ()), a="x")) for _ in range(2)}
    preferences = {compile_node_preferences(preferring(*preferred)) for _ in range(2)}
    assert len(rules) == len(preferences) == 1


@given(node_selectors, labels)
def test_names_leave_out_no_node_that_matches(required: NodeSelector, asked: Labels) -> None:
    rule = compile_node_selector(required)
    matching = {name for name in NAMES if rule.matches(name, asked)}
    assert rule.names is None or matching <= rule.names
