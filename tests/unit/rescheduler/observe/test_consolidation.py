"""Which nodes Karpenter is about to remove."""

from typing import Any

import pytest

from reberth.cluster.object_files import load_objects
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.view import view_snapshot
from rescheduler.observe.consolidation import find_emptying
from tests.support import builders
from tests.support.rescheduler.karpenter import node_claim, node_of_pool, node_pool
from tests.support.rescheduler.plans import NOW, VERSION, Object, replica

KEEP = {"karpenter.sh/do-not-disrupt": "true"}


def emptying(*objects: Object) -> list[str]:
    reading = load_objects(list(objects), now=NOW, version=VERSION)
    assert not reading.faults
    found = find_emptying(view_snapshot(SnapshotFacts(reading.snapshot, VERSION)))
    names = reading.snapshot.nodes.names
    return [name for name, goes in zip(names, found.tolist(), strict=True) if goes]


def serving(cpu: str = "1", **fields: Any) -> list[Object]:
    """A node of 8 cpus with a replica, and its NodeClaim."""
    return [node_of_pool("n1", cpu="8"), node_claim("n1"), replica("web-1", "web", "n1", cpu=cpu, **fields)]


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
