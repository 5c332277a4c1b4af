"""In which revision a StatefulSet would create a pod again.

kube-controller-manager: `pkg/controller/statefulset/stateful_set_utils.go`: `newVersionedStatefulSetPod`
"""

from reberth.records import Owner

REVISION = "controller-revision-hash"


def find_next_revision(pod: str, owner: Owner) -> str | None:
    """Tell in which revision the StatefulSet controller would create the pod of this name again.

    It creates the ordinals below the partition in the current one. Without rollingUpdate it goes by how many
    pods are still of that one instead; with OnDelete it creates every pod in the new one.
    """
    ordinal = pod.rpartition("-")[2]
    if not ordinal.isdecimal():
        return None
    first = (owner.spec.ordinals.start or 0) if owner.spec.ordinals else 0
    is_kept = int(ordinal) < first + _count_kept(owner)
    return owner.status.current_revision if is_kept else owner.status.update_revision


def read_partition(owner: Owner) -> int:
    strategy = owner.spec.update_strategy
    return (strategy.rolling_update.partition or 0) if strategy and strategy.rolling_update else 0


def _count_kept(owner: Owner) -> int:
    strategy = owner.spec.update_strategy
    if strategy and strategy.type == "RollingUpdate" and strategy.rolling_update is None:
        return owner.status.current_replicas
    return read_partition(owner)
