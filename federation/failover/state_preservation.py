"""State preservation: values of the old copy's status become labels of its replacement after a failover.

They are read from the last reported status when the eviction starts, and are kept in the eviction task. The
replacement has them from its creation until its deletion: an annotation of its Work keeps them.
"""

import re
from collections.abc import Mapping

import msgspec

from federation.api import PurgeMode, ResourceBinding, StatePreservation
from federation.api.paths import follow, read_path
from federation.objects.resources import HeldWork
from reberth.records import Labels
from reberth.values.text_limits import read_json

PRESERVED = "reberth.dev/preserved-state"
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def read_state(binding: ResourceBinding, cluster: str, said: StatePreservation | None) -> Labels:
    """Read the values that the policy names; those that are missing or not valid as a label are left out."""
    status = _read_status(binding, cluster)
    found: Labels = {}
    for rule in (said.rules if said else None) or ():
        path = read_path(rule.json_path)
        value = _write(follow(path, status)) if path else None
        if value is not None and _LABEL_VALUE.fullmatch(value):
            found[rule.alias_label_name] = value
    return found


def has_status(binding: ResourceBinding, cluster: str) -> bool:
    return _read_status(binding, cluster) is not None


def labels_for_copy(binding: ResourceBinding, cluster: str, work: HeldWork | None) -> Labels:
    """Return the labels of a copy: those that it has, or for a new one those of the copy that it replaces.

    It replaces one if it is the only copy, its cluster had none before, and the old copy goes first.
    """
    if work is not None:
        return _recall(work.metadata.annotations or {})
    task = next(reversed(binding.spec.graceful_eviction_tasks or ()), None)
    if task is None or task.purge_mode is not PurgeMode.DIRECTLY or len(binding.spec.clusters or ()) != 1:
        return {}
    return {} if cluster in (task.clusters_before_failover or ()) else task.preserved_label_state or {}


def annotate_state(state: Labels) -> Labels:
    """Return the annotation in which a Work keeps the labels."""
    return {PRESERVED: msgspec.json.encode(state, order="sorted").decode()} if state else {}


def _recall(annotations: Mapping[str, str]) -> Labels:
    """Return no labels if the annotation is unreadable: another program may have written it."""
    return read_json(annotations.get(PRESERVED), Labels) or {}


def _read_status(binding: ResourceBinding, cluster: str) -> object:
    for each in binding.status.aggregated_status or ():
        if each.cluster_name == cluster and bytes(each.status):
            return msgspec.json.decode(each.status)
    return None


def _write(value: object) -> str | None:
    """Write a single value as a label; None for lists and objects."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else None
