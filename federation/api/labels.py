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
