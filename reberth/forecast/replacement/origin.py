"""What a pod's controller makes its next pod from: which template, of which revision."""

from typing import Any, NamedTuple

from msgspec import Raw

from reberth.cluster.custom_kinds import find_custom_kind
from reberth.cluster.kinds import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISION,
    STATEFUL_SET,
    Kind,
)
from reberth.cluster.owner_templates import read_template
from reberth.cluster.pods.identity import find_controller, group_of
from reberth.cluster.rows import AS_CREATED, CHANGED, PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.replacement.refusals import cannot_forecast
from reberth.forecast.replacement.revisions import find_next_revision
from reberth.records import (
    ObjectMeta,
    PodTemplate,
    TemplatedOwner,
    TemplatedReplicationController,
    WorkloadIdentity,
)
from reberth.values.refusal import Refused
from reberth.values.text_limits import UNREADABLE

_KINDS: dict[tuple[str, str], Kind[Any, Any]] = {
    (kind.group, kind.name): kind for kind in (REPLICA_SET, STATEFUL_SET, REPLICATION_CONTROLLER)
}
# Their pods are never moved: a forecast of one asks where a pod like it would land.
_COPIED = {("", "Node"), ("apps", "DaemonSet"), ("batch", "Job")}
_TEMPLATE_HASHES = frozenset({"pod-template-hash", "rollouts-pod-template-hash"})
# What makes a new ReplicaSet or ReplicationController for every change of its own template.
_MAKES_ANEW = {("apps", "Deployment"), ("argoproj.io", "Rollout"), ("apps.openshift.io", "DeploymentConfig")}


class Origin(NamedTuple):
    """A template, and who owns it."""

    kept: Raw
    owners: tuple[WorkloadIdentity, ...]
    """The controller, and the owner above it."""
    revision: str = ""
    claims: tuple[str, ...] = ()
    is_fixed: bool = True
    """Whether every pod of it was made from the same template: nobody edits this in place."""
    is_custom: bool = False
    """Whether its kind is another project's, which adds to its pods what it likes."""
    is_earlier: bool = False
    """Whether it is of a revision that is not the controller's newest."""

    def read(self) -> PodTemplate | Refused:
        """Read the template; it is refused if it cannot be read, or was too large to be kept."""
        try:
            template = read_template(bytes(self.kept))
        except UNREADABLE:
            return cannot_forecast(f"the template of {describe(self.owners[0])} cannot be read")
        if template.is_cut:
            return cannot_forecast(f"the template of {describe(self.owners[0])} is too large to be kept")
        return template


class Copied(NamedTuple):
    """Nothing but the pod itself tells what the next one will be."""


def find_origin(snapshot: Snapshot, row: PodRow) -> Origin | Copied | Refused | None:
    """Find the template of a pod's replacement; None if its controller's kind has none that is read."""
    controller = row.template.controller
    if controller is None:
        return Copied()
    named = (group_of(controller.api_version), controller.kind)
    kind = _KINDS.get(named)
    if kind is None:
        custom = _find_custom(snapshot, row, controller)
        return custom or (Copied() if named in _COPIED or _is_written_by_hand(row) else None)
    owner = snapshot.of(kind).by_uid(controller.uid, near=row.namespace)
    found = _find_template(snapshot, row, owner, controller) if owner is not None else None
    if isinstance(found, Origin | Refused):
        return found
    if _is_written_by_hand(row):
        return Copied()
    if owner is None:
        return cannot_forecast(f"{describe(controller)} is not in the cache, so its template is not known")
    return cannot_forecast(f"{describe(controller)} has no template: it wants no pods")


def find_earlier(snapshot: Snapshot, origin: Origin, namespace: str, revision: str) -> Origin | None:
    """Give the origin of a pod of another revision."""
    if revision == origin.revision:
        return origin
    found = snapshot.of(REVISION).named(namespace, revision) if origin.revision else None
    kept = found.template if found else None
    return origin._replace(kept=kept, revision=revision, is_earlier=True) if kept and bytes(kept) else None


def describe(controller: WorkloadIdentity) -> str:
    return f"{controller.kind} {controller.name}"[:120]


def _is_written_by_hand(row: PodRow) -> bool:
    """The API server gives every pod a generation."""
    return not row.marks & (AS_CREATED | CHANGED)


def _find_custom(snapshot: Snapshot, row: PodRow, controller: WorkloadIdentity) -> Origin | None:
    kind = find_custom_kind(group_of(controller.api_version), controller.kind)
    owner = snapshot.of(kind).by_uid(controller.uid, near=row.namespace) if kind else None
    if owner is None or not bytes(owner.spec.template):
        return None
    above = find_controller(owner.metadata)
    owners = (controller, above) if above else (controller,)
    return Origin(owner.spec.template, owners, is_fixed=False, is_custom=True)


def _find_template(
    snapshot: Snapshot,
    row: PodRow,
    owner: TemplatedOwner | TemplatedReplicationController,
    controller: WorkloadIdentity,
) -> Origin | Refused | None:
    above = find_controller(owner.metadata)
    owners = (controller, above) if above else (controller,)
    template = owner.spec.template
    if not bytes(template):
        return None
    if isinstance(owner, TemplatedReplicationController) or controller.kind != STATEFUL_SET.name:
        return Origin(template, owners, is_fixed=_is_fixed(owner.metadata, above))
    return _find_revision(snapshot, row, owner, Origin(template, owners, claims=_name_claims(owner)))


def _is_fixed(owner: ObjectMeta, above: WorkloadIdentity | None) -> bool:
    """Tell whether its template stays as it is, since another object makes owners like it."""
    is_above = above is not None and (group_of(above.api_version), above.kind) in _MAKES_ANEW
    return is_above or not _TEMPLATE_HASHES.isdisjoint(owner.labels or ())


def _find_revision(
    snapshot: Snapshot, row: PodRow, owner: TemplatedOwner, newest: Origin
) -> Origin | Refused | None:
    wanted, status = find_next_revision(row.name, owner), owner.status
    is_newest = wanted == status.update_revision or status.observed_generation < owner.metadata.generation
    if wanted is None or is_newest:
        return newest._replace(revision=status.update_revision or "")
    found = find_earlier(snapshot, newest._replace(revision="?"), row.namespace, wanted)
    return found or cannot_forecast(
        f"{describe(newest.owners[0])} would create the pod in revision {wanted}, which is not in the cache"
    )


def _name_claims(owner: TemplatedOwner) -> tuple[str, ...]:
    return tuple(each.metadata.name for each in owner.spec.volume_claim_templates or ())
