"""The arms of a storm: each on its own cluster with the same fleet, watched from its first eviction on."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from bench import descheduler
from bench.placed_fleet import bring_up
from bench.reading.arms import Failed
from bench.storm.fleet import HIGH, LOW, Fleet
from bench.storm.tracing import HISTORIES, count_calls, trace
from bench.storm.watching import EvictionCounter, Prober, read_usage, subtract
from localcluster import audit_log, manifests
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK
from localcluster.host import processes
from localcluster.host.processes import Running
from localcluster.state_dir import running
from localproduct.processes import EXTENDER_ACCOUNT, HOST, asking_here
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.live.support.daemon_process import daemon, install, settings_of
from tests.live.support.extender_process import MANIFESTS, Extending, extending

OURS, THEIRS = "Reberth", "descheduler"
RATE, BURST = 50, 100
"""The default limits of a client of the API server, for both."""
QUIET = 30.0
"""An arm ends early when nothing was evicted for this many seconds."""

_FIRST_WITHIN = 180.0
_LOOK_EVERY = 0.2
_BODIES = [{"group": "reberth.dev", "resources": [HISTORIES, f"{HISTORIES}/status"]}]
# Kubelets renew their leases every 10 s, which is 500 writes a second that have nothing to do with moves.
_LEASE, _GRACE = 1200, 1800
_KINDS = ("cpu", "memory")
_POLICY: Mapping[str, Any] = {
    "mode": "apply",
    "level": 5,
    "worth": 0,
    "prices": {"move": 0, "minute": 0, "size": 0, "replicas": 0},
    "policies": {
        "underUtilisedNodes": {
            "hotFor": "0s",
            "low": dict.fromkeys(_KINDS, f"{LOW}%"),
            "high": dict.fromkeys(_KINDS, f"{HIGH}%"),
        }
    },
    "protections": {"minAge": "0s"},
    "limits": {"rates": {"cluster": []}},
    "brakes": {"settling": "0s"},
}
_THEIR_POLICY = descheduler.describe_policy(
    "LowNodeUtilization",
    "balance",
    {"thresholds": dict.fromkeys(_KINDS, LOW), "targetThresholds": dict.fromkeys(_KINDS, HIGH)},
    evictor={"nodeFit": True},
)

Figures = dict[str, Any]
Watch = Callable[[Running, str | None], Awaitable[Figures]]


async def storm(arm: str, fleet: Fleet, folder: Path, *, seconds: float) -> Figures:
    """Measure one arm; leaves its audit log and its logs in the folder."""
    users = [RESCHEDULER_ACCOUNT, EXTENDER_ACCOUNT, descheduler.USER]
    flags: dict[str, list[str]] = {
        **audit_log.write_audit_flags(folder, users, bodies=_BODIES),
        KWOK: [f"--node-lease-duration-seconds={_LEASE}"],
        CONTROLLERS: [f"--node-monitor-grace-period={_GRACE}s"],
    }
    counter = EvictionCounter(folder / audit_log.LOG)
    began = time.monotonic()
    async with running(flags=flags) as cluster, _extending(cluster, fleet, arm=arm) as extender:
        ready = time.monotonic() - began

        async def watch(process: Running, probed: str | None) -> Figures:
            found = await _watch(cluster, process, counter, probed, seconds=seconds)
            return {**found, "ready": ready}

        run = _reschedule if arm == OURS else _deschedule
        figures = await run(cluster, folder, extender, watch)
    return {**figures, **_read_calls(folder, figures["began"], seconds)}


@asynccontextmanager
async def _extending(cluster: Cluster, fleet: Fleet, *, arm: str) -> AsyncIterator[Extending | None]:
    """Bring up the fleet; for our own arm also the extender, which kube-scheduler asks."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        await bring_up(cluster, client, fleet)
        if arm != OURS:
            yield None
            return
        extender = await stack.enter_async_context(extending(cluster))
        content = asking_here(MANIFESTS / "kube-scheduler" / "plain.yaml", extender.url)
        await cluster.schedule_with({**content, "percentageOfNodesToScore": 100})
        yield extender


async def _reschedule(cluster: Cluster, folder: Path, extender: Extending | None, watch: Watch) -> Figures:
    limits = {"requestsPerSecond": RATE, "burst": BURST}
    defaults: dict[str, Any] = {"cycle": {}, "lease": {}}
    settings = settings_of(extender, cluster, api=limits, **defaults)
    async with daemon(cluster, folder, settings, dict(_POLICY)) as one:
        figures = await watch(one.running, f"http://{HOST}:{one.port}")
        (folder / "metrics.txt").write_text((await one.ask("/metrics"))[1])
        (folder / "rescheduler.log").write_text(one.log)
        return figures


async def _deschedule(cluster: Cluster, _folder: Path, _extender: Extending | None, watch: Watch) -> Figures:
    asking = descheduler.active(cluster, THEIRS, _THEIR_POLICY, requests_per_second=RATE, burst=BURST)
    async with asking as process:
        return await watch(process, None)


async def _watch(
    cluster: Cluster, process: Running, counter: EvictionCounter, probed: str | None, *, seconds: float
) -> Figures:
    """Watch from the first eviction on."""
    started = time.monotonic()
    while not counter.look():
        if not processes.is_alive(process) or time.monotonic() - started > _FIRST_WITHIN:
            raise Failed(f"{process.name} evicted nothing; see {cluster.log(process.name)}")
        await asyncio.sleep(_LOOK_EVERY)
    wall, began, usage = time.time(), time.monotonic(), read_usage(cluster)
    prober = Prober(f"{probed}/healthz") if probed else None
    probing = asyncio.create_task(prober.run()) if prober else None
    try:
        while time.monotonic() - began < seconds and time.monotonic() - counter.last < QUIET:
            await asyncio.sleep(_LOOK_EVERY)
            counter.look()
    finally:
        if probing:
            probing.cancel()
    if not processes.is_alive(process):
        raise Failed(f"{process.name} ended; see {cluster.log(process.name)}")
    return {
        "began": wall,
        "until first": began - started,
        "watched": time.monotonic() - began,
        "usage": subtract(read_usage(cluster), usage),
        "probes": prober.seconds if prober else [],
        "metrics": await _read_metrics(probed) if probed else {},
    }


async def _read_metrics(url: str) -> Mapping[str, float]:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        return descheduler.read_metrics(await answer.text())


def _read_calls(folder: Path, began: float, seconds: float) -> Figures:
    """Read the audit log from a second before the first eviction on, which has its history before it."""
    calls = [each for each in audit_log.read_log(folder) if each.received < began + seconds]
    found = trace(calls)
    during = [each for each in calls if each.received >= began]
    return {
        "evicted": len(found.evicted),
        "by minute": found.count_by_minute(min(found.evicted.values(), default=began), seconds),
        "until evicted": found.measure_until_evicted(),
        "until ended": found.measure_until_ended(),
        "requests": found.measure_requests(),
        "unanswered": dict(found.refused),
        "calls": {
            user: dict(count_calls(during, user))
            for user in (RESCHEDULER_ACCOUNT, EXTENDER_ACCOUNT, descheduler.USER)
        },
    }


def keep(figures: Figures, file: Path) -> None:
    """Write them whole or not at all."""
    draft = file.with_suffix(".part")
    draft.write_text(json.dumps(figures, indent=1))
    draft.replace(file)
