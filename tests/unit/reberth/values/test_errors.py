"""Exception groups of tasks are unwrapped to their cause."""

import pytest

from reberth.values.errors import ConfigurationError, ServingError, taken_apart

NAMED = ServingError("cannot listen")


def test_a_single_named_error_is_raised_unchanged() -> None:
    with pytest.raises(ServingError, match="cannot listen"), taken_apart():
        raise NAMED


def test_of_faults_that_come_together_the_first_is_raised_alone() -> None:
    several = ExceptionGroup("a", [ExceptionGroup("b", [NAMED]), ConfigurationError("later")])
    with pytest.raises(ServingError) as raised, taken_apart():
        raise several
    assert raised.value is NAMED
    assert raised.value.__cause__ is several


@pytest.mark.parametrize("others", [[ZeroDivisionError()], [NAMED, ZeroDivisionError()]])
def test_a_fault_without_a_name_is_raised_with_all_that_came(others: list[Exception]) -> None:
    several = ExceptionGroup("a", others)
    with pytest.raises(ExceptionGroup) as raised, taken_apart():
        raise several
    assert raised.value is several
