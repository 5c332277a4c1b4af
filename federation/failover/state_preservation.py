"""What of its state a workload takes along when it is driven out of a cluster: labels of its next copy.

They are read from what the old copy has said last, when the eviction begins, and stand in the task. The copy
that takes its place has them from its first moment, and for as long as it is there: its Work remembers them.
"""

import re
from collections.abc import Mapping

import msgspec

from federation.api import PurgeMode, ResourceBinding
from federation.api.paths import follow, read_path
from federation.objects.resources import HeldWork
from reberth.records import Labels

PRESERVED = "reberth.dev/preserved-state"
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def read_state(binding: ResourceBinding, cluster: str) -> Labels:
    """Read what the policy wants taken along; what is no label, or was never said, stays behind."""
    failover = binding.spec.failover.cluster if binding.spec.failover else None
    said = failover.state_preservation if failover else None
    status = _read_status(binding, cluster)
    found: Labels = {}
    for rule in (said.rules if said else None) or ():
        path = read_path(rule.json_path)
        value = _write(follow(path, status)) if path else None
        if value is not None and _LABEL_VALUE.fullmatch(value):
            found[rule.alias_label_name] = value
    return found


def labels_for_copy(binding: ResourceBinding, cluster: str, work: HeldWork | None) -> Labels:
    """Give the labels of a copy: those that it has, or for a new one those of the copy that it follows.

    It follows one if it is the only one, was not there before, and the old one goes before it comes.
    """
    if work is not None:
        return _recall(work.metadata.annotations or {})
    task = next(reversed(binding.spec.graceful_eviction_tasks or ()), None)
    if task is None or task.purge_mode is not PurgeMode.DIRECTLY or len(binding.spec.clusters or ()) != 1:
        return {}
    return {} if cluster in (task.clusters_before_failover or ()) else task.preserved_label_state or {}


def annotate_state(state: Labels) -> Labels:
    """Give the annotation by which a Work remembers them."""
    return {PRESERVED: msgspec.json.encode(state, order="sorted").decode()} if state else {}


def _recall(annotations: Mapping[str, str]) -> Labels:
    """What somebody else has written there is nothing of ours."""
    text = annotations.get(PRESERVED)
    try:
        return msgspec.json.decode(text, type=Labels) if text else {}
    except msgspec.DecodeError:
        return {}


def _read_status(binding: ResourceBinding, cluster: str) -> object:
    for each in binding.status.aggregated_status or ():
        if each.cluster_name == cluster and bytes(each.status):
            return msgspec.json.decode(each.status)
    return None


def _write(value: object) -> str | None:
    """Write a single value as a label has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
