"""Runs two programs on the same large cluster, one after the other, and measures the cost of each."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from bench import descheduler
from bench.planning.fleet import Fleet
from bench.reading import arms, populating
from bench.reading.arms import Failed
from localcluster import audit_log, manifests
from localcluster.cluster import Cluster
from localcluster.components import CONTROLLERS, KWOK, SCHEDULER
from localcluster.host import processes
from localcluster.host.processes import Running
from localcluster.state_dir import running
from localproduct.processes import HOST
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from reberth.client.api import ApiSettings
from tests.live.support.daemon_process import daemon, install, settings_of
from tests.live.support.extender_process import MANIFESTS

OURS, THEIRS, NULL = "Reberth", "descheduler", "null client"
CYCLES = 5
_KINDS = ("cpu", "memory")
_MOST = 100
_PATIENCE = 200.0
_LOOK_EVERY = 0.05
_INTO_A_CYCLE = 0.4
_WITHOUT_PAUSE = {"interval": "200ms", "settle": "100ms", "minInterval": "100ms", "pending": "1h"}


class Thresholds(NamedTuple):
    """Of cpu and of memory, in per cent."""

    low: int
    high: int


class Spent(NamedTuple):
    """Seconds, and requests to the API server; of a cycle also how many would be moved in it."""

    wall: float
    cpu: float
    calls: float
    moves: float = 0.0


class Start(NamedTuple):
    """From nothing to the first plan, or to the end of all lists: seconds, and bytes of memory at most."""

    wall: float
    cpu: float
    highest: float


class Cost(NamedTuple):
    first: Spent
    cycle: Spent
    memory: float
    highest: float
    ending: float
    """Seconds from SIGINT to the end of the process."""


class Look(NamedTuple):
    """What a program tells of itself at an instant."""

    cycles: float
    wall: float
    """Seconds of all cycles."""
    cpu: float
    memory: float
    moves: float


Ask = Callable[[], Awaitable[Look | None]]


def choose_thresholds(fleet: Fleet) -> Thresholds:
    """The usual ones of a fleet with the usual number of pods; of one with fewer as much less."""
    return Thresholds(round(30 * fleet.share), round(75 * fleet.share))


class Measured(NamedTuple):
    """What both programs cost, and each start of ours beside one of a client that only reads the lists."""

    costs: dict[str, Cost]
    starts: dict[str, list[Start]]


async def measure_all(fleet: Fleet, folder: Path, *, rounds: int) -> Measured:
    flags = audit_log.write_audit_flags(folder, [RESCHEDULER_ACCOUNT, descheduler.USER])
    async with running(without=[CONTROLLERS, SCHEDULER, KWOK], flags=flags) as cluster:
        await _bring_up(cluster, fleet)
        thresholds = choose_thresholds(fleet)
        starts: dict[str, list[Start]] = {NULL: [], OURS: []}
        for _ in range(rounds):
            starts[NULL].append(await _start_null(cluster))
            starts[OURS].append(await _start_ours(cluster, folder, thresholds))
            print(starts[NULL][-1], starts[OURS][-1], file=sys.stderr, flush=True)  # noqa: T201 - tells progress
        return Measured(
            {
                OURS: await _watch_ours(cluster, folder, thresholds),
                THEIRS: await _watch_theirs(cluster, folder, thresholds),
            },
            starts,
        )


async def _start_null(cluster: Cluster) -> Start:
    """Let a client with the same rights read the same lists and throw them away."""
    way, page_size = cluster.user(RESCHEDULER_ACCOUNT), ApiSettings().page_size
    began = time.monotonic()
    found = await arms.run([sys.executable, "-m", "bench.daemon.null_client", str(way), str(page_size)])
    return Start(time.monotonic() - began, found["cpu"], found["highest"])


async def _start_ours(cluster: Cluster, folder: Path, thresholds: Thresholds) -> Start:
    began = time.monotonic()
    async with _ours(cluster, folder, thresholds) as (process, look):
        first = await _until(process, look, 1)
        return Start(time.monotonic() - began, first.cpu, _read_highest(process.pid))


async def _bring_up(cluster: Cluster, fleet: Fleet) -> None:
    async with cluster.client() as client:
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
    await populating.fill(cluster, fleet.list_namespaces(), fleet.list_nodes(), fleet.written)


async def _watch_ours(cluster: Cluster, folder: Path, thresholds: Thresholds) -> Cost:
    async with _ours(cluster, folder, thresholds) as (process, look):
        return await _watch(process, look, folder, RESCHEDULER_ACCOUNT)


@asynccontextmanager
async def _ours(cluster: Cluster, folder: Path, thresholds: Thresholds) -> AsyncIterator[tuple[Running, Ask]]:
    settings, policy = settings_of(None, cluster, cycle=_WITHOUT_PAUSE), _describe_policy(thresholds)
    async with daemon(cluster, folder, settings, policy) as one, aiohttp.ClientSession() as session:

        async def look() -> Look | None:
            try:
                async with session.get(f"http://{HOST}:{one.port}/metrics") as answer:
                    return _read_ours(await answer.text())
            except aiohttp.ClientError:
                return None

        yield one.running, look


def _describe_policy(thresholds: Thresholds) -> dict[str, Any]:
    within = {name: dict.fromkeys(_KINDS, f"{share}%") for name, share in thresholds._asdict().items()}
    return {
        "mode": "recommend",
        "level": 5,
        "policies": {
            "underUtilisedNodes": {"hotFor": "0s", **within},
            "betterPreferences": {"mode": "off"},
            "brokenRules": {"mode": "off"},
        },
        "protections": {"minAge": "0s", "lastReady": False},
        "limits": {"perCycle": _MOST, "rates": {"cluster": []}},
        "brakes": {"settling": "0s", "notReadyNodes": "100%"},
    }


def _read_ours(text: str) -> Look:
    found = descheduler.read_metrics(text)
    return Look(
        found.get("reberth_rescheduler_cycles_total", 0.0),
        found.get("reberth_rescheduler_cycle_duration_seconds_sum", 0.0),
        found["process_cpu_seconds_total"],
        found["process_resident_memory_bytes"],
        found.get("reberth_rescheduler_plan_moves", 0.0),
    )


async def _watch_theirs(cluster: Cluster, folder: Path, thresholds: Thresholds) -> Cost:
    policy = descheduler.describe_policy(
        "LowNodeUtilization",
        "balance",
        {
            "thresholds": dict.fromkeys(_KINDS, thresholds.low),
            "targetThresholds": dict.fromkeys(_KINDS, thresholds.high),
        },
        evictor={"nodeFit": True},
        maxNoOfPodsToEvictTotal=_MOST,
    )
    async with descheduler.active(cluster, THEIRS, policy, dry_run=True) as process:

        async def look() -> Look | None:
            return _read_theirs(await descheduler.wait_for(cluster, 0, process))

        return await _watch(process, look, folder, descheduler.USER)


def _read_theirs(found: Mapping[str, float]) -> Look | None:
    if "process_cpu_seconds_total" not in found:
        return None
    cycles = found.get("descheduler_descheduler_loop_duration_seconds_count", 0.0)
    return Look(
        cycles,
        found.get("descheduler_descheduler_loop_duration_seconds_sum", 0.0),
        found["process_cpu_seconds_total"],
        found["process_resident_memory_bytes"],
        found.get("descheduler_pods_evicted_total", 0.0) / max(cycles, 1.0),
    )


async def _watch(process: Running, look: Ask, folder: Path, user: str) -> Cost:
    began = time.monotonic()
    first = await _until(process, look, 1)
    until_first = Spent(time.monotonic() - began, first.cpu, _count_calls(folder, user))
    last = await _until(process, look, first.cycles + CYCLES)
    calls, cycles = _count_calls(folder, user), last.cycles - first.cycles
    return Cost(
        until_first,
        Spent(
            (last.wall - first.wall) / cycles,
            (last.cpu - first.cpu) / cycles,
            (calls - until_first.calls) / cycles,
            last.moves,
        ),
        last.memory,
        _read_highest(process.pid),
        await _interrupt(process),
    )


async def _until(process: Running, look: Ask, cycles: float) -> Look:
    async with asyncio.timeout(_PATIENCE):
        while processes.is_alive(process):
            found = await look()
            if found and found.cycles >= cycles:
                return found
            await asyncio.sleep(_LOOK_EVERY)
    raise Failed(f"{process.name} ended by itself")


def _count_calls(folder: Path, user: str) -> int:
    return sum(call.user == user for call in audit_log.read_log(folder))


def _read_highest(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


async def _interrupt(process: Running) -> float:
    """One cycle follows the other, so some time after the last one began the next is on."""
    await asyncio.sleep(_INTO_A_CYCLE)
    sent = time.monotonic()
    processes.send(process, signal.SIGINT)
    await processes.gone(process)
    return time.monotonic() - sent
