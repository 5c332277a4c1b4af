"""How many pods a cluster, a namespace and a workload have: what limits in percent are about.

Counted are the pods that can be disrupted: bound to a node, neither finished nor terminating, and neither
static pods nor those of a DaemonSet, which are never moved. A pod that is about to be replaced does not count
before its replacement is bound: where much is missing, limits in percent allow less.

The cache keeps its counts current with each event, so asking costs nothing; a snapshot counts the namespaces
that have changed since the one before it. Both count by the same rules. The pods of a workload are those of
its controllers: a Deployment's are found by its ReplicaSets, however many others there are.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from reberth.cluster.pods.identity import DAEMON_SET_POD, MIRROR_POD, Signature, find_signature
from reberth.cluster.rows import FINISHED, TERMINATING, PodRow
from reberth.cluster.templates import Template
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused

K = TypeVar("K", bound=Hashable)

_LEAVING = FINISHED | TERMINATING


class NamespaceCount:
    """The pods of one namespace: all of them, and those of each template and of each controller's uid."""

    def __init__(self) -> None:
        self.pods = 0
        self.by_template: dict[Template, int] = {}
        self.by_controller: dict[str, int] = {}

    def add(self, template: Template, number: int) -> int:
        """Add pods, or remove them by a negative number; give the number by which the count has changed."""
        if template not in self.by_template and _stays_on_its_node(template):
            return 0
        _add_to(self.by_template, template, number)
        if template.controller is not None:
            _add_to(self.by_controller, template.controller.uid, number)
        self.pods += number
        return number


_EMPTY = NamespaceCount()


class PodCounts:
    """The counts of a cluster; the table of pods keeps those of a cache current."""

    def __init__(self, namespaces: Mapping[str, NamespaceCount] | None = None) -> None:
        self._namespaces = dict(namespaces or {})
        self.in_cluster = sum(each.pods for each in self._namespaces.values())

    def within(self, namespace: str) -> NamespaceCount:
        return self._namespaces.get(namespace, _EMPTY)

    def in_namespace(self, namespace: str) -> int:
        return self.within(namespace).pods

    def of_workload(
        self, namespace: str, workload: WorkloadIdentity, list_owned: Callable[[], Iterable[str]]
    ) -> int:
        """Count the pods of a workload; `list_owned` gives the uids of the controllers that it owns."""
        if _is_bare_pod(workload):
            return 1
        counts = self.within(namespace).by_controller
        return sum(counts.get(uid, 0) for uid in (workload.uid, *list_owned()))

    def change(self, before: PodRow | None, after: PodRow | None) -> None:
        """Count a pod as it is now instead of as it was."""
        old = None if before is None else _find_counted(before)
        new = None if after is None else _find_counted(after)
        if old is new:
            return
        if old is not None:
            self._add(old, -1)
        if new is not None:
            self._add(new, 1)

    def recount(self, namespaces: Mapping[str, Mapping[str, PodRow]]) -> None:
        """Count all pods of a new list: at once, which costs a third of counting one after the other."""
        counts = {namespace: count_namespace(rows.values()) for namespace, rows in namespaces.items()}
        self._namespaces = {namespace: each for namespace, each in counts.items() if each.by_template}
        self.in_cluster = sum(each.pods for each in self._namespaces.values())

    def _add(self, template: Template, number: int) -> None:
        found = self._namespaces.get(template.namespace)
        if found is None:
            found = self._namespaces[template.namespace] = NamespaceCount()
        self.in_cluster += found.add(template, number)
        if not found.by_template:
            del self._namespaces[template.namespace]


def count_namespace(rows: Iterable[PodRow]) -> NamespaceCount:
    """Count the pods of one namespace."""
    counts = NamespaceCount()
    counted = Counter(row.template for row in rows if row.node is not None and not row.marks & _LEAVING)
    for template, number in counted.items():
        counts.add(template, number)
    return counts


def list_guessed(
    templates: Iterable[Template], sign: Callable[[Template], Signature | Refused]
) -> dict[WorkloadIdentity, set[str]]:
    """Give the uids of the controllers of each workload of which only the name is known."""
    guessed = defaultdict[WorkloadIdentity, set[str]](set)
    for signature in map(sign, templates):
        if isinstance(signature, Signature) and not signature.root.uid:
            guessed[signature.root].add(signature.controller.uid)
    return guessed


def _is_bare_pod(workload: WorkloadIdentity) -> bool:
    """Tell whether the workload is a single pod that no controller owns."""
    return (workload.api_version, workload.kind) == ("v1", "Pod")


def _find_counted(row: PodRow) -> Template | None:
    """Give the template of a pod that counts. Whether it stays on its node is asked once for a template."""
    return None if row.node is None or row.marks & _LEAVING else row.template


def _stays_on_its_node(template: Template) -> bool:
    return find_signature(template.pod.metadata, {}) in (DAEMON_SET_POD, MIRROR_POD)


def _add_to(counts: dict[K, int], key: K, number: int) -> None:
    after = counts.get(key, 0) + number
    if after:
        counts[key] = after
    else:
        del counts[key]
