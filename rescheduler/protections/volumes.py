"""Protections by volumes: data that would be lost, left behind, or needed on two nodes."""

import numpy as np

from reberth.cluster.columns import Bools, seal
from reberth.cluster.kinds import CLAIM
from reberth.cluster.templates import Template
from reberth.records import Volume
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.annotations import LOCAL_VOLUMES, is_lifted


def refuse_local_storage(template: int, context: RuleContext) -> Refused | None:
    pod = context.template(template).pod
    if not pod.spec.volumes or not context.protections.local_storage:
        return None
    released = (pod.metadata.annotations or {}).get(LOCAL_VOLUMES, "").split(",")
    safe = {name.strip() for name in released}
    local = next((each for each in pod.spec.volumes if _kind_of(each) and each.name not in safe), None)
    if local is None or is_lifted(template, context):
        return None
    return Refused("LocalStorage", f"volume {local.name} is {_kind_of(local)}")


def find_bound_to_claims(context: RuleContext) -> Bools:
    """Find the pods with a claim that cannot follow them."""
    found = np.zeros(len(context.snapshot.pods.rows), np.bool_)
    claiming = context.spread(context.snapshot.templates_where(_claims))
    for place in np.flatnonzero(claiming).tolist():
        found[place] = _find_claim(place, context) is not None
    return seal(found)


def refuse_claim(place: int, context: RuleContext) -> Refused:
    return Refused("Claims", _find_claim(place, context) or "")


def _find_claim(place: int, context: RuleContext) -> str | None:
    """Name the first claim that cannot follow the pod, with the reason."""
    row = context.row(place)
    for name in row.own.claims:
        said = _judge(row.namespace, name, context)
        if said:
            return f"PersistentVolumeClaim {name} {said}"
    return None


def _judge(namespace: str, name: str, context: RuleContext) -> str | None:
    claim = context.snapshot.of(CLAIM).named(namespace, name)
    if claim is None:
        return "is not in the cache"
    modes = claim.spec.access_modes or ()
    if not set(modes).isdisjoint(context.protections.movable_access_modes):
        return None
    return f"has the access modes {', '.join(modes)}" if modes else "has no access modes"


def _claims(template: Template) -> bool:
    volumes = template.pod.spec.volumes
    return volumes is not None and any(volume.persistent_volume_claim for volume in volumes)


def _kind_of(volume: Volume) -> str | None:
    """Name the kind of a volume whose data does not follow the pod."""
    if volume.empty_dir:
        return "an emptyDir"
    if volume.host_path:
        return "a hostPath"
    return "ephemeral" if volume.ephemeral else None
