"""NodeClaims and NodePools of Karpenter, karpenter.sh/v1: which nodes it may remove, and how many at once."""

from reberth.records.meta import Condition, ObjectMeta, Record


class NodeClaimStatus(Record, frozen=True):
    conditions: tuple[Condition, ...] | None = None
    last_pod_event_time: str | None = None
    node_name: str = ""


class KarpenterNodeClaim(Record, frozen=True):
    metadata: ObjectMeta
    status: NodeClaimStatus = NodeClaimStatus()


class NodePoolBudget(Record, frozen=True):
    """How many nodes of a NodePool Karpenter may disrupt at once, for some reasons and at some times."""

    duration: str | None = None
    nodes: str = "10%"
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None


class NodePoolDisruption(Record, frozen=True):
    budgets: tuple[NodePoolBudget, ...] | None = None
    consolidation_policy: str = ""


class NodePoolSpec(Record, frozen=True):
    disruption: NodePoolDisruption = NodePoolDisruption()
    replicas: int | None = None


class NodePool(Record, frozen=True):
    metadata: ObjectMeta
    spec: NodePoolSpec = NodePoolSpec()
