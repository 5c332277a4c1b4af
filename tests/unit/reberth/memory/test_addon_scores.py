"""Add-on scores: which count, with which weight, and their sum."""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.config.settings import parse
from reberth.memory.addon_scores import (
    BAD_VALIDITY,
    EXPIRED,
    FORBIDDEN_CHOICE,
    LONG_CHOICE,
    MISSING,
    NOT_A_NUMBER,
    OUT_OF_RANGE,
    REPEATED_CHOICE,
    UNKNOWN_CHOICE,
    UNREADABLE_CHOICE,
    VALID_FOR_TOO_LONG,
    ScoreSettings,
    ScoreTable,
    ValidScore,
    WeightChoice,
    WeightedScore,
    choose_weights,
    read_score,
)
from reberth.records import NodePlacementScore, PlacementScore
from reberth.values.duration import PositiveDuration
from reberth.values.errors import SettingsError
from reberth.values.refusal import Refused
from tests.support.memory.objects import NOW, score

CPU, GREEN = ("load", "cpu"), ("power", "green")
SETTINGS = ScoreSettings(
    (WeightedScore("load", "cpu", weight=2, least=0, most=5), WeightedScore("power", "green", weight=-1))
)


def board(*scores: NodePlacementScore, settings: ScoreSettings = SETTINGS, nodes: int = 3) -> ScoreTable:
    made = ScoreTable(settings)
    for row in range(nodes):
        made.seat(f"n{row}", row)
    for one in scores:
        made.put(one)
    return made


def worth(made: ScoreTable, weights: dict[Any, int], *rows: int, now: float = NOW) -> list[float]:
    found: list[float] = made.combine(weights, np.array(rows), now).tolist()
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, ValidScore(math.inf, 0.0)),
        (-100, ValidScore(math.inf, -100.0)),
        (100, ValidScore(math.inf, 100.0)),
        (12.5, ValidScore(math.inf, 12.5)),
        (101, OUT_OF_RANGE),
        (-100.5, OUT_OF_RANGE),
        (1e300, OUT_OF_RANGE),
        (math.nan, OUT_OF_RANGE),
        ("88", NOT_A_NUMBER),
        (True, NOT_A_NUMBER),
        (None, NOT_A_NUMBER),
        ([88], NOT_A_NUMBER),
        ({"value": 88}, NOT_A_NUMBER),
    ],
)
def test_a_score_is_a_number_from_minus_100_to_100(value: object, expected: object) -> None:
    assert read_score(PlacementScore("cpu", value), None) == expected


@pytest.mark.parametrize(
    ("valid_until", "expected"),
    [
        (None, ValidScore(math.inf, 5.0)),
        ("2026-11-18T12:00:00Z", ValidScore(NOW, 5.0)),
        ("tomorrow", BAD_VALIDITY),
        ("", BAD_VALIDITY),
    ],
)
def test_a_score_is_valid_until_a_moment_or_for_ever(valid_until: str | None, expected: object) -> None:
    assert read_score(PlacementScore("cpu", 5), valid_until) == expected


def test_missing_and_expired_scores_are_0_and_still_weigh() -> None:
    made = board(
        score("n0", cpu=90), score("n0", "power", green=-30), score("n1", cpu=90, valid_until=NOW), nodes=4
    )

    assert worth(made, {CPU: 2, GREEN: -1}, 0, 1, 2) == [(180 + 30) / 3, 0.0, 0.0]
    assert worth(made, {CPU: 2, GREEN: -1}, 1, now=NOW - 1) == [60.0]


@pytest.mark.parametrize(
    ("weights", "order"),
    [({CPU: 1}, ["n0", "n1", "n2"]), ({CPU: -1}, ["n2", "n1", "n0"]), ({CPU: 10}, ["n0", "n1", "n2"])],
)
def test_a_negative_weight_prefers_the_last(weights: dict[Any, int], order: list[str]) -> None:
    made = board(score("n0", cpu=88), score("n1", cpu=66), score("n2", cpu=-20))
    found = dict(zip(("n0", "n1", "n2"), worth(made, weights, 0, 1, 2), strict=True))

    assert sorted(found, key=lambda node: -found[node]) == order


