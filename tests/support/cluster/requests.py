"""Build pods with resource requests, and count the requests."""

from typing import Any

from reberth.cluster.pods.requests import (
    NEWEST,
    PodRequests,
    Version,
    count_bound_requests,
    count_incoming_requests,
)
from reberth.records import Pod, PodSpec
from tests.support import builders

Object = dict[str, Any]

MI = 2**20
VERSIONS: list[Version] = [(1, 35), (1, 36), (1, 37)]


def spec(*containers: Object, init: tuple[Object, ...] = (), **fields: Any) -> Object:
    return {"containers": list(containers), "initContainers": list(init), **fields}


def container(name: str, *, stays: bool = False, **amounts: str) -> Object:
    made = {"name": name, "resources": asking(**amounts)}
    return made | {"restartPolicy": "Always"} if stays else made


def asking(**amounts: str) -> Object:
    return {"requests": named(amounts)}


def named(amounts: dict[str, str]) -> dict[str, str]:
    """Resources as keyword arguments: `example_com__gpu` is example.com/gpu."""
    return {name.replace("__", "/").replace("_", "-"): amount for name, amount in amounts.items()}


def state(name: str, actual: Object | None = None, **allocated: str) -> Object:
    return {"name": name, "resources": actual, "allocatedResources": named(allocated)}


def pending(reason: str, *, status: str = "True") -> Object:
    return {"type": "PodResizePending", "reason": reason, "status": status}


def bound(asked: Object, version: Version = NEWEST, **status: Any) -> PodRequests:
    built = {"metadata": {"name": "web"}, "spec": asked, "status": status}
    return count_bound_requests(builders.as_record(Pod, built), version=version)


def incoming(asked: Object) -> PodRequests:
    return count_incoming_requests(builders.as_record(PodSpec, asked))


def load(demand: PodRequests) -> tuple[int, int]:
    return demand.load_cpu, demand.load_memory
