"""Split a pod into what the replicas of a workload share and what is its own.

Ten thousand replicas differ in their names, not in what a scheduler reads. `split` separates a pod: the
common part is a Pod again, the same for all replicas, and `Own` is the rest. No field that affects a
placement is lost: `join_pairs` and `join_spec` put the parts together again.

Dropped for good are volumes that no decision reads (configMap, secret, projected: the token volume of every
pod has its own name), unknown annotations, and those parts of the status that repeat the spec. Of an
annotation no more is kept than is read.
"""

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast

from msgspec.structs import replace

from reberth.cluster.pods.daemonset_pin import pin, unpin
from reberth.cluster.pods.resize import keep_differing
from reberth.records import Labels, ObjectMeta, Pod, PodSpec, Volume
from reberth.values.text_limits import LONGEST_TEXT

Pairs = tuple[tuple[str, str], ...]
Shared = TypeVar("Shared", bound=Hashable)

# The annotations that Reberth or Kubernetes' scheduling reads, by their whole keys: whoever may write an
# object may give it any number of others.
KEPT_ANNOTATIONS = frozenset({
    "autoscaling.cast.ai/disposable",
    "autoscaling.cast.ai/removal-disabled",
    "beta.evictor.cast.ai/disposable",
    "cluster-autoscaler.kubernetes.io/daemonset-pod",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
    "controller.kubernetes.io/pod-deletion-cost",
    "descheduler.alpha.kubernetes.io/evict",
    "descheduler.alpha.kubernetes.io/eviction-in-progress",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction",
    "eviction-autoscaler.azure.com/original-min-replicas",
    "evictionSurgeReplicas",
    "gang.scheduling.koordinator.sh/name",
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-evict",
    "kubernetes.io/config.mirror",
    "kubernetes.io/limit-ranger",
    "kueue.x-k8s.io/pod-group-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "node-lifecycle.datadoghq.com/enabled",
    "pod-group-name",
    "pod-group.scheduling.sigs.k8s.io",
    "pv.kubernetes.io/bind-completed",
    "reberth.dev/automation",
    "reberth.dev/score-weights",
    "scheduler.alpha.kubernetes.io/defaultTolerations",
    "scheduler.alpha.kubernetes.io/node-selector",
    "scheduler.alpha.kubernetes.io/tolerationsWhitelist",
    "scheduling.k8s.io/group-name",
    "scheduling.koordinator.sh/eviction-cost",
    "scheduling.koordinator.sh/soft-eviction",
    "scheduling.volcano.sh/group-name",
    "scheduling.x-k8s.io/pod-group",
    "storage.alpha.kubernetes.io/migrated-plugins",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
    "vpaUpdates",
    "yunikorn.apache.org/task-group-name",
})  # fmt: skip
# The note that keeps pods away from a node; it is JSON, so it is kept whole.
NODE_NOTE = "scheduler.alpha.kubernetes.io/preferAvoidPods"
# Whoever reads a text that was cut sees that it is longer than any that is read.
_LONGEST_KEPT = LONGEST_TEXT + 1
# The labels and annotations whose values differ between the replicas of one workload, sorted.
OWN_LABELS = (
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-completion-index",
    "statefulset.kubernetes.io/pod-name",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
OWN_ANNOTATIONS = ("controller.kubernetes.io/pod-deletion-cost",)
# No node takes more of them; what follows is not held.
_MOST_VOLUMES = 256


class PodOwnFields(NamedTuple):
    """The parts of a pod that it does not share with its siblings."""

    labels: Pairs = ()
    annotations: Pairs = ()
    claims: tuple[str, ...] = ()
    pinned_to: str | None = None


def split_pod(pod: Pod, *, annotations: frozenset[str] = frozenset()) -> tuple[Pod, PodOwnFields]:
    """Split a pod into the shared part and its own; these annotations are kept, too."""
    meta, spec = pod.metadata, pod.spec
    labels, own_labels = _set_apart(meta.labels, OWN_LABELS)
    kept, own_annotations = _set_apart(keep_known(meta.annotations, annotations), OWN_ANNOTATIONS)
    volumes, claims = _unname_claims(spec.volumes)
    affinity, pinned_to = unpin(spec.affinity, meta)
    common = Pod(
        ObjectMeta(
            namespace=meta.namespace,
            labels=labels,
            annotations=kept,
            owner_references=meta.owner_references,
        ),
        replace(spec, node_name=None, affinity=affinity, volumes=volumes),
        keep_differing(pod),
    )
    return common, PodOwnFields(own_labels, own_annotations, claims, pinned_to)


def join_pairs(common: Labels | None, own: Pairs) -> Labels:
    """Give all labels, or all annotations, of a pod."""
    return {**(common or {}), **dict(own)}


def join_spec(common: PodSpec, own: PodOwnFields, *, node: str | None) -> PodSpec:
    """Restore the spec of a pod, without the volumes that Reberth never reads."""
    return replace(
        common,
        node_name=node,
        affinity=pin(common.affinity, own.pinned_to),
        volumes=_name_claims(common.volumes, own.claims),
    )


def keep_known(annotations: Labels | None, others: frozenset[str] = frozenset()) -> Labels | None:
    """Drop the annotations that Reberth never reads, except these, and cut the others."""
    if not annotations:
        return None
    kept = {
        key: text[:_LONGEST_KEPT]
        for key, text in annotations.items()
        if key in KEPT_ANNOTATIONS or key in others
    }
    return kept or None


def keep_of_node(annotations: Labels | None) -> Labels | None:
    """Drop the annotations of a node that Reberth never reads."""
    if not annotations:
        return None
    kept = keep_known(annotations) or {}
    if NODE_NOTE in annotations:
        kept[NODE_NOTE] = annotations[NODE_NOTE]
    return kept or None


@lru_cache(maxsize=8192)
def _find_first(value: Hashable) -> Hashable:
    return value


def keep_one(value: Shared) -> Shared:
    """Give one shared object for all equal ones, to save memory; rarely used ones are evicted."""
    return cast("Shared", _find_first(value))


def _set_apart(labels: Labels | None, own_keys: tuple[str, ...]) -> tuple[Labels | None, Pairs]:
    if not labels:
        return None, ()
    found = [key for key in own_keys if key in labels]
    if not found:
        return labels, ()
    common = labels.copy()
    own = tuple([(key, common.pop(key)) for key in found])
    return common or None, own


def _unname_claims(volumes: Iterable[Volume] | None) -> tuple[tuple[Volume, ...] | None, tuple[str, ...]]:
    """Keep the volumes that affect scheduling, and take the claim names out of them."""
    kept = tuple([volume for volume in volumes or () if volume != Volume(volume.name)][:_MOST_VOLUMES])
    claims = [claim.claim_name for volume in kept if (claim := volume.persistent_volume_claim) is not None]
    if not claims:
        return kept or None, ()
    return _name_claims(kept, [""] * len(claims)), tuple(claims)


def _name_claims(volumes: tuple[Volume, ...] | None, names: Iterable[str]) -> tuple[Volume, ...] | None:
    """Insert these claim names into the volumes, in their order."""
    left = iter(names)
    return volumes and tuple(
        replace(volume, persistent_volume_claim=replace(claim, claim_name=next(left)))
        if (claim := volume.persistent_volume_claim)
        else volume
        for volume in volumes
    )