def test_without_weights_every_node_is_worth_the_same() -> None:
    made = board(score("n0", cpu=88))

    assert worth(made, {}, 0, 1) == worth(made, {CPU: 0}, 0, 1) == [0.0, 0.0]
    assert worth(board(score("n0", cpu=88), settings=ScoreSettings()), {CPU: 1}, 0) == [0.0]


def test_nodes_without_a_row_are_worth_zero() -> None:
    made = board(*(score(f"n{row}", cpu=100) for row in range(40)), nodes=40)

    assert worth(made, {CPU: 1}, -1, 39, 0) == [0.0, 100.0, 100.0]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_objects_of_one_source_the_one_valid_for_longer_counts(order: int) -> None:
    brief = score("n0", name="a", cpu=10, valid_until=NOW + 60)
    lasting = score("n0", name="b", cpu=20, valid_until=NOW + 120)
    bad = score("n0", name="c", cpu=999)
    made = board(*[brief, lasting, bad][::order])

    assert worth(made, {CPU: 1}, 0) == [20.0]
    made.drop("b")
    assert worth(made, {CPU: 1}, 0) == [10.0]
    made.drop("a")
    made.drop("a")
    assert worth(made, {CPU: 1}, 0) == [0.0]


def test_an_object_may_move_to_another_node() -> None:
    made = board(score("n0", name="a", cpu=10))
    made.put(score("n1", name="a", cpu=20))

    assert worth(made, {CPU: 1}, 0, 1) == [0.0, 20.0]


def test_scores_wait_for_their_node() -> None:
    made = board(score("late", cpu=70), nodes=1)
    made.seat("late", 1)
    assert worth(made, {CPU: 1}, 0, 1) == [0.0, 70.0]

    made.unseat("late")
    made.seat("other", 1)
    assert worth(made, {CPU: 1}, 1) == [0.0]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (score("n0", cpu=7), 7.0),
        (score("n0", cpu=7, valid_until=NOW), EXPIRED),
        (score("n0", cpu=700), OUT_OF_RANGE),
        (score("n0", cpu="7"), NOT_A_NUMBER),
        (score("n0", memory=7), MISSING),
        (score("n0", "other", cpu=7), MISSING),
        (score("n1", cpu=7), MISSING),
    ],
)
def test_a_score_that_does_not_count_is_explained(found: NodePlacementScore, expected: object) -> None:
    assert board(found).explain("n0", NOW) == {CPU: expected, GREEN: MISSING}


def test_a_score_counts_only_if_it_ends_within_the_longest_validity() -> None:
    settings = msgspec.structs.replace(SETTINGS, longest_validity=PositiveDuration(100))
    ends = {"n0": None, "n1": NOW + 101, "n2": NOW + 100}
    made = board(*(score(node, valid_until=end, cpu=50) for node, end in ends.items()), settings=settings)
    assert worth(made, {CPU: 1}, 0, 1, 2) == [0, 0, 50]
    assert [made.explain(node, NOW)[CPU] for node in ends] == [VALID_FOR_TOO_LONG, VALID_FOR_TOO_LONG, 50]
    grades = made.grade({CPU: 1}, NOW)[:3].tolist()
    assert grades == [5, 5, 8]
    assert made.grade({CPU: 1}, NOW + 1)[:3].tolist() == [5, 8, 8]
    assert made.grade({CPU: 1}, NOW + 100)[:3].tolist() == [5, 8, 5]


def test_the_next_expiry_is_the_first_to_come() -> None:
    made = board(
        score("n0", cpu=1, valid_until=NOW + 60), score("n1", cpu=2, valid_until=NOW + 30), score("n2", cpu=3)
    )

    assert made.next_expiry(NOW) == NOW + 30
    assert made.next_expiry(NOW + 30) == NOW + 60
    assert made.next_expiry(NOW + 60) is None
    assert ScoreTable(ScoreSettings()).next_expiry(NOW) is None


