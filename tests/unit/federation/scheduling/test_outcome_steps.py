from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from federation.api import ResourceBinding
from federation.scheduling import Fleet, decide
from federation.scheduling.outcome import Step
from tests.support.federation.clusters import DUPLICATED, binding, cluster, groups
from tests.support.federation.objects import NOW

CLUSTERS = [cluster("c1", taints=["k=v:NoSchedule"]), cluster("c2")]
ONE = ["Filter", "Score", "Select", "AssignReplicas"]
SECOND_OF_TWO = {**DUPLICATED, **groups(a1=["c1"], a2=["c2"])}


@pytest.mark.parametrize(
    ("one", "taken"),
    [
        (binding(1, DUPLICATED), ONE),
        (binding(1, SECOND_OF_TWO), ["Filter", "Score", *ONE]),
        (binding(1, {**DUPLICATED, **groups(a1=["c1"])}), ["Filter", "Score"]),
        (binding(1, DUPLICATED, suspension={"scheduling": True}), []),
    ],
)
def test_each_step_is_timed_as_often_as_it_is_taken(one: ResourceBinding, taken: list[str]) -> None:
    seen: list[str] = []

    @contextmanager
    def note(step: Step) -> Iterator[None]:
        yield
        seen.append(step)

    timed = decide(one, Fleet(CLUSTERS), now=NOW, timed=note)
    assert seen == taken
    assert timed == decide(one, Fleet(CLUSTERS), now=NOW)
