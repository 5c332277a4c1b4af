"""A class of change between a running pod and its replacement, with the right answer stated first.

A class lays out its objects, lets pods come up, and changes something. Then every pod is deleted in turn, and
what the controller creates is held against what was foretold.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from localcluster.client import Client
from tests.support.builders import Object

CORE = "/api/v1/namespaces"
APPS = "/apis/apps/v1/namespaces"
Change = Callable[[Client, str], Awaitable[None]]


class Expected(NamedTuple):
    """What is right of the next pod: a rule that refuses it, or what it has."""

    refused: str | None = None
    cpu: str | None = None
    containers: tuple[str, ...] = ("main",)
    tolerates: str | None = None
    priority: int | None = None
    image: str | None = None
    overhead_cpu: str | None = None
    has_affinity: bool = False


class ChangeClass(NamedTuple):
    """A class of change; `before` are the objects that are there when the pods are created."""

    name: str
    expected: Expected
    change: Change
    workload: Callable[[int], Object]
    before: Callable[[str], list[tuple[str, Object]]] = lambda _namespace: []
    narrow: Mapping[str, Any] = {"cpu": "64"}
    """Nodes for the second half of the pods: of the pod and its replacement, only one fits if they differ."""
    blocks: bool = False
    """The API server creates no pod any more, or any of several: none is deleted."""
    shows: str = ""
    """What a policy adds to the spec of a pod, once the API server has taken notice of it."""
