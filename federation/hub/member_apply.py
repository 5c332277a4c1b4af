"""One object in one member: get, apply together with its namespace, delete."""

from federation.hub.object_api import MANAGER, ObjectApi
from federation.hub.sessions import Session
from federation.objects.names import Key
from federation.objects.resources import NAMESPACES, RBAC_KINDS
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.manifest import write_namespace
from federation.propagation.work_sync import (
    find_foreign_role,
    hold_replicas,
    is_missing_namespace,
    key_of_bound_role,
    omit_retained_replicas,
)
from reberth.cluster.kinds import Resource
from reberth.values import errors

_HOLDER = f"{MANAGER}-replicas"
_RBAC = {each.kind.name: each for each in RBAC_KINDS}


async def read_from_member(
    session: Session, resource: Resource[ResourceTemplate], target: Key
) -> ResourceTemplate | None:
    """Read from the member's API server: its cache may be behind."""
    try:
        return await session.api.get(resource, target.name, namespace=target.namespace)
    except errors.NotFound:
        return None


async def refuse_role(session: Session, manifest: Object) -> str | None:
    """Return why what grants a role must not be applied: only the name may be that of a role here."""
    key = key_of_bound_role(manifest)
    if key is None:
        return None
    resource = _RBAC.get(key.kind)
    return find_foreign_role(key, await read_from_member(session, resource, key) if resource else None)


async def apply_to_member(
    session: Session,
    resource: Resource[ResourceTemplate],
    manifest: Object,
    *,
    found: ResourceTemplate | None,
    hub_api: ObjectApi,
) -> ResourceTemplate:
    """Apply the manifest; if its namespace is missing, create that first. Raises ApiError."""
    meta = manifest["metadata"]
    name, namespace = meta["name"], meta.get("namespace", "")
    await _hand_over(session, resource, manifest, found)
    wanted = omit_retained_replicas(manifest, found)
    try:
        return await session.api.apply_object(resource, name, wanted, namespace=namespace)
    except errors.NotFound as error:
        if not is_missing_namespace(error.message, namespace):
            raise
    template = await hub_api.get(NAMESPACES, namespace)
    await session.api.apply_object(NAMESPACES, namespace, write_namespace(template))
    return await session.api.apply_object(resource, name, wanted, namespace=namespace)


async def delete_from_member(
    session: Session,
    resource: Resource[ResourceTemplate],
    found: ResourceTemplate,
    *,
    to_the_end: bool = False,
) -> None:
    """Delete an object; `to_the_end` keeps it until all that it owns is gone: its last pod has ended then."""
    meta = found.metadata
    if meta.deletion_timestamp is not None:
        return
    try:
        await session.api.remove_object(
            resource, meta.name, uid=meta.uid, namespace=meta.namespace, to_the_end=to_the_end
        )
    except errors.NotFound:
        return


async def _hand_over(
    session: Session, resource: Resource[ResourceTemplate], manifest: Object, found: ResourceTemplate | None
) -> None:
    """Give spec.replicas a second field manager before we stop sending it.

    Server-side apply resets a field to its default when its last manager drops it: the workload would shrink
    to 1 replica. A Conflict means that the field has another manager already.
    """
    held = hold_replicas(manifest, found)
    if held is None:
        return
    meta = manifest["metadata"]
    try:
        await session.api.apply_object(
            resource,
            meta["name"],
            held,
            namespace=meta.get("namespace", ""),
            manager=_HOLDER,
            is_forced=False,
        )
    except errors.Conflict:
        return
