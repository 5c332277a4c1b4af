"""Every place is in one group, and groups stand in the order of their codes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.columns import group_codes


@given(st.lists(st.integers(0, 5)))
def test_groups_hold_the_places_of_their_code_in_order(codes: list[int]) -> None:
    found = {code: places.tolist() for code, places in group_codes(np.array(codes, np.int32))}
    assert found == {
        code: [place for place, each in enumerate(codes) if each == code] for code in sorted(set(codes))
    }
    assert list(found) == sorted(found)
