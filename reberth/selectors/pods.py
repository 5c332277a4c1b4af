"""The pods that a term of pod affinity or anti-affinity selects."""

import msgspec

from reberth.records import Labels, PodAffinityTerm
from reberth.selectors.labels import Selector, compile_selector


class PodTerm(msgspec.Struct, frozen=True, gc=False):
    """Pods with matching labels in certain namespaces, and the topology key that groups their nodes."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(self, namespace: str, labels: Labels | None, *, namespace_labels: Labels | None) -> bool:
        meant = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return meant and self.selector.matches(labels)


def compile_pod_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """Compile a term of a pod; a term without namespaces selects the namespace of the pod."""
    silent = not term.namespaces and term.namespace_selector is None
    return PodTerm(
        term.topology_key,
        compile_selector(term.label_selector),
        frozenset((namespace,) if silent else term.namespaces or ()),
        compile_selector(term.namespace_selector),
    )
