"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach.

kube-scheduler: `pkg/scheduler/framework/plugins/nodevolumelimits/csi.go`: `(*CSILimits).Filter`,
`(*CSILimits).checkCSIDriverOnNode`, `getVolumeLimits`
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from reberth.cluster.columns import Bools, Ints, seal
from reberth.cluster.kinds import CSI_DRIVER, CSI_NODE
from reberth.cluster.pods.requests import Version
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, Refusal, refuse
from reberth.forecast.state.view import View
from reberth.forecast.volumes.attachments import (
    Attachable,
    counts_migrated,
    find_volume_usage,
    list_attachables,
)
from reberth.forecast.volumes.claims import list_claims
from reberth.records import CSINodeDriver

# Feature gate VolumeLimitScaling: off in 1.36, on in 1.37. A CSIDriver with
# preventPodSchedulingIfMissing keeps pods off nodes where it is not installed.
_REQUIRES_DRIVER: Version = (1, 37)
_NO_LIMIT = 2**31
_TOO_MANY = "node(s) exceed max volume count"


def filter_node_volume_limits(incoming: IncomingPod, view: View) -> FilterVerdict:
    """Refuse nodes where the pod's volumes and those attached exceed the limit of their driver.

    A volume that is still attached, though no pod uses it, counts: even against a pod that will use it.
    """
    if not incoming.template.spec.volumes:
        return FITS
    facts, claims = view.facts, list_claims(incoming, view.facts)
    for claim in claims:
        if claim.record is None:
            return refuse(_miss(incoming, claim.name), np.ones(facts.size, np.bool_), final=True)
    records = [claim.record for claim in claims if claim.record]
    new_volumes = tuple(dict.fromkeys(list_attachables(facts, incoming.template.spec, records)))
    return tuple(_check(view, new_volumes)) if new_volumes else FITS


def _miss(incoming: IncomingPod, name: str) -> str:
    return f'looking up PVC {incoming.namespace}/{name}: persistentvolumeclaim "{name}" not found'


def _check(view: View, new_volumes: tuple[Attachable, ...]) -> Iterator[Refusal]:
    """A node that lacks a required driver is refused for that; its limit is then not checked."""
    refused = np.zeros(view.facts.size, np.bool_)
    drivers = sorted({each.driver for each in new_volumes})
    if view.facts.version >= _REQUIRES_DRIVER:
        for driver in drivers:
            lacking = _find_lacking(view.facts, driver, new_volumes) & ~refused
            yield from refuse(f"{driver} CSI driver is not installed on the node", lacking)
            refused |= lacking
    full = [_find_full(view, driver, new_volumes) for driver in drivers]
    yield from refuse(_TOO_MANY, np.logical_or.reduce([*full, np.zeros_like(refused)]) & ~refused)


def _find_full(view: View, driver: str, new_volumes: tuple[Attachable, ...]) -> Bools:
    limits = _limits_by_driver(view.facts).get(driver)
    if limits is None:
        return np.zeros(view.facts.size, np.bool_)
    uses = find_volume_usage(view.facts, driver)
    new = np.zeros(view.facts.size, np.int64)
    for each in new_volumes:
        if each.driver == driver:
            new += _is_new(view.facts, each) & ~uses.using(view, each.handle)
    return (new > 0) & (uses.count(view) + new > limits)


def _is_new(facts: SnapshotFacts, volume: Attachable) -> Bools | np.bool_:
    return counts_migrated(facts, volume.in_tree) if volume.in_tree else np.True_


def _find_lacking(facts: SnapshotFacts, driver: str, new_volumes: tuple[Attachable, ...]) -> Bools:
    """Tell where a required driver is not installed. In-tree volumes require it only where a CSINode is."""
    record = facts.snapshot.of(CSI_DRIVER).named("", driver)
    if record is None or not record.spec.prevent_pod_scheduling_if_missing:
        return np.zeros(facts.size, np.bool_)
    is_old = all(each.in_tree for each in new_volumes if each.driver == driver)
    installed = facts.once(("installed", driver), lambda: _find_installed(facts, driver))
    return ~installed & _has_csi_node(facts) if is_old else ~installed


def _find_installed(facts: SnapshotFacts, driver: str) -> Bools:
    return _ask_csi_nodes(facts, lambda drivers: any(each.name == driver for each in drivers))


def _has_csi_node(facts: SnapshotFacts) -> Bools:
    return facts.once("csi nodes", lambda: _ask_csi_nodes(facts, lambda _: True))


def _ask_csi_nodes(facts: SnapshotFacts, question: Callable[[tuple[CSINodeDriver, ...]], bool]) -> Bools:
    """Ask a question about the drivers of each node; a node without a CSINode answers no."""
    answers = np.zeros(facts.size, np.bool_)
    for node, drivers in _list_drivers(facts):
        answers[node] = question(drivers)
    return seal(answers)


def _list_drivers(facts: SnapshotFacts) -> Iterator[tuple[int, tuple[CSINodeDriver, ...]]]:
    for record in facts.snapshot.of(CSI_NODE):
        node = facts.snapshot.nodes.index.get(record.metadata.name)
        if node is not None:
            yield node, record.spec.drivers or ()


def _limits_by_driver(facts: SnapshotFacts) -> Mapping[str, Ints]:
    """Give the limit of each driver on each node."""
    return facts.once("volume limits", lambda: _read_limits(facts))


def _read_limits(facts: SnapshotFacts) -> Mapping[str, Ints]:
    limits: defaultdict[str, Ints] = defaultdict(lambda: np.full(facts.size, _NO_LIMIT, np.int64))
    for node, drivers in _list_drivers(facts):
        for driver in drivers:
            if driver.allocatable and driver.allocatable.count is not None:
                limits[driver.name][node] = driver.allocatable.count
    return limits
