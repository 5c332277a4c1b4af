"""The nodes that can reach a volume or a CSIStorageCapacity: often one of thousands.

So they are kept as short lists, and a rule that requires a rare label, such as a hostname, is evaluated only
for the nodes that have it.

kube-scheduler: `k8s.io/component-helpers/storage/volume/helpers.go`: `CheckNodeAffinity`
"""

from collections.abc import Mapping

import numpy as np

from reberth.cluster.columns import Bools, Indices, seal
from reberth.forecast.state.facts import SnapshotFacts
from reberth.records import NodeSelector
from reberth.selectors import EVERYTHING, NODE_NAME, Selector, compile_node_selector

# Terms of which one must match; no terms match nowhere.
NodeSelectorTerms = tuple[Selector, ...]

_FEW = 64


def read_node_affinity(required: NodeSelector | None) -> NodeSelectorTerms:
    """Read the node affinity of a volume. CheckNodeAffinity passes only labels: a node has no name for it."""
    rule = compile_node_selector(required)
    if rule.terms is None:
        return (EVERYTHING,)
    return tuple(term.labels for term in rule.terms if term.fields.matches({NODE_NAME: ""}))


def find_reachable(facts: SnapshotFacts, terms: NodeSelectorTerms) -> Indices:
    """List the nodes that match one of the terms, in order."""
    if len(terms) == 1:
        return _select(facts, terms[0])
    parts = [np.zeros(0, np.int32), *(_select(facts, each) for each in terms)]
    return np.unique(np.concatenate(parts))


def is_reachable(facts: SnapshotFacts, terms: NodeSelectorTerms) -> Bools:
    """Tell which nodes match one of the terms."""
    nodes = np.zeros(facts.size, np.bool_)
    nodes[find_reachable(facts, terms)] = True
    return nodes


def _select(facts: SnapshotFacts, selector: Selector) -> Indices:
    near = [_nodes_by_value(facts, key).get(value, ()) for key, value in selector.pairs]
    fewest = min(near, key=len, default=None)
    if fewest is not None and len(fewest) <= _FEW:
        records = facts.snapshot.nodes.records
        found = [node for node in fewest if selector.matches(records[node].metadata.labels)]
        return np.array(found, np.int32)
    return facts.once(("reach", selector), lambda: seal(_select_among_all(facts, selector)))


def _select_among_all(facts: SnapshotFacts, selector: Selector) -> Indices:
    return np.flatnonzero(facts.selecting(selector)).astype(np.int32)


def _nodes_by_value(facts: SnapshotFacts, key: str) -> Mapping[str, list[int]]:
    return facts.once(("nodes by value", key), lambda: _group(facts, key))


def _group(facts: SnapshotFacts, key: str) -> Mapping[str, list[int]]:
    column = facts.label(key)
    found: dict[str, list[int]] = {value: [] for value in column.values}
    for node in np.flatnonzero(column.codes >= 0).tolist():
        found[column.values[column.codes[node]]].append(node)
    return found