@pytest.mark.parametrize(
    ("annotation", "weights"),
    [
        (None, {CPU: 2, GREEN: -1}),
        ("", {CPU: 2, GREEN: -1}),
        ("load/cpu=5", {CPU: 5, GREEN: -1}),
        (" load/cpu=0 , power/green=-1 ", {CPU: 0, GREEN: -1}),
        ("load/cpu=1".ljust(1024), {CPU: 1, GREEN: -1}),
    ],
)
def test_a_pod_may_choose_within_bounds(annotation: str | None, weights: dict[Any, int]) -> None:
    assert choose_weights(annotation, SETTINGS) == WeightChoice(weights)


@pytest.mark.parametrize(
    ("annotation", "refused"),
    [
        ("load/cpu=6", FORBIDDEN_CHOICE),
        ("load/cpu=-1", FORBIDDEN_CHOICE),
        ("load/cpu=3,power/green=1", FORBIDDEN_CHOICE),
        ("load/memory=1", UNKNOWN_CHOICE),
        ("load/cpu=3,load/cpu=3", REPEATED_CHOICE),
        ("load/cpu", UNREADABLE_CHOICE),
        ("load/cpu=", UNREADABLE_CHOICE),
        ("cpu=3", UNREADABLE_CHOICE),
        ("load/cpu=3.5", UNREADABLE_CHOICE),
        ("load/cpu=3;", UNREADABLE_CHOICE),
        ("load/cpu=3,", UNREADABLE_CHOICE),
        ("load/cpu=" + "9" * 1000, UNREADABLE_CHOICE),
        ("load/cpu=1".ljust(1025), LONG_CHOICE),
        (" ", UNREADABLE_CHOICE),
    ],
)
def test_a_bad_choice_is_refused_and_the_defaults_hold(annotation: str, refused: Refused) -> None:
    assert choose_weights(annotation, SETTINGS) == WeightChoice({CPU: 2, GREEN: -1}, refused)


def test_settings_are_read_from_yaml() -> None:
    content = b"""
        apiVersion: reberth.dev/v1alpha1
        kind: ScoreSettings
        scores:
        - {source: load, name: cpu, weight: 2, least: 0, most: 5}
        - {source: power, name: green, weight: -1}
    """
    assert parse(content, ScoreSettings) == SETTINGS


def test_a_score_weighs_1_unless_said_otherwise() -> None:
    assert choose_weights(None, ScoreSettings((WeightedScore("load", "cpu"),))) == WeightChoice({CPU: 1})


@pytest.mark.parametrize(
    ("scores", "complaint"),
    [
        ("[{source: a, name: b, weight: 11}]", r"scores\[0\]\.weight.*at most 10.*11"),
        ("[{source: a, name: b, weight: -11}]", r"scores\[0\]\.weight.*at least -10"),
        ("[{source: a, name: b, weigth: 3}]", r"scores\[0\]\.weigth.*did you mean weight"),
        ("[{source: a}]", r"scores\[0\]\.name.*is missing"),
        ("[{source: a, name: b, weight: 3, most: 2}]", "weight must lie between least and most"),
        ("[{source: a, name: b, weight: 3, least: 4}]", "weight must lie between least and most"),
        ("[{source: a, name: b}, {source: a, name: b}]", "must not name the same source and name twice"),
    ],
)
def test_bad_settings_are_refused_with_their_place(scores: str, complaint: str) -> None:
    content = f"apiVersion: reberth.dev/v1alpha1\nkind: ScoreSettings\nscores: {scores}\n".encode()

    with pytest.raises(SettingsError, match=complaint):
        parse(content, ScoreSettings)


values = st.integers(-150, 150) | st.floats(-150, 150) | st.text(max_size=2) | st.none() | st.booleans()
scored = st.builds(
    lambda name, node, source, until, found: score(
        node, source, name=name, valid_until=None if until is None else NOW + until, **found
    ),
    st.sampled_from("abcdef"),
    st.sampled_from(["n0", "n1", "n2", "elsewhere"]),
    st.sampled_from(["load", "power", "other"]),
    st.none() | st.integers(-2, 2),
    st.dictionaries(st.sampled_from(["cpu", "green"]), values, max_size=2),
)
objects = st.lists(scored, max_size=8)
weights = st.fixed_dictionaries({CPU: st.integers(-10, 10), GREEN: st.integers(-10, 10)})


