"""The labels that hold permanent ids, and the kinds of policies."""

from collections.abc import Mapping

POLICY_KINDS = ("PropagationPolicy", "ClusterPropagationPolicy")


LABELS: Mapping[str, str] = {
    "PropagationPolicy": "propagationpolicy.karmada.io/permanent-id",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io/permanent-id",
    "ResourceBinding": "resourcebinding.karmada.io/permanent-id",
    "ClusterResourceBinding": "clusterresourcebinding.karmada.io/permanent-id",
    "Work": "work.karmada.io/permanent-id",
}

SCHEDULABLE: tuple[str, ...] = (*(LABELS[kind] for kind in POLICY_KINDS), "binding.karmada.io/managed-by")
"""One of these labels is on every binding that is scheduled: a policy has claimed it, or a program."""
