"""Templates: one object for all pods that are alike.

A template is found by what it says, not by who came first: pods share one if, and only if, their common
parts are equal, in whatever order they arrive. That keeps it within a workload, since the common part names
the controller; so the last template of an owner is the best guess for its next pod, and saves the search. A
template lives as long as some row or snapshot has it.
"""

from array import array
from hashlib import blake2b
from weakref import WeakValueDictionary

import msgspec

from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.requests import CPU, MEMORY, PODS, STORAGE, Amounts, Version, count_bound_requests
from reberth.records import Labels, Pod, PodSpec, WorkloadIdentity

# The resources that every node has; amounts of them stand in this order.
RESOURCES = (CPU, MEMORY, STORAGE, PODS)

_NONE: Amounts = {}
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class PriorityError(ValueError):
    """The number is beyond what a priority can be."""


class Template(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """What some pods have in common, and what follows from it.

    A pod may have more labels of its own, and a spec that names its claims and its node.
    """

    pod: Pod
    controller: WorkloadIdentity | None
    namespace: str
    labels: Labels
    priority: int
    main: bytes  # what a bound pod requests of RESOURCES, packed
    extended: Amounts  # and of other resources
    load: bytes  # cpu and memory with something assumed for containers that request nothing, packed

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec


class Templates:
    """The templates in use; `annotations` are kept beside those that are always read."""

    def __init__(self, *, version: Version, annotations: frozenset[str] = frozenset()) -> None:
        self.annotations = annotations
        self._version = version
        self._by_content: WeakValueDictionary[bytes, Template] = WeakValueDictionary()
        self._by_owner: WeakValueDictionary[str, Template] = WeakValueDictionary()
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def __len__(self) -> int:
        return len(self._by_content)

    def share(self, common: Pod) -> Template:
        """Give the template of a common part, a new one for the first of its kind."""
        owners = common.metadata.owner_references
        owner = owners[0].uid if owners else ""
        latest = self._by_owner.get(owner)
        if latest is not None and latest.pod == common:
            return latest
        template = self._by_owner[owner] = self._find(common)
        return template

    def _find(self, common: Pod) -> Template:
        content = blake2b(self._encode(common), digest_size=16).digest()
        template = self._by_content.get(content)
        if template is None:
            template = self._by_content[content] = _make(common, self._version)
        return template


def pack(*amounts: int) -> bytes:
    """Write amounts as columns have them, so that a million of them are read at once."""
    return array("q", amounts).tobytes()


def part_amounts(amounts: Amounts) -> tuple[bytes, Amounts]:
    """Part amounts into those of RESOURCES, packed, and the others by name."""
    main = pack(*[amounts.get(name, 0) for name in RESOURCES])
    return main, {name: amount for name, amount in amounts.items() if name not in RESOURCES} or _NONE


def _make(common: Pod, version: Version) -> Template:
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
