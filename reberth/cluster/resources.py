"""Where the API server keeps each kind, and which kinds live in namespaces."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from reberth.cluster import kinds
from reberth.cluster.kinds import Kind
from reberth.records import Record

Wire = TypeVar("Wire", bound=Record)


@dataclass(frozen=True, slots=True)
class Resource(Generic[Wire]):
    """A kind at its place in the API; `name` is its plural, as RBAC and metrics know it."""

    kind: Kind[Wire, Any]
    name: str
    version: str = "v1"
    namespaced: bool = True
    is_optional: bool = False
    """It belongs to somebody else: where it is not installed there is simply none of it."""

    @property
    def record(self) -> type[Wire]:
        return self.kind.record

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    def path(self, name: str = "", *, namespace: str = "", subresource: str = "") -> str:
        """Path of the collection, of all namespaces if none is named, or of one object."""
        root = "/apis" if self.kind.group else "/api"
        within = f"/namespaces/{namespace}" if namespace else ""
        parts = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}/{self.api_version}{within}/{self.name}{parts}"

    def encode(self, body: Wire) -> bytes:
        """The object as it is sent; the API server wants to be told what it is."""
        fields = msgspec.to_builtins(body)
        return msgspec.json.encode({"apiVersion": self.api_version, "kind": self.kind.name, **fields})


PODS = Resource(kinds.POD, "pods")
NODES = Resource(kinds.NODE, "nodes", namespaced=False)
BUDGETS = Resource(kinds.BUDGET, "poddisruptionbudgets")
HISTORIES = Resource(kinds.HISTORY, "evictionhistories", "v1alpha1")
LEDGERS = Resource(kinds.LEDGER, "moveledgers", "v1alpha1", namespaced=False)
SCORES = Resource(kinds.SCORE, "nodeplacementscores", "v1alpha1", namespaced=False)

ALL: tuple[Resource[Any], ...] = (
    PODS,
    NODES,
    BUDGETS,
    HISTORIES,
    LEDGERS,
    SCORES,
    Resource(kinds.NAMESPACE, "namespaces", namespaced=False),
    Resource(kinds.SERVICE, "services"),
    Resource(kinds.QUOTA, "resourcequotas"),
    Resource(kinds.CLAIM, "persistentvolumeclaims"),
    Resource(kinds.VOLUME, "persistentvolumes", namespaced=False),
    Resource(kinds.REPLICATION_CONTROLLER, "replicationcontrollers"),
    Resource(kinds.REPLICA_SET, "replicasets"),
    Resource(kinds.STATEFUL_SET, "statefulsets"),
    Resource(kinds.DEPLOYMENT, "deployments"),
    Resource(kinds.JOB, "jobs"),
    Resource(kinds.AUTOSCALER, "horizontalpodautoscalers", "v2"),
    Resource(kinds.SCALED_OBJECT, "scaledobjects", "v1alpha1", is_optional=True),
    Resource(kinds.PRIORITY_CLASS, "priorityclasses", namespaced=False),
    Resource(kinds.STORAGE_CLASS, "storageclasses", namespaced=False),
    Resource(kinds.ATTACHMENT, "volumeattachments", namespaced=False),
    Resource(kinds.CSI_NODE, "csinodes", namespaced=False),
    Resource(kinds.CSI_DRIVER, "csidrivers", namespaced=False),
    Resource(kinds.CSI_CAPACITY, "csistoragecapacities"),
)
