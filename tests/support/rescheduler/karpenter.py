"""NodeClaims and NodePools as Karpenter v1 writes them, and nodes of such a pool."""

from typing import Any

from reberth.values.timestamp import write_time
from tests.support import builders
from tests.support.builders import Object
from tests.support.rescheduler.plans import NOW

POOL_LABEL = "karpenter.sh/nodepool"
API_VERSION = "karpenter.sh/v1"


def node_of_pool(name: str, pool: str = "default", **fields: Any) -> Object:
    """An initialized node."""
    labels = {POOL_LABEL: pool, "karpenter.sh/initialized": "true", **fields.pop("labels", {})}
    return builders.node(name, labels=labels, **fields)


def node_claim(
    node: str,
    pool: str = "default",
    *,
    consolidatable: bool = True,
    changed: float = NOW,
    pool_uid: str = "",
) -> Object:
    """The NodeClaim of a node where a pod came or went just before this time.

    Without the true UID of its NodePool the garbage collector of a cluster deletes it.
    """
    conditions = ["ConsistentStateFound", "Initialized", "Launched", "Ready", "Registered"]
    more = ["Consolidatable"] if consolidatable else []
    return {
        "apiVersion": API_VERSION,
        "kind": "NodeClaim",
        "metadata": {
            "name": f"{pool}-{node}",
            "labels": {POOL_LABEL: pool, "karpenter.sh/capacity-type": "on-demand"},
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": "NodePool",
                    "name": pool,
                    "uid": pool_uid or f"uid-{pool}",
                }
            ],
        },
        "spec": {"expireAfter": "720h", "requirements": [], "nodeClassRef": {"kind": "EC2NodeClass"}},
        "status": {
            "allocatable": {"cpu": "7910m", "memory": "28Gi"},
            "conditions": [
                {
                    "type": each,
                    "status": "True",
                    "reason": each,
                    "message": "",
                    "lastTransitionTime": write_time(changed - 9),
                    "observedGeneration": 1,
                }
                for each in sorted(conditions + more)
            ],
            "lastPodEventTime": write_time(changed - 12),
            "nodeName": node,
            "providerID": f"aws:///eu-central-1a/i-{node}",
        },
    }


def node_pool(
    name: str = "default", *, policy: str = "WhenEmptyOrUnderutilized", budgets: Any = None, **spec: Any
) -> Object:
    """A NodePool; without budgets it has the default one."""
    disruption = {
        "budgets": [{"nodes": "10%"}] if budgets is None else budgets,
        "consolidateAfter": "0s",
        "consolidationPolicy": policy,
    }
    template = {"spec": {"requirements": [], "expireAfter": "720h"}}
    return {
        "apiVersion": API_VERSION,
        "kind": "NodePool",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"disruption": disruption, "template": template, **spec},
        "status": {"resources": {"nodes": "2"}},
    }
