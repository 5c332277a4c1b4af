"""A burst: all pods wait, kube-scheduler is started, and everything is over when the last one is bound."""

import asyncio
import os
import re
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from bench.extender.arms import NONE, Serving, configure, read_page, serving
from bench.extender.asking import VERBS
from bench.extender.populating import Population
from bench.reading.arms import Failed, Figures
from localcluster import credentials, design_files
from localcluster.cluster import Cluster
from localcluster.components import SCHEDULER
from localcluster.host.ports import HOST

_ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds"
_SCHEDULED = ("scheduler_schedule_attempts_total", 'result="scheduled"')
_ANSWERED = ("reberth_extender_requests_total", 'result="answered"')
_BETWEEN_LOOKS = 0.1
_PATIENCE = 600.0
_TICKS = os.sysconf("SC_CLK_TCK")


async def burst(cluster: Cluster, population: Population, arm: str, *, pods: int) -> Figures:
    """Schedule pods with the extender of an arm. Leaves no pod behind."""
    await population.add_pods(range(pods))
    async with AsyncExitStack() as stack:
        extender = None
        if arm != NONE:
            extender = await stack.enter_async_context(serving(cluster, arm, population.table))
        design_files.write_scheduler_configuration(cluster.design, configure(extender and extender.port))
        used = read_cpu(extender.process.pid) if extender else 0.0
        await cluster.start(SCHEDULER)
        try:
            figures = await _follow(cluster, pods)
        finally:
            await cluster.stop(SCHEDULER)
        if extender:
            figures |= await _look_at(extender, pods=pods, used=used)
    await population.drop_pods()
    return figures


async def _look_at(extender: Serving, *, pods: int, used: float) -> dict[str, float]:
    """Raises Failed if calls were not answered: kube-scheduler goes on without a word."""
    answered = read_metric(await read_page(extender.port, "/metrics"), *_ANSWERED)
    if answered < pods * len(VERBS):
        raise Failed(f"{extender.process.name} answered {answered:.0f} calls about {pods} pods")
    process = extender.process.pid
    return {"cpu": (read_cpu(process) - used) / answered, "resident": read_resident(process)}


async def _follow(cluster: Cluster, pods: int) -> dict[str, float]:
    """Count from the first look at which some pods are scheduled to that at which all are."""
    first: tuple[float, float] | None = None
    headers = {"Authorization": f"Bearer {credentials.read_token(cluster.design)}"}
    async with asyncio.timeout(_PATIENCE), aiohttp.ClientSession(headers=headers) as session:
        while True:
            at, text = time.monotonic(), await _read_scheduler(session, cluster)
            scheduled = read_metric(text, *_SCHEDULED)
            if scheduled and first is None:
                first = at, scheduled
            if first and scheduled >= pods:
                break
            await asyncio.sleep(_BETWEEN_LOOKS)
    if scheduled == first[1]:
        raise Failed("all pods were scheduled between two looks: a burst needs more of them")
    mean = read_metric(text, f"{_ALGORITHM}_sum") / read_metric(text, f"{_ALGORITHM}_count")
    return {"rate": (scheduled - first[1]) / (at - first[0]), "algorithm": mean}


async def _read_scheduler(session: aiohttp.ClientSession, cluster: Cluster) -> str:
    url = f"https://{HOST}:{cluster.design.port(SCHEDULER)}/metrics"
    async with session.get(url, ssl=False) as answer:  # it signs its certificate itself
        answer.raise_for_status()
        return await answer.text()


def read_metric(text: str, name: str, label: str = "") -> float:
    """Add up the samples of a metric that have this label."""
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return sum(float(value) for labels, value in found if label in labels)


def read_cpu(process: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def read_resident(process: int) -> int:
    """Return the bytes of memory that a process uses."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
