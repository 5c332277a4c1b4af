"""The node that a DaemonSet's pod is created for, removed from its affinity and restored.

The DaemonSet controller writes the node name into every required term; without it, the pods of a DaemonSet
are alike.
"""

from msgspec.structs import replace

from reberth.records import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)

_SOME_NODE = ""


def unpin(affinity: Affinity | None, meta: ObjectMeta) -> tuple[Affinity | None, str | None]:
    """Split a pod's affinity into its pinned node and the rest; without a pin the affinity is unchanged."""
    if affinity is None or affinity.node_affinity is None or not _is_of_daemon_set(meta):
        return affinity, None
    node = _find_pin(affinity.node_affinity)
    return (pin(affinity, _SOME_NODE), node) if node else (affinity, None)


def pin(affinity: Affinity | None, node: str | None) -> Affinity | None:
    """Write the node into every required term, as the DaemonSet controller does."""
    if affinity is None or affinity.node_affinity is None or node is None:
        return affinity
    pinned = [
        replace(term, match_fields=_fields_of(node)) for term in _required_terms(affinity.node_affinity)
    ]
    required = NodeSelector(tuple(pinned))
    return replace(
        affinity,
        node_affinity=replace(
            affinity.node_affinity, required_during_scheduling_ignored_during_execution=required
        ),
    )


def _is_of_daemon_set(meta: ObjectMeta) -> bool:
    return any(owner.kind == "DaemonSet" and owner.controller for owner in meta.owner_references or ())


def _find_pin(affinity: NodeAffinity) -> str | None:
    """Give the node name if every required term pins the same node and has no other field requirement."""
    pins = {term.match_fields for term in _required_terms(affinity)}
    fields = pins.pop() if len(pins) == 1 else None
    if not fields or not fields[0].values or fields != _fields_of(fields[0].values[0]):
        return None
    return fields[0].values[0]


def _fields_of(node: str) -> tuple[NodeSelectorRequirement, ...]:
    return (NodeSelectorRequirement("metadata.name", "In", (node,)),)


def _required_terms(affinity: NodeAffinity) -> tuple[NodeSelectorTerm, ...]:
    required = affinity.required_during_scheduling_ignored_during_execution
    return (required.node_selector_terms or ()) if required else ()
