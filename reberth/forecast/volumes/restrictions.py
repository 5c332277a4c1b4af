"""VolumeRestrictions: disks that two pods cannot mount at once, and ReadWriteOncePod claims.

kube-scheduler: `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`:
`isVolumeConflict`, `needsRestrictionsCheck`, `satisfyReadWriteOncePod`, `(*VolumeRestrictions).PreFilter`,
`(*VolumeRestrictions).Filter`
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from reberth.cluster.columns import Bools, Indices
from reberth.cluster.templates import Template
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.verdict import FITS, FilterVerdict, Rejected, refuse
from reberth.forecast.state.view import View
from reberth.forecast.volumes.claims import PodClaim, list_claims
from reberth.records import PodSpec, Volume

Disk = tuple[str | None, ...]

_DISK_TAKEN = "node(s) had no available disk"
_CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use"
    " by another pod"
)


def filter_volume_restrictions(incoming: IncomingPod, view: View) -> FilterVerdict:
    if not incoming.template.spec.volumes:
        return FITS
    claims = [claim for claim in list_claims(incoming, view.facts) if not claim.is_ephemeral]
    for claim in claims:
        if claim.record is None:
            return Rejected(f'persistentvolumeclaim "{claim.name}" not found')
    taken = _find_taken_disks(incoming, view)
    if not any(_is_taken(incoming, view, claim) for claim in claims):
        return refuse(_DISK_TAKEN, taken)
    return refuse(_DISK_TAKEN, taken) + refuse(_CLAIM_TAKEN, ~taken)


def _find_taken_disks(incoming: IncomingPod, view: View) -> Bools:
    """Tell where a pod has a disk that the incoming pod names as well, unless both only read it."""
    facts, taken = view.facts, np.zeros(view.facts.size, np.bool_)
    rivals = facts.once(("rivals for disks", incoming.template), lambda: _list_rivals(incoming, facts))
    taken[view.node[view.counted_among(rivals)]] = True
    return taken


def _list_rivals(incoming: IncomingPod, facts: SnapshotFacts) -> Indices:
    mine, templates = _read_disks(incoming.template.spec), facts.snapshot.templates.all
    if not mine:
        return np.zeros(0, np.int32)
    holders = facts.templates_where(_names_disks)
    return facts.pods_of([place for place in holders if _collide(mine, _read_disks(templates[place].spec))])


def _names_disks(template: Template) -> bool:
    return bool(_read_disks(template.spec))


def _read_disks(spec: PodSpec) -> dict[Disk, bool]:
    """Give the disks that a pod spec names without a claim, and whether the pod only reads each."""
    disks: dict[Disk, bool] = {}
    for volume in spec.volumes or ():
        for disk, reads in _identify(volume):
            disks[disk] = disks.get(disk, True) and reads
    return disks


def _identify(volume: Volume) -> Iterator[tuple[Disk, bool]]:
    """Identify disks as isVolumeConflict does: EBS cannot be shared even read-only, iSCSI by IQN."""
    if gce := volume.gce_persistent_disk:
        yield ("gce", gce.pd_name), bool(gce.read_only)
    if ebs := volume.aws_elastic_block_store:
        yield ("ebs", ebs.volume_id), False
    if iscsi := volume.iscsi:
        yield ("iscsi", iscsi.iqn), bool(iscsi.read_only)
    if rbd := volume.rbd:
        for monitor in rbd.monitors or ():
            yield ("rbd", monitor, rbd.pool, rbd.image), bool(rbd.read_only)


def _collide(mine: dict[Disk, bool], theirs: dict[Disk, bool]) -> bool:
    return any(not (reads and mine[disk]) for disk, reads in theirs.items() if disk in mine)


def _is_taken(incoming: IncomingPod, view: View, claim: PodClaim) -> bool:
    """Tell whether a claim is ReadWriteOncePod and a pod uses it."""
    if claim.record is None or "ReadWriteOncePod" not in (claim.record.spec.access_modes or ()):
        return False
    users = _users_of_claims(view.facts, incoming.namespace).get(claim.name)
    return users is not None and bool(view.counted[users].any())


def _users_of_claims(facts: SnapshotFacts, namespace: str) -> dict[str, Indices]:
    """Give the pods of a namespace that name a claim, by claim."""
    return facts.once(("users of claims", namespace), lambda: _list_users(facts, namespace))


def _list_users(facts: SnapshotFacts, namespace: str) -> dict[str, Indices]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    templates, rows = facts.snapshot.templates.all, facts.snapshot.pods.rows
    there = facts.snapshot.templates_in(namespace)
    users = [place for place in there if _names_claim(templates[place].spec)]
    for pod in facts.pods_of(users).tolist():
        for claim in rows[pod].own.claims:
            found[claim].append(pod)
    return {claim: np.array(pods, np.int32) for claim, pods in found.items()}


def _names_claim(spec: PodSpec) -> bool:
    return any(volume.persistent_volume_claim is not None for volume in spec.volumes or ())
