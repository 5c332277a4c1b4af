"""Counts the ready replicas of many workloads in several clusters at once, by watches of their pods."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from localproduct.ready_pods import ReadyPods
from reberth.records import Pod


class Shortage(NamedTuple):
    """How many workloads were below desired, by how many replicas at the worst, and how long all together."""

    workloads: int
    missing: int
    seconds: float


NO_SHORTAGE = Shortage(0, 0, 0.0)


class ReadyFleet:
    """Ready replicas by workload; since `begin`, those below desired and for how long they were.

    Times are those at which the watches tell of a change, all by one clock.
    """

    def __init__(self, desired: Mapping[str, int], clock: Callable[[], float] = time.monotonic) -> None:
        self._desired = desired
        self._pods = {name: ReadyPods(name) for name in desired}
        self._clock = clock
        self._below: dict[str, float] = {}
        self._seconds: dict[str, float] = {}

    def begin(self) -> None:
        self._seconds, self._below = {}, {}
        for name, pods in self._pods.items():
            pods.fewest = self._desired[name]
            self._note(name)

    def hear(self, cluster: str, event: str, pod: Pod) -> None:
        name = (pod.metadata.labels or {}).get("app", "")
        if name in self._pods:
            self._pods[name].hear(cluster, event, pod)
            self._note(name)

    def _note(self, name: str) -> None:
        now = self._clock()
        is_below = sum(self._pods[name].places.values()) < self._desired[name]
        if name in self._below:
            self._seconds[name] = self._seconds.get(name, 0.0) + now - self._below.pop(name)
        if is_below:
            self._below[name] = now

    @property
    def shortage(self) -> Shortage:
        for name in list(self._below):
            self._note(name)
        missing = [max(0, self._desired[name] - pods.fewest) for name, pods in self._pods.items()]
        return Shortage(sum(map(bool, missing)), max(missing, default=0), sum(self._seconds.values()))

    def is_in(self, cluster: str) -> bool:
        """Whether all replicas of every workload are ready in this cluster, and none elsewhere."""
        return all(pods.places == {cluster: self._desired[name]} for name, pods in self._pods.items())

    async def gather(self, cluster: str, *, within: float) -> None:
        """Wait until they are. Raises LocalClusterError."""
        deadline = asyncio.get_running_loop().time() + within
        for name, pods in self._pods.items():
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            await pods.become({cluster: self._desired[name]}, within=left)
