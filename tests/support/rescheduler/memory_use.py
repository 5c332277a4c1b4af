"""Measure the memory of a rescheduler: the daemon's code with its caches, without connections.

    python -m tests.support.rescheduler.memory_use PODS REPLICAS NAMESPACES

Prints two figures in MiB: after a few plans, and the peak after all pods were then read again, as they are
for a new version of Kubernetes. With 0 NAMESPACES each workload has its own.
"""

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

import rescheduler.daemon.process  # noqa: F401 - its memory counts, too
from reberth.cluster import kinds
from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import Kind
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.snapshot import build
from reberth.records import Namespace, Node, Pod, Record, Service
from rescheduler.planning.planner import plan
from tests.support.builders import Object, node, owner, pod
from tests.support.rescheduler.plans import MODEL, policy

PODS_PER_NODE = 28
NOW = 1_800_000_000.0

R = TypeVar("R", bound=Record)


class Fill:
    """A cluster of workloads with a ReplicaSet and a Deployment each, half of them with a Service."""

    def __init__(self, pods: int, replicas: int, namespaces: int) -> None:
        self.cache = Cache(version=NEWEST)
        self._nodes = max(10, pods // PODS_PER_NODE)
        self._workloads = pods // replicas
        self._replicas = replicas
        self._namespaces = namespaces or self._workloads
        self._version = 0

    def read_all(self) -> None:
        for number in range(self._nodes):
            made = node(f"n-{number:05d}", cpu="16", memory="64Gi")
            made["metadata"]["uid"] = f"node-{number}"
            self.read(kinds.NODE, Node, made)
        for number in range(self._namespaces):
            self.read(kinds.NAMESPACE, Namespace, _meta(f"ns-{number:06d}", ""))
        for each in self.list_pods():
            self.read(kinds.POD, Pod, each)
        for number in range(self._workloads):
            self._read_owners(number)

    def read_pods_again(self) -> None:
        self.cache.take_version((1, 37))
        listing = self.cache.relist(kinds.POD)
        for each in self.list_pods():
            listing.apply(ADDED, self._decode(Pod, each))
        listing.finish(str(self._version))

    def read(self, kind: Kind[Any, Any], record: type[Record], content: Object) -> None:
        self.cache.apply(kind, ADDED, self._decode(record, content))

    def list_pods(self) -> Iterator[Object]:
        """List the pods; the first of each workload is on one of a tenth of the nodes."""
        for number in range(self._workloads):
            crowded = number % max(self._nodes // 10, 1)
            controller = owner("ReplicaSet", f"web-{number}-5d8f7c", uid=f"rs-{number}")
            for replica in range(self._replicas):
                spread = (7 * number + 13 * replica) % self._nodes
                yield pod(
                    f"web-{number}-5d8f7c-{replica}",
                    node=f"n-{spread if replica else crowded:05d}",
                    namespace=self._namespace_of(number),
                    cpu="250m",
                    memory="512Mi",
                    owned_by=controller,
                    uid=f"0b5c9f6e-{number:08d}-{replica}",
                    labels={"app": f"web-{number}", "pod-template-hash": "5d8f7c"},
                )

    def _read_owners(self, number: int) -> None:
        space, replicas = self._namespace_of(number), {"replicas": self._replicas}
        counted = {"spec": replicas, "status": replicas}
        for kind, name in ((kinds.REPLICA_SET, f"web-{number}-5d8f7c"), (kinds.DEPLOYMENT, f"web-{number}")):
            self.read(kind, kind.record, {**_meta(name, space), **counted})
        if number % 2:
            selector = {"selector": {"app": f"web-{number}"}}
            self.read(kinds.SERVICE, Service, {**_meta(f"web-{number}", space), "spec": selector})

    def _namespace_of(self, number: int) -> str:
        return f"ns-{number % self._namespaces:06d}"

    def _decode(self, record: type[R], content: Object) -> R:
        """Decode the bytes, as they come from the API server: texts are not shared between objects."""
        self._version += 1
        content["metadata"]["resourceVersion"] = str(self._version)
        return msgspec.json.decode(json.dumps(content).encode(), type=record)


def _meta(name: str, namespace: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}"}}


def _read_status(field: str) -> float:
    """Read a figure of this process, in MiB; the peak of getrusage would include that of its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (each for each in lines if each.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def main() -> None:
    pods, replicas, namespaces = (int(each) for each in sys.argv[1:])
    fill = Fill(pods, replicas, namespaces)
    fill.read_all()
    gc.collect()
    gc.freeze()  # as the daemon does
    asked = policy(mode="apply", limits={"rates": {"cluster": []}})
    changing = next(fill.list_pods())
    for turn in range(3):
        plan(build(fill.cache.contents(), now=NOW + turn), asked, None, model=MODEL)
        fill.read(kinds.POD, Pod, changing)
    after_plans = _read_status("VmRSS")
    fill.read_pods_again()
    plan(build(fill.cache.contents(), now=NOW), asked, None, model=MODEL)
    peak = _read_status("VmHWM")
    sys.stdout.write(f"{after_plans:.0f} {peak:.0f}\n")


if __name__ == "__main__":
    main()
