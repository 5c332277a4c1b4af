"""The identity of a pod across evictions and rollouts.

An evicted pod comes back under another name and uid. What stays is its controller, until a rollout replaces
that too, and the root owner above it: memory is kept of these two. A ReplicaSet leads to its Deployment and a
Job to its CronJob by their cached metadata; for a ReplicaSet that is not cached yet, its own name and the
pod's hash give the Deployment's name, though not its uid. No step further up is taken: the answer must not
depend on what else a reader happens to cache.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from reberth.records import ObjectMeta, OwnerReference, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.text_limits import LONGEST_TEXT

BARE_POD = Refused("BarePod", "no controller would replace the pod")
DAEMON_SET_POD = Refused("DaemonSetPod", "a DaemonSet pod is bound to its node")
MIRROR_POD = Refused("MirrorPod", "a static pod is managed by the kubelet")

_MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_TEMPLATE_HASH_LABEL = "pod-template-hash"
_OWNED_KINDS = frozenset({"ReplicaSet", "Job"})
_LONGEST_HISTORY_NAME = 240
_FORBIDDEN = re.compile(r"[^a-z0-9.-]+")
_DOTS = re.compile(r"(?<!-)-*\.[.-]*")


class Signature(msgspec.Struct, frozen=True, gc=False):
    """The owners of a pod; a controller without an owner is its own root."""

    namespace: str
    controller: WorkloadIdentity
    root: WorkloadIdentity  # without uid: only the name is known


def find_signature(pod: ObjectMeta, owners: Mapping[str, ObjectMeta]) -> Signature | Refused:
    """Find the owners of a pod; `owners` are the cached ReplicaSets and Jobs by uid.

    Pods that are never noted and never moved are refused.
    """
    controller = find_controller(pod)
    if _is_mirror(pod):
        return MIRROR_POD
    if controller is None:
        return BARE_POD
    if controller.kind == "DaemonSet":
        return DAEMON_SET_POD
    return Signature(pod.namespace, controller, _find_root(pod, controller, owners))


def find_controller(owned: ObjectMeta) -> WorkloadIdentity | None:
    """Give the one owner that manages the object."""
    for owner in owned.owner_references or ():
        if owner.controller:
            return _identify(owner)
    return None


@lru_cache(maxsize=4096)
def name_history(root: WorkloadIdentity) -> str:
    """Give the name of the object that holds a workload's history; the same for every uid of that name."""
    group = group_of(root.api_version)
    digest = hashlib.sha256(f"{group}/{root.kind}/{root.name}".encode()).hexdigest()[:8]
    return f"{_as_subdomain(f'{root.kind}-{root.name}')}-{digest}"


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _is_mirror(pod: ObjectMeta) -> bool:
    owned_by_node = any(owner.kind == "Node" for owner in pod.owner_references or ())
    return owned_by_node or _MIRROR_ANNOTATION in (pod.annotations or ())


def _find_root(
    pod: ObjectMeta, controller: WorkloadIdentity, owners: Mapping[str, ObjectMeta]
) -> WorkloadIdentity:
    if controller.kind not in _OWNED_KINDS:
        return controller
    mirrored = owners.get(controller.uid)
    above = find_controller(mirrored) if mirrored else _guess_deployment(pod, controller)
    return above or controller


def _guess_deployment(pod: ObjectMeta, controller: WorkloadIdentity) -> WorkloadIdentity | None:
    ending = "-" + (pod.labels or {}).get(_TEMPLATE_HASH_LABEL, "")
    name = controller.name.removesuffix(ending)
    if controller.kind != "ReplicaSet" or ending == "-" or name in ("", controller.name):
        return None
    return WorkloadIdentity(controller.api_version, "Deployment", name)


def _identify(owner: OwnerReference) -> WorkloadIdentity:
    return WorkloadIdentity(owner.api_version, owner.kind, owner.name, owner.uid)


def _as_subdomain(text: str) -> str:
    """Truncate to leave room for the digest; the end must not be a dot, a dash or the start of a label."""
    allowed = _FORBIDDEN.sub("-", text[:LONGEST_TEXT].lower())
    joined = _DOTS.sub(".", allowed).strip(".-")
    return joined[:_LONGEST_HISTORY_NAME].rstrip(".-")
