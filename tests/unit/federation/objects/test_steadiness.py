"""What holds for a moment only does not count."""

import math

from federation.objects.names import Key
from federation.objects.steadiness import Steadiness

WEB, DB = (Key("work.karmada.io/v1alpha2", "ResourceBinding", "default", name) for name in ("web", "db"))


def test_it_has_to_hold_without_a_break() -> None:
    steady = Steadiness()
    seen = [(True, 100), (True, 102), (False, 102.5), (True, 103), (True, 105), (True, 106)]
    lacking = [steady.observe(WEB, holds=holds, least=3, now=now) for holds, now in seen]
    assert lacking == [3, 1, math.inf, 3, 1, 0]


def test_each_workload_has_a_time_of_its_own_and_one_that_is_forgotten_begins_anew() -> None:
    steady = Steadiness()
    steady.observe(WEB, holds=True, least=3, now=100)
    assert steady.observe(DB, holds=True, least=3, now=103) == 3
    steady.forget(WEB)
    assert steady.observe(WEB, holds=True, least=3, now=103) == 3


def test_a_clock_that_is_set_back_makes_it_no_longer_than_asked_for() -> None:
    steady = Steadiness()
    steady.observe(WEB, holds=True, least=3, now=100)
    assert steady.observe(WEB, holds=True, least=3, now=40) == 3
    assert steady.observe(WEB, holds=True, least=3, now=43) == 0
