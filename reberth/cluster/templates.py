"""Templates: one object for all pods that are alike.

A template is found by its content, not by the order of arrival: pods share a template if, and only if, their
common parts are equal. A template never spans workloads, since the common part contains the controller; so
the last template of an owner is the best guess for its next pod, and avoids the search. A template lives as
long as a row or snapshot refers to it.
"""

from array import array
from hashlib import blake2b
from itertools import islice
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from reberth.cluster.object_size import LARGE, NamespaceSizes, shorten, weigh
from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.requests import (
    CPU,
    MEMORY,
    NEWEST,
    PODS,
    STORAGE,
    Amounts,
    Version,
    count_bound_requests,
)
from reberth.records import Labels, Pod, PodSpec, WorkloadIdentity

# The resources that every node has, in the order in which their amounts are stored.
RESOURCES = (CPU, MEMORY, STORAGE, PODS)

_NONE: Amounts = {}
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
_LONGEST_UID = 128
_MOST_EXTENDED = 64


class PriorityError(ValueError):
    """The number is outside the range of a priority."""


class Template(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """The common part of some pods, and the values derived from it.

    A pod may have more labels of its own, and its own spec contains its claims and its node.
    """

    pod: Pod
    controller: WorkloadIdentity | None
    namespace: str
    labels: Labels
    priority: int
    main: bytes  # what a bound pod requests of RESOURCES, packed
    extended: Amounts  # and of all other resources
    load: bytes  # cpu and memory, with a default for containers that request nothing, packed
    is_cut: bool = False  # the pod was too large: all numbers are whole, its lists and texts are not

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec


class Templates:
    """The templates in use; `annotations` are kept in addition to those that are always read."""

    def __init__(
        self,
        *,
        version: Version,
        annotations: frozenset[str] = frozenset(),
        sizes: NamespaceSizes | None = None,
    ) -> None:
        self.annotations = annotations
        self._sizes = sizes or NamespaceSizes()
        self._version = version
        self._by_content: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._by_owner: WeakValueDictionary[str, Template] = WeakValueDictionary()
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def __len__(self) -> int:
        return len(self._by_content)

    def take_version(self, version: Version) -> None:
        """Count requests for this version from now on; earlier templates are not shared any more."""
        self._version = version
        self._by_content.clear()
        self._by_owner.clear()

    def share(self, common: Pod) -> Template:
        """Give the template of a common part; create it for the first pod."""
        owners = common.metadata.owner_references
        owner = owners[0].uid[:_LONGEST_UID] if owners else ""
        latest = self._by_owner.get(owner)
        if latest is not None and latest.pod == common:
            return latest
        template = self._by_owner[owner] = self._find(common)
        return template

    def _find(self, common: Pod) -> Template:
        text = self._encode(common)
        content = blake2b(text, digest_size=16).digest()
        template = self._by_content.get(content)
        if template is None:
            template = make_template(common, self._version)
            if (size := weigh(text)) > LARGE:
                template = self._limit(template, content, size)
            self._by_content[content] = template
        return template

    def _limit(self, whole: Template, content: bytes, size: int) -> Template:
        most = self._sizes.limit(whole.namespace, content, size)
        template = whole if size <= most else _cut(whole, most)
        self._sizes.put(whole.namespace, content, min(size, most))
        self._sizes.drop_with(template, whole.namespace, content)
        return template


def make_bare_template(common: Pod) -> Template:
    """Make the template of a pod that does not exist yet: without a status, every version counts it alike."""
    return make_template(common, NEWEST)


def pack(*amounts: int) -> bytes:
    """Pack amounts in the format of the columns, so that a million of them are read at once."""
    return array("q", amounts).tobytes()


def part_amounts(amounts: Amounts) -> tuple[bytes, Amounts]:
    """Split amounts into those of RESOURCES, packed, and all others by name."""
    main = pack(*[amounts.get(name, 0) for name in RESOURCES])
    return main, {name: amount for name, amount in amounts.items() if name not in RESOURCES} or _NONE


def _cut(whole: Template, most: int) -> Template:
    """Keep what the pod takes from its node, and as much of the rest as it may have."""
    pod = shorten(whole.pod, most)
    return replace(
        whole,
        pod=pod,
        controller=find_controller(pod.metadata),
        labels=pod.metadata.labels or {},
        extended=dict(islice(whole.extended.items(), _MOST_EXTENDED)),
        is_cut=True,
    )


def make_template(common: Pod, version: Version) -> Template:
    """Make the template of a common part that no pod has yet."""
    priority = common.spec.priority or 0
    if not _LOWEST <= priority <= _HIGHEST:
        raise PriorityError(f"{priority} does not fit into 32 bits")
    demand = count_bound_requests(common, version=version)
    main, extended = part_amounts({**demand.amounts, PODS: 1})
    return Template(
        pod=common,
        controller=find_controller(common.metadata),
        namespace=common.metadata.namespace,
        labels=common.metadata.labels or {},
        priority=priority,
        main=main,
        extended=extended,
        load=pack(demand.load_cpu, demand.load_memory),
    )