@given(objects=objects, weights=weights)
def test_no_worth_is_out_of_range(objects: list[NodePlacementScore], weights: dict[Any, int]) -> None:
    assert all(-100 <= found <= 100 for found in worth(board(*objects), weights, 0, 1, 2, -1))


@given(objects=objects, weights=weights, data=st.data())
def test_the_order_of_the_objects_does_not_matter(
    objects: list[NodePlacementScore], weights: dict[Any, int], data: st.DataObject
) -> None:
    last = {one.metadata.name: one for one in objects}
    shuffled = data.draw(st.permutations(list(last.values())))
    other = ScoreTable(SETTINGS)
    for one in shuffled:
        other.put(one)
    for row, node in enumerate(["n2", "n0", "n1"]):
        other.seat(node, row)

    assert worth(board(*objects), weights, 0, 1, 2) == worth(other, weights, 1, 2, 0)
    assert board(*objects).explain("n0", NOW) == other.explain("n0", NOW)


@given(objects=objects, weights=weights)
def test_the_worth_is_the_weighted_sum_of_the_explained_scores(
    objects: list[NodePlacementScore], weights: dict[Any, int]
) -> None:
    made = board(*objects)
    said = {key: 0.0 if isinstance(one, Refused) else one for key, one in made.explain("n1", NOW).items()}
    total = sum(map(abs, weights.values()))

    expected = sum(weights[key] * value for key, value in said.items()) / total if total else 0.0
    assert worth(made, weights, 1) == pytest.approx([expected])


happenings = (
    st.builds(lambda one: lambda made: made.put(one), scored)
    | st.builds(lambda name: lambda made: made.drop(name), st.sampled_from("abcdef"))
    | st.builds(lambda row: lambda made: (made.unseat(f"n{row}"), made.seat("n9", row)), st.integers(0, 2))
    | st.builds(lambda row: lambda made: made.seat(f"n{row}", row), st.integers(0, 40))
)


@given(
    steps=st.lists(st.tuples(happenings, st.sampled_from([-2.0, 0.0, 1.0, 2.5])), max_size=9),
    weights=weights,
    longest=st.sampled_from([None, PositiveDuration(1.5)]),
)
def test_grades_count_only_scores_known_and_valid_at_that_time(
    steps: list[tuple[Callable[[ScoreTable], object], float]],
    weights: dict[Any, int],
    longest: PositiveDuration | None,
) -> None:
    made = board(settings=msgspec.structs.replace(SETTINGS, longest_validity=longest))
    for change, later in steps:
        with suppress(KeyError):  # a node that has no row any more cannot lose it
            change(made)
        assert made.grade(weights, NOW + later).tolist() == grade_plainly(made, weights, NOW + later)


def grade_plainly(made: ScoreTable, weights: dict[Any, int], now: float) -> list[int]:
    rows = range(len(made._values))
    return [math.floor((100 + each) / 20 + 0.5) for each in worth(made, weights, *rows, now=now)]


def test_grades_are_kept_for_a_few_choices_of_weights() -> None:
    made = board(score("n0", cpu=90), score("n1", "power", green=-30))
    for weight in range(-10, 11):
        chosen = {CPU: weight, GREEN: 3}
        assert made.grade(chosen, NOW).tolist() == grade_plainly(made, chosen, NOW)
    assert len(made._graded) <= 16


def test_a_score_with_a_malformed_value_is_read_as_not_a_number() -> None:
    text = b'{"metadata":{"name":"a"},"status":{"scores":[{"name":"cpu","value":{"of":["what"]}}]}}'

    (found,) = msgspec.json.decode(text, type=NodePlacementScore).status.scores or ()

    assert read_score(found, None) == NOT_A_NUMBER
