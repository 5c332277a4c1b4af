"""Which tolerations cover which taints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.records import Taint, Toleration
from reberth.selectors import count_unpreferred, find_untolerated, tolerates

EFFECTS = ["NoSchedule", "NoExecute", "PreferNoSchedule"]
TAINT = Taint("a", "NoSchedule", "x")

taints = st.lists(
    st.builds(Taint, st.sampled_from("ab"), st.sampled_from(EFFECTS), st.sampled_from([None, "", "x"])),
    max_size=4,
).map(tuple)
tolerations = st.lists(
    st.builds(
        Toleration,
        key=st.sampled_from([None, "", "a", "b"]),
        operator=st.sampled_from([None, "", "Equal", "Exists", "Lt", "Gt", "Is"]),
        value=st.sampled_from([None, "", "x"]),
        effect=st.sampled_from([None, "", *EFFECTS]),
    ),
    max_size=3,
).map(tuple)


def defined(toleration: Toleration, taint: Taint) -> bool:
    same_value = (toleration.value or "") == (taint.value or "")
    by_operator = {"Exists": True, "Equal": same_value, "Lt": False, "Gt": False, "Is": False}
    return (
        (toleration.effect or taint.effect) == taint.effect
        and (toleration.key or taint.key) == taint.key
        and by_operator[toleration.operator or "Equal"]
    )


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration(key="a", operator="Equal", value="x", effect="NoSchedule"), True),
        (Toleration(key="a", value="x"), True),
        (Toleration(key="a", operator="", value="x", effect=""), True),
        (Toleration(key="a", operator="Equal", value="y"), False),
        (Toleration(key="a"), False),
        (Toleration(key="b", value="x"), False),
        (Toleration(key="a", value="x", effect="NoExecute"), False),
        (Toleration(key="a", operator="Exists"), True),
        (Toleration(key="b", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(key="", operator="Exists", effect="NoSchedule"), True),
        (Toleration(operator="Exists", effect="PreferNoSchedule"), False),
        (Toleration(value="x"), True),
        (Toleration(key="a", operator="Is", value="x"), False),
    ],
)
def test_a_toleration_covers_by_effect_key_and_value(toleration: Toleration, *, covered: bool) -> None:
    assert tolerates((toleration,), TAINT) is covered


@pytest.mark.parametrize("operator", ["Lt", "Gt"])
@pytest.mark.parametrize("value", ["4", "5", "6"])
def test_comparing_operators_cover_nothing(operator: str, value: str) -> None:
    assert not tolerates(
        (Toleration(key="a", operator=operator, value=value),), Taint("a", "NoSchedule", "5")
    )


def test_a_taint_without_value_equals_a_toleration_without_value() -> None:
    assert tolerates((Toleration(key="a"),), Taint("a", "NoSchedule", None))
    assert tolerates((Toleration(key="a", value=""),), Taint("a", "NoSchedule", None))


def test_the_first_taint_that_keeps_the_pod_away_is_found() -> None:
    soft, hard, evicting = (Taint(key, effect) for key, effect in zip("cab", reversed(EFFECTS), strict=True))
    assert find_untolerated((soft, hard, evicting), None) == hard
    assert find_untolerated((soft, hard, evicting), (Toleration(key="a", operator="Exists"),)) == evicting
    assert find_untolerated((soft,), None) is None
    assert find_untolerated(None, None) is None


def test_untolerated_soft_taints_are_counted() -> None:
    soft = tuple(Taint(key, "PreferNoSchedule") for key in "abc")
    assert count_unpreferred((*soft, TAINT), None) == 3
    assert count_unpreferred(soft, (Toleration(key="a", operator="Exists"),)) == 2
    assert count_unpreferred(soft, (Toleration(operator="Exists", effect="NoSchedule"),)) == 3
    assert count_unpreferred(soft, (Toleration(operator="Exists", effect="PreferNoSchedule"),)) == 0
    assert count_unpreferred(None, None) == 0


@given(taints, tolerations)
def test_found_and_counted_taints_agree_with_the_definition(
    given_taints: tuple[Taint, ...], given_tolerations: tuple[Toleration, ...]
) -> None:
    left = [taint for taint in given_taints if not any(defined(each, taint) for each in given_tolerations)]
    hard = [taint for taint in left if taint.effect != "PreferNoSchedule"]
    assert find_untolerated(given_taints, given_tolerations) == (hard[0] if hard else None)
    assert count_unpreferred(given_taints, given_tolerations) == len(left) - len(hard)
