"""The pods whose lives on real nodes are recorded: how they are made, and what happens to them."""

import asyncio
import contextlib
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcluster.client import Client, Refused
from localcluster.cluster import Cluster
from localcluster.host import processes
from localcluster.nodes import is_ready
from localcluster.realnodes.images import BUSYBOX
from localcluster.recorder import Change, Recorder, recording
from tests.live.support.pod_lives import list_distinct
from tests.live.support.real_pods import NODES, PODS, is_gone, real_pod

CALM_NODE, TROUBLED_NODE = "real-1", "real-2"
_SLEEPS = "sleep 100000"
_POLITE = "trap 'exit 0' TERM; while :; do sleep 0.2; done"
_STUBBORN = "trap '' TERM; while :; do sleep 1; done"
_LOSES_ITS_FILE = "touch /tmp/ok; sleep 6; rm /tmp/ok; sleep 100000"
_EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction"}
_SECONDS_OF_A_LIFE = 100.0


@dataclass(frozen=True)
class KubeletCase:
    """A pod of one container, and how many different states of it are recorded."""

    states: int
    command: str = _SLEEPS
    container: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)

    def make(self, name: str, node: str) -> dict[str, Any]:
        spec = {"grace": 5, "container": dict(self.container), **self.spec}
        return real_pod(name, self.command, node=node, **spec)


def _probe(kind: str, *command: str, failures: int = 3) -> dict[str, Any]:
    return {kind: {"exec": {"command": command}, "periodSeconds": 1, "failureThreshold": failures}}


def _amounts(cpu: str, memory: str, *, limited: bool = False) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory}
    return {"resources": {"requests": amounts, **({"limits": amounts} if limited else {})}}


def _tolerates(seconds: int | None) -> dict[str, Any]:
    usual = {"operator": "Exists", "effect": "NoExecute"}
    more = {} if seconds is None else {"tolerationSeconds": seconds}
    names = ("not-ready", "unreachable")
    return {"tolerations": [{"key": f"node.kubernetes.io/{name}", **usual, **more} for name in names]}


_INIT_CRASH = {"initContainers": [{"name": "init", "image": BUSYBOX, "args": ["exit 7"]}]}
_NOWHERE = {"image": "127.0.0.1:5999/none:1"}
CALM = {
    "c01-crash-exit1": KubeletCase(12, "sleep 1; exit 1"),
    "c01-init-crash": KubeletCase(9, spec=_INIT_CRASH),
    "c02-oom-main": KubeletCase(12, "exec tail /dev/zero", _amounts("50m", "24Mi", limited=True)),
    "c03-outofcpu": KubeletCase(3, container=_amounts("64", "10Mi")),
    "c04-liveness": KubeletCase(
        9, _LOSES_ITS_FILE, _probe("livenessProbe", "/bin/test", "-f", "/tmp/ok", failures=2)
    ),
    "c04-never-ready": KubeletCase(4, container=_probe("readinessProbe", "/bin/false")),
    "c09-pull-refused": KubeletCase(5, container=_NOWHERE),
}
EVICTED = {"c05-evict-polite": KubeletCase(9, _POLITE), "c05-evict-stubborn": KubeletCase(9, _STUBBORN)}
LOST = {
    "c10-node-lost-goes": KubeletCase(9, _POLITE, spec=_tolerates(1)),
    "c10-node-lost-stays": KubeletCase(8, _SLEEPS, _probe("readinessProbe", "/bin/true"), _tolerates(None)),
}
REBOOTED = {
    "c11-reboot-never": KubeletCase(5, spec={"restartPolicy": "Never"}),
    "c11-reboot-probe": KubeletCase(9, _SLEEPS, _probe("readinessProbe", "/bin/true")),
}
PRESSED = {"c06-pressure-hog": KubeletCase(5, container=_amounts("10m", "50Mi"))}
CASES = CALM | EVICTED | PRESSED | LOST | REBOOTED


async def record_cases(cluster: Cluster, names: Iterable[str] = CASES) -> dict[str, list[Change]]:
    """The different states of each pod, in their order; the cluster has two real nodes."""
    wanted = set(names)
    async with cluster.client() as client, recording(cluster, ["pods"]) as recorder:
        stage = Stage(cluster, client, recorder)
        calm = (stage.play({name}) for name in wanted & CALM.keys())
        evicted = (stage.play_eviction(name) for name in wanted & EVICTED.keys())
        await asyncio.gather(*calm, *evicted, stage.play_troubles(wanted))
        return {name: stage.list_states(name) for name in CASES if name in wanted}


class Stage:
    """Plays cases on the nodes of a cluster while they are recorded."""

    def __init__(self, cluster: Cluster, client: Client, recorder: Recorder) -> None:
        self._cluster = cluster
        self._client = client
        self._recorder = recorder

    def list_states(self, name: str) -> list[Change]:
        return list_distinct(self._recorder.states_of(name))[: CASES[name].states]

    async def play(self, names: set[str], node: str = CALM_NODE) -> None:
        await self._create(names, node)
        await self._finish(names)

    async def play_eviction(self, name: str) -> None:
        await self._create({name}, CALM_NODE)
        await self._client.wait(f"{PODS}/{name}", is_ready)
        await self._client.create(f"{PODS}/{name}/eviction", {**_EVICTION, "metadata": {"name": name}})
        await self._finish({name})

    async def play_troubles(self, wanted: set[str]) -> None:
        """One after the other: each happens to the whole node."""
        plays = ((LOST, self._lose), (REBOOTED, self._reboot), (PRESSED, self._press))
        for cases, happen in plays:
            names = wanted & cases.keys()
            if names:
                await self._create(names, TROUBLED_NODE)
                for name in names:
                    await self._client.wait(f"{PODS}/{name}", is_ready)
                await happen(names)

    async def _lose(self, names: set[str]) -> None:
        """Stop the kubelet until the controllers have noticed, then start it again."""
        node = self._cluster.real_node(TROUBLED_NODE)
        kubelet = node.service("kubelet")
        processes.send(kubelet, signal.SIGSTOP)
        for name in names:
            await self._client.wait(f"{PODS}/{name}", _is_given_up, seconds=60)
        await processes.kill(kubelet)
        await self._finish(names)
        await self._client.wait(f"{NODES}/{TROUBLED_NODE}", _is_usable, seconds=60)

    async def _reboot(self, names: set[str]) -> None:
        await self._cluster.real_node(TROUBLED_NODE).reboot()
        await self._finish(names)

    async def _press(self, names: set[str]) -> None:
        node = self._cluster.real_node(TROUBLED_NODE)
        await node.press()
        try:
            await self._finish(names)
        finally:
            await node.relieve()

    async def _create(self, names: set[str], node: str) -> None:
        for name in names:
            await self._client.create(PODS, CASES[name].make(name, node))

    async def _finish(self, names: set[str]) -> None:
        """Wait until all states are recorded, or no more come; nothing is left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_OF_A_LIFE):
                while any(len(self.list_states(name)) < CASES[name].states for name in names):
                    await asyncio.sleep(0.1)
        for name in names:
            with contextlib.suppress(Refused):  # it is gone
                await self._client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
            await self._client.wait(PODS, is_gone(name))


def _is_given_up(pod: Any) -> bool:
    """Not Ready by the word of the controllers, and on its way if it tolerates that for a while only."""
    goes = any("tolerationSeconds" in each for each in pod["spec"]["tolerations"])
    return "deletionTimestamp" in pod["metadata"] if goes else not is_ready(pod)


def _is_usable(node: Any) -> bool:
    return is_ready(node) and not node["spec"].get("taints")
