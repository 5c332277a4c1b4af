"""Every kind that must be cached is one that is cached."""

import pytest

from reberth.cluster.kinds import ALL_RESOURCES
from rescheduler.observe.needed_kinds import FOR_A_MOVE, FOR_A_PLAN, FOR_THE_DAEMON


@pytest.mark.parametrize("needed", [FOR_A_PLAN, FOR_A_MOVE, FOR_THE_DAEMON])
def test_every_needed_kind_is_cached(needed: tuple[str, ...]) -> None:
    assert set(needed) <= {resource.name for resource in ALL_RESOURCES}
