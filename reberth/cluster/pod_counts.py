"""How many pods a cluster, a namespace and a workload have: what limits in percent are about.

Counted are the pods that can be disrupted: bound to a node, neither finished nor terminating, and neither
static pods nor those of a DaemonSet, which are never moved. A pod that is about to be replaced does not count
before its replacement is bound: where much is missing, limits in percent allow less.

The cache keeps its counts current with each event, so asking costs nothing; a snapshot counts the namespaces
that have changed since the one before it. Both count by the same rules.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

from reberth.cluster.pods.identity import DAEMON_SET_POD, MIRROR_POD, Signature, find_signature
from reberth.cluster.rows import FINISHED, TERMINATING, PodRow
from reberth.cluster.templates import Template
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused

_LEAVING = FINISHED | TERMINATING


class NamespaceCount:
    """The pods of one namespace: all of them, and those of each template."""

    def __init__(self) -> None:
        self.pods = 0
        self.by_template: dict[Template, int] = {}

    def add(self, template: Template, number: int) -> int:
        """Add pods, or remove them by a negative number; give the number by which the count has changed."""
        before = self.by_template.get(template, 0)
        if not before and _stays_on_its_node(template):
            return 0
        after = before + number
        if after:
            self.by_template[template] = after
        else:
            del self.by_template[template]
        self.pods += number
        return number


class PodCounts:
    """The counts of a cluster; the table of pods keeps those of a cache current."""

    def __init__(self, namespaces: Mapping[str, NamespaceCount] | None = None) -> None:
        self._namespaces = dict(namespaces or {})
        self.in_cluster = sum(each.pods for each in self._namespaces.values())

    def in_namespace(self, namespace: str) -> int:
        found = self._namespaces.get(namespace)
        return found.pods if found else 0

    def templates_in(self, namespace: str) -> Iterator[tuple[Template, int]]:
        """Give each template of a namespace and the number of its pods."""
        found = self._namespaces.get(namespace)
        return iter(found.by_template.items() if found else ())

    def of_workload(
        self, namespace: str, workload: WorkloadIdentity, sign: Callable[[Template], Signature | Refused]
    ) -> int:
        """Count the pods of one workload: what owns its pods itself is found without a signature."""
        if is_bare_pod(workload):
            return 1
        templates = list(self.templates_in(namespace))
        own = sum(number for each, number in templates if _is_owned(each, workload))
        return own or count_workloads(templates, sign).get(key_of(workload), 0)

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


def count_workloads(
    templates: Iterable[tuple[Template, int]], sign: Callable[[Template], Signature | Refused]
) -> dict[Hashable, int]:
    """Count the pods of each workload of a namespace, by the key of the workload."""
    counts: dict[Hashable, int] = {}
    for template, number in templates:
        signature = sign(template)
        if isinstance(signature, Signature):
            key = key_of(signature.root)
            counts[key] = counts.get(key, 0) + number
    return counts


def key_of(workload: WorkloadIdentity) -> Hashable:
    """Tell the workloads of a namespace apart: by uid, or by name where no uid is known."""
    return workload.uid or (workload.kind, workload.name)


def is_bare_pod(workload: WorkloadIdentity) -> bool:
    """Tell whether the workload is a single pod that no controller owns."""
    return (workload.api_version, workload.kind) == ("v1", "Pod")


def _find_counted(row: PodRow) -> Template | None:
    """Give the template of a pod that counts. Whether it stays on its node is asked once for a template."""
    return None if row.node is None or row.marks & _LEAVING else row.template


def _is_owned(template: Template, workload: WorkloadIdentity) -> bool:
    return template.controller is not None and template.controller.uid == workload.uid != ""


def _stays_on_its_node(template: Template) -> bool:
    return find_signature(template.pod.metadata, {}) in (DAEMON_SET_POD, MIRROR_POD)
