"""Label selectors, node affinity, taints and pod affinity, as pure predicates.

A selector is compiled once into an immutable, hashable value and then evaluated as often as needed. A
malformed selector raises SelectorError; where Kubernetes lets such a selector match nothing, the caller uses
NOTHING instead.
"""

from reberth.selectors.labels import (
    EVERYTHING,
    NOTHING,
    Clause,
    Selector,
    SelectorError,
    combine,
    compile_labels,
    compile_selector,
    is_qualified_name,
    parse_selector,
)
from reberth.selectors.nodes import (
    NODE_NAME,
    NodePreferences,
    NodeRule,
    NodeTerm,
    compile_node_preferences,
    compile_node_rule,
    compile_node_selector,
    compile_preferences,
)
from reberth.selectors.pods import PodTerm, compile_pod_term
from reberth.selectors.taints import count_unpreferred, find_untolerated, tolerates

__all__ = [
    "EVERYTHING",
    "NODE_NAME",
    "NOTHING",
    "Clause",
    "NodePreferences",
    "NodeRule",
    "NodeTerm",
    "PodTerm",
    "Selector",
    "SelectorError",
    "combine",
    "compile_labels",
    "compile_node_preferences",
    "compile_node_rule",
    "compile_node_selector",
    "compile_pod_term",
    "compile_preferences",
    "compile_selector",
    "count_unpreferred",
    "find_untolerated",
    "is_qualified_name",
    "parse_selector",
    "tolerates",
]
