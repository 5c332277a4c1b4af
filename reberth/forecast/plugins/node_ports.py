"""NodePorts: a node is refused if a pod on it has a host port that the incoming pod needs.

kube-scheduler: `pkg/scheduler/framework/plugins/nodeports/node_ports.go`: `(*NodePorts).Filter`, `fitsPorts`;
`pkg/scheduler/util/utils.go`: `GetHostPorts`; `k8s.io/kube-scheduler/framework/types.go`:
`(HostPortInfo).CheckConflict`
"""

from typing import NamedTuple

import numpy as np

from reberth.cluster.templates import Template
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, refuse
from reberth.forecast.state.view import View
from reberth.records import PodSpec

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - it is what the objects say, nothing is bound here


class HostPort(NamedTuple):
    address: str
    protocol: str
    number: int


def filter_node_ports(incoming: IncomingPod, view: View) -> FilterVerdict:
    wanted = find_host_ports(incoming.template.spec)
    if not wanted:
        return FITS
    facts, templates = view.facts, view.facts.snapshot.templates.all
    holders = facts.templates_where(_has_host_ports)
    rivals = [place for place in holders if _collide(wanted, find_host_ports(templates[place].spec))]
    taken = view.node[view.counted_among(facts.pods_of(rivals))]
    nodes = np.zeros(facts.size, np.bool_)
    nodes[taken] = True
    return refuse("node(s) didn't have free ports for the requested pod ports", nodes)


def find_host_ports(spec: PodSpec) -> frozenset[HostPort]:
    """Give the host ports of a pod's containers and sidecars; other init containers do not count."""
    sidecars = [each for each in spec.init_containers or () if each.restart_policy == "Always"]
    return frozenset(
        HostPort(port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*sidecars, *(spec.containers or ()))
        for port in container.ports or ()
        if port.host_port and port.host_port > 0
    )


def _has_host_ports(template: Template) -> bool:
    return bool(find_host_ports(template.spec))


def _collide(wanted: frozenset[HostPort], taken: frozenset[HostPort]) -> bool:
    return any(
        mine.number == theirs.number
        and mine.protocol == theirs.protocol
        and (mine.address == theirs.address or _ANY_ADDRESS in {mine.address, theirs.address})
        for mine in wanted
        for theirs in taken
    )
