"""Which nodes Karpenter is about to remove."""

from typing import Any

import pytest

from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import view_snapshot
from reberth.values.timestamp import write_time
from rescheduler.budgets.consolidation import find_emptying
from rescheduler.observe.rule_context import RuleContext
from tests.support import builders
from tests.support.rescheduler.karpenter import node_claim, node_of_pool, node_pool
from tests.support.rescheduler.plans import NOW, VERSION, Object, replica

KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def emptying(*objects: Object) -> list[str]:
    reading = load_objects(list(objects), now=NOW, version=VERSION)
    assert not reading.faults
    found = find_emptying(
        view_snapshot(SnapshotFacts(reading.snapshot, VERSION)), RuleContext(reading.snapshot)
    )
    names = reading.snapshot.nodes.names
    return [name for name, goes in zip(names, found.tolist(), strict=True) if goes]


def serving(cpu: str = "1", **fields: Any) -> list[Object]:
    """A node of 8 cpus with a replica, and its NodeClaim."""
    return [node_of_pool("n1", cpu="8"), node_claim("n1"), replica("web-1", "web", "n1", cpu=cpu, **fields)]


def claim_with(transition: str | None, pod_event: str | None) -> Object:
    """The NodeClaim of n1 with these times."""
    claim = node_claim("n1")
    for condition in claim["status"]["conditions"]:
        condition["lastTransitionTime"] = transition
    claim["status"]["lastPodEventTime"] = pod_event
    return claim


def kept_for(duration: str) -> Object:
    return {"karpenter.sh/do-not-disrupt": duration}


def started(pod: Object, seconds: float) -> Object:
    """A pod that started this many seconds ago."""
    return {**pod, "status": {**pod["status"], "startTime": write_time(NOW - seconds)}}


def daemon(node: str) -> Object:
    owner = builders.owner("DaemonSet", "agent")
    return builders.pod("agent-1", node=node, owned_by=owner, cpu="100m")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([*serving("1"), node_pool()], True),
        ([*serving("3900m"), node_pool()], True),
        ([*serving("4"), node_pool()], False),
        ([*serving("1"), node_pool(policy="Balanced")], True),
        ([*serving("1"), node_pool(policy="WhenEmpty")], False),
        ([*serving("1"), node_pool(replicas=2)], False),
        ([*serving("1"), node_pool("another")], False),
        (serving("1"), False),
        ([*serving("1", annotations=KEEP), node_pool()], False),
        ([node_of_pool("n1", annotations=KEEP), node_claim("n1"), node_pool()], False),
        ([node_of_pool("n1"), node_claim("n1"), daemon("n1"), node_pool(policy="WhenEmpty")], True),
        ([node_of_pool("n1"), node_claim("n1", consolidatable=False), node_pool()], False),
        ([node_of_pool("n1"), node_pool()], False),
        ([node_of_pool("n1"), node_claim("gone"), node_pool()], False),
    ],
)
def test_a_node_goes_if_it_may_and_if_little_runs_on_it(objects: list[Object], *, expected: bool) -> None:
    assert emptying(*objects) == (["n1"] if expected else [])


def test_each_node_is_judged_by_its_own_claim() -> None:
    nodes = [node_of_pool(name, cpu="8") for name in "abc"]
    claims = [node_claim("a"), node_claim("b", consolidatable=False), node_claim("c")]
    assert emptying(*nodes, *claims, node_pool(), replica("web-1", "web", "c", cpu="7")) == ["a"]


LATE, LONG_AGO = write_time(NOW - 14 * 60), write_time(NOW - 16 * 60)


@pytest.mark.parametrize(
    ("transition", "pod_event", "expected"),
    [
        (LATE, LONG_AGO, True),
        (LONG_AGO, LATE, True),
        (LONG_AGO, LONG_AGO, False),
        (None, LATE, True),
        (LATE, None, True),
        (None, None, False),
        ("yesterday", "", False),
        (write_time(NOW + 60), LONG_AGO, True),
        (write_time(NOW + 86_400), write_time(NOW + 86_400), False),
    ],
)
def test_a_node_that_stayed_for_long_after_the_last_change_does_not_go(
    transition: str | None, pod_event: str | None, *, expected: bool
) -> None:
    found = emptying(node_of_pool("n1", cpu="8"), claim_with(transition, pod_event), node_pool())
    assert found == (["n1"] if expected else [])


@pytest.mark.parametrize(
    ("duration", "age", "expected"),
    [("4h", 3600, False), ("1h", 3600.5, True), ("30m", 7200, True), ("soon", 60, True)],
)
def test_a_pod_keeps_its_node_for_a_while(duration: str, age: float, *, expected: bool) -> None:
    pod = started(replica("web-1", "web", "n1", annotations=kept_for(duration)), age)
    found = emptying(node_of_pool("n1", cpu="8"), node_claim("n1"), node_pool(), pod)
    assert found == (["n1"] if expected else [])


def test_on_a_node_a_duration_means_nothing() -> None:
    node = node_of_pool("n1", annotations=kept_for("4h"))
    assert emptying(node, node_claim("n1"), node_pool()) == ["n1"]


NONE = {"nodes": "0"}
AT_NIGHT = {"nodes": "0", "schedule": "0 22 * * *", "duration": "8h"}


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (NONE, []),
        (AT_NIGHT, ["empty", "little"]),
        ({**NONE, "reasons": ["Underutilized"]}, ["empty"]),
        ({**NONE, "reasons": ["Empty"]}, ["little"]),
        ({**NONE, "reasons": ["Drifted"]}, ["empty", "little"]),
    ],
)
def test_no_node_goes_while_a_budget_allows_none(budget: Object, expected: list[str]) -> None:
    nodes = [node_of_pool(name, cpu="8") for name in ("empty", "little")]
    claims = [node_claim(name) for name in ("empty", "little")]
    served = replica("web-1", "web", "little", cpu="1")
    assert emptying(*nodes, *claims, served, node_pool(budgets=[budget])) == expected


def test_each_pool_has_its_own_budget() -> None:
    nodes = [node_of_pool("a"), node_of_pool("b", "other")]
    claims = [node_claim("a"), node_claim("b", "other")]
    assert emptying(*nodes, *claims, node_pool(budgets=[NONE]), node_pool("other")) == ["b"]
