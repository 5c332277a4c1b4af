"""How welcome a workload is in the clusters that passed: each plugin gives 0 to 100, and the sum counts."""

from federation.scheduling.demand import Demand

CLUSTER_LOCALITY = "ClusterLocality"

_HERE = {CLUSTER_LOCALITY: 100}
_ELSEWHERE = {CLUSTER_LOCALITY: 0}


def score(demand: Demand, name: str) -> dict[str, int]:
    """Favour the clusters that hold replicas already; a fresh scheduling favours none."""
    is_here = name in demand.targets and not demand.fresh and any(demand.targets.values())
    return _HERE if is_here else _ELSEWHERE
