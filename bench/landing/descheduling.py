"""The descheduler's nodeFit: what it costs to find out that a pod fits on no other node.

The descheduler runs as it does in a cluster, cycle after cycle, with one plugin that looks at the candidates
alone. Its policy keeps the namespaces of all pods out, so that it never evicts; it asks nodeFit before that.
What a cycle takes without nodeFit is what the rest costs.
"""

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

from bench.landing.candidates import LARGE
from bench.reading.arms import Failed
from localcluster import building, processes
from localcluster.cluster import Cluster
from localcluster.products import DESCHEDULER

_NAME = "descheduler"
_PLUGIN = "PodLifeTime"
_CYCLES = 3
_PAUSE = 2
"""Seconds between two cycles; in the first, the program has its start to do as well."""
_PATIENCE = 900.0
_BETWEEN_LOOKS = 0.05
_MISFIT = "pod does not fit on any other node"
_COUNT, _SUM, _CPU = (
    "descheduler_descheduler_loop_duration_seconds_count",
    "descheduler_descheduler_strategy_duration_seconds_sum",
    "process_cpu_seconds_total",
)


class Cycle(NamedTuple):
    """Seconds of one cycle: of the plugin by the clock, and of CPU of the whole program."""

    wall: float
    cpu: float


async def measure(cluster: Cluster, sorts: Sequence[str], candidates: int) -> Mapping[str, Cycle]:
    """Give what nodeFit takes for one candidate of each sort."""
    without = await _run(cluster, LARGE, candidates, node_fit=False)
    cycles = {sort: await _run(cluster, sort, candidates, node_fit=True) for sort in sorts}
    return {sort: _share(cycle, without, candidates) for sort, cycle in cycles.items()}


def _share(cycle: Cycle, without: Cycle, candidates: int) -> Cycle:
    return Cycle(*((after - before) / candidates for after, before in zip(cycle, without, strict=True)))


async def _run(cluster: Cluster, sort: str, candidates: int, *, node_fit: bool) -> Cycle:
    """Let it run for some cycles."""
    name = f"{_NAME}-{sort}-{'with' if node_fit else 'without'}-node-fit"
    policy = cluster.folder / f"{name}.yaml"
    policy.write_text(yaml.safe_dump(describe_policy(sort, node_fit=node_fit)))
    command = _command(cluster, policy)
    running = processes.start(command, folder=cluster.folder, name=name, dies_with_parent=True)
    try:
        async with asyncio.timeout(_PATIENCE):
            begun = await _wait_for(cluster, 1, running)
            ended = await _wait_for(cluster, 1 + _CYCLES, running)
    finally:
        await processes.stop(running)
    if node_fit:
        _refuse_other_counts(cluster.log(name), candidates)
    cycles = ended[_COUNT] - begun[_COUNT]
    return Cycle(*((ended[part] - begun[part]) / cycles for part in (_SUM, _CPU)))


def _command(cluster: Cluster, policy: Path) -> list[str]:
    return [
        str(building.programs(DESCHEDULER)[_NAME]),
        f"--policy-config-file={policy}",
        f"--client-connection-kubeconfig={cluster.kubeconfig}",
        f"--descheduling-interval={_PAUSE}s",
        "--client-connection-qps=500",
        "--client-connection-burst=1000",
        "--bind-address=127.0.0.1",
        f"--secure-port={cluster.spare_port()}",
        f"--cert-dir={cluster.folder / 'pki' / _NAME}",
    ]


def describe_policy(namespace: str, *, node_fit: bool) -> dict[str, Any]:
    evictor = {"nodeFit": node_fit, "namespaceLabelSelector": {"matchLabels": {"of": "nobody"}}}
    lifetime = {"maxPodLifeTimeSeconds": 0, "namespaces": {"include": [namespace]}}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [
            {
                "name": "measured",
                "pluginConfig": [
                    {"name": "DefaultEvictor", "args": evictor},
                    {"name": _PLUGIN, "args": lifetime},
                ],
                "plugins": {"deschedule": {"enabled": [_PLUGIN]}},
            }
        ],
    }


async def _wait_for(cluster: Cluster, cycles: int, running: processes.Running) -> Mapping[str, float]:
    """Look again and again; the figures of the first look after so many cycles."""
    url = f"https://127.0.0.1:{cluster.spare_port()}/metrics"
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # it signs its certificate itself
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        while processes.is_alive(running):
            figures = await _look(session, url)
            if figures.get(_COUNT, 0) >= cycles:
                return figures
            await asyncio.sleep(_BETWEEN_LOOKS)
    raise Failed(f"{running.name} ended; see {cluster.log(running.name)}")


async def _look(session: aiohttp.ClientSession, url: str) -> Mapping[str, float]:
    """Nothing until it listens."""
    try:
        async with session.get(url) as answer:
            return read_metrics(await answer.text())
    except aiohttp.ClientError:
        return {}


def read_metrics(text: str) -> Mapping[str, float]:
    """Add up each metric over its labels."""
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def _refuse_other_counts(log: Path, candidates: int) -> None:
    """A candidate that fits somewhere is found out sooner, and one that is passed over costs nothing."""
    misfits = len(set(re.findall(rf'{_MISFIT}.*pod="([^"]+)"', log.read_text(errors="replace"))))
    if misfits != candidates:
        raise Failed(f"the descheduler found {misfits} pods that fit nowhere, not {candidates}; see {log}")
