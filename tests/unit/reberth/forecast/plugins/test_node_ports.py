"""NodePorts: host ports requested and in use."""

from typing import Any

import pytest

from reberth.forecast.plugins.node_ports import filter_node_ports
from tests.support.builders import container, node, pod
from tests.support.forecast.worlds import asking, place_of, refused, world

TAKEN = ["node(s) didn't have free ports for the requested pod ports"]


def holding(name: str, port: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return pod(name, containers=[container(ports=[port])], **fields)


@pytest.mark.parametrize(
    ("wanted", "taken", "collides"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "protocol": "TCP"}, {"hostPort": 80}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, True),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"containerPort": 80}, {"containerPort": 80}, False),
    ],
)
def test_two_pods_collide_on_a_port(wanted: dict[str, Any], taken: dict[str, Any], *, collides: bool) -> None:
    view = world(node("a"), node("b"), holding("old", taken, node="a"), holding("asking", wanted))
    assert refused(view, filter_node_ports(asking(view), view)) == ({"a": TAKEN} if collides else {})


def test_sidecars_hold_ports_and_mere_init_containers_do_not() -> None:
    port = [{"hostPort": 80}]
    sidecar = pod("sidecar", node="a", initContainers=[container("s", ports=port, restartPolicy="Always")])
    initial = pod("initial", node="b", initContainers=[container("i", ports=port)])
    view = world(node("a"), node("b"), sidecar, initial, holding("asking", port[0]))
    assert refused(view, filter_node_ports(asking(view), view)) == {"a": TAKEN}


def test_the_port_of_a_pod_that_is_gone_is_free() -> None:
    view = world(node("a"), holding("old", {"hostPort": 80}, node="a"), holding("asking", {"hostPort": 80}))
    after = view.without(place_of(view, "old"))
    assert filter_node_ports(asking(after), after) == ()


def test_a_terminating_pod_still_holds_its_port() -> None:
    view = world(node("a"), holding("old", {"hostPort": 80}, node="a"), holding("asking", {"hostPort": 80}))
    after = view.with_terminating(place_of(view, "old"))
    assert refused(after, filter_node_ports(asking(after), after)) == {"a": TAKEN}
