"""Nodes whose kubelets have rejected pods: the forecast cannot see it, since kube-scheduler does not either.

A kubelet admits a pod once more by itself: by NUMA nodes, devices, sysctls, pressure. It leaves one that it
rejects Failed on its node, with neither conditions nor containers, and the controller creates the next one.
As long as the pod is there and is young, its node is no destination for such pods: of the namespace, and with
the same requests, since these decide about NUMA nodes and devices.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from reberth.cluster.columns import Indices
from reberth.cluster.rows import PHASES, PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import Template

KEPT_FOR = 3600.0
"""Seconds after the creation of a rejected pod in which its node is no destination for its like."""
_NAMED = 5
_FAILED = PHASES.index("Failed")
Shape = tuple[str, bytes, tuple[tuple[str, int], ...]]
Rejections = Mapping[Shape, Indices]


def find_rejections(snapshot: Snapshot) -> Rejections:
    """Find the nodes by the shape of the pods that they have rejected."""
    pods = snapshot.pods
    found = defaultdict[Shape, set[int]](set)
    for place in np.flatnonzero((pods.phase == _FAILED) & (pods.node >= 0)).tolist():
        row = pods.rows[place]
        if is_rejected(row) and row.created > snapshot.now - KEPT_FOR:
            found[shape_of(row.template)].add(int(pods.node[place]))
    return {shape: np.array(sorted(nodes), np.int32) for shape, nodes in found.items()}


def list_rejecting(rejections: Rejections, names: Sequence[str]) -> Iterator[str]:
    """Warn of these nodes: other pods may be rejected there, too."""
    nodes = sorted({names[node] for found in rejections.values() for node in found.tolist()})
    if nodes:
        more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
        yield f"MayBeRejected: kubelets rejected pods in the last hour on {', '.join(nodes[:_NAMED])}{more}"


def is_rejected(row: PodRow) -> bool:
    """Tell whether a Failed pod never began: one that did has a condition Ready."""
    return row.phase == "Failed" and row.node is not None and row.ready_changed is None


def shape_of(template: Template) -> Shape:
    return template.namespace, template.main, tuple(sorted(template.extended.items()))
