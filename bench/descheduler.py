"""Runs the released descheduler against a real API server, cycle after cycle, and reads its metrics."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

from bench.reading.arms import Failed
from localcluster.build import build
from localcluster.build.products import DESCHEDULER
from localcluster.cluster import Cluster
from localcluster.host import processes

USER = "descheduler"
"""By this name the API server knows it; it may do everything."""
_NAME = "descheduler"
_PAUSE = 2
"""Seconds between two cycles."""
_PATIENCE = 900.0
_BETWEEN_LOOKS = 0.05
_COUNT = "descheduler_descheduler_loop_duration_seconds_count"

Figures = Mapping[str, float]


class Watched(NamedTuple):
    """Its metrics after the first cycle, in which it has its start to do as well, and after the last one."""

    begun: Figures
    ended: Figures
    log: Path

    def per_cycle(self, metric: str) -> float:
        """Return by how much a metric has grown in a cycle; 0 if it does not exist."""
        grown = self.ended.get(metric, 0.0) - self.begun.get(metric, 0.0)
        return grown / (self.ended[_COUNT] - self.begun[_COUNT])


async def watch(
    cluster: Cluster, name: str, policy: Mapping[str, Any], *, cycles: int, dry_run: bool = False
) -> Watched:
    """Let it run under a policy for some cycles after the first."""
    async with active(cluster, name, policy, dry_run=dry_run) as running, asyncio.timeout(_PATIENCE):
        begun = await wait_for(cluster, 1, running)
        ended = await wait_for(cluster, 1 + cycles, running)
    return Watched(begun, ended, cluster.log(name))


@asynccontextmanager
async def active(
    cluster: Cluster,
    name: str,
    policy: Mapping[str, Any],
    *,
    dry_run: bool = False,
    requests_per_second: int = 500,
    burst: int = 1000,
) -> AsyncIterator[processes.Running]:
    """Let it run under a policy for as long as the context lasts."""
    file = cluster.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(dict(policy)))
    limits = [f"--client-connection-qps={requests_per_second}", f"--client-connection-burst={burst}"]
    command = [*_command(cluster, file), *limits, *(["--dry-run"] if dry_run else [])]
    running = processes.start(command, folder=cluster.folder, name=name, dies_with_parent=True)
    try:
        yield running
    finally:
        await processes.stop(running)


def describe_policy(
    plugin: str, kind: str, arguments: Mapping[str, Any], *, evictor: Mapping[str, Any], **limits: int
) -> dict[str, Any]:
    """Write a policy with one plugin of a kind."""
    profile = {
        "name": "measured",
        "pluginConfig": [
            {"name": "DefaultEvictor", "args": dict(evictor)},
            {"name": plugin, "args": dict(arguments)},
        ],
        "plugins": {kind: {"enabled": [plugin]}},
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        **limits,
        "profiles": [profile],
    }


def read_metrics(text: str) -> Figures:
    """Add up each metric over its labels."""
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(\w+)(?:\{.*\})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def _command(cluster: Cluster, policy: Path) -> list[str]:
    return [
        str(build.programs(DESCHEDULER)[_NAME]),
        f"--policy-config-file={policy}",
        f"--client-connection-kubeconfig={cluster.user(USER, groups=['system:masters'])}",
        f"--descheduling-interval={_PAUSE}s",
        "--bind-address=127.0.0.1",
        f"--secure-port={cluster.spare_port()}",
        f"--cert-dir={cluster.folder / 'pki' / _NAME}",
    ]


async def wait_for(cluster: Cluster, cycles: int, running: processes.Running) -> Figures:
    """Poll the metrics; returns the first ones after this many cycles."""
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


async def _look(session: aiohttp.ClientSession, url: str) -> Figures:
    """Nothing until it listens."""
    try:
        async with session.get(url) as answer:
            return read_metrics(await answer.text())
    except aiohttp.ClientError:
        return {}
