"""The arms: each on its own cluster with the same fleet, until nothing was evicted for a while."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import descheduler
from bench.moving.fleet import Fleet
from bench.moving.witnessing import Witness
from bench.placed_fleet import bring_up
from localcluster import audit_log, manifests
from localcluster.cluster import Cluster
from localcluster.state_dir import running
from localproduct.processes import EXTENDER_ACCOUNT
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from reberth.client.mirror import mirroring
from reberth.cluster.kinds import NODES, PODS
from tests.live.support.daemon_process import daemon, install, settings_of
from tests.live.support.extender_process import MANIFESTS, Extending, extending
from tests.live.support.fault_client import direct

LOW, HIGH = 30, 75
QUIET = 15.0
"""An arm ends when nothing was evicted for this many seconds."""
LONGEST = 180.0
OURS, ALONE, DESCHEDULER = "Reberth", "Reberth without the extender", "descheduler"

_MOVES = "reberth_rescheduler_landings_total"
_CALLERS = (RESCHEDULER_ACCOUNT, EXTENDER_ACCOUNT, descheduler.USER)
_POLICY: Mapping[str, Any] = {
    "mode": "apply",
    "level": 5,
    "policies": {
        "underUtilisedNodes": {
            "hotFor": "0s",
            "low": {"cpu": f"{LOW}%", "memory": f"{LOW}%"},
            "high": {"cpu": f"{HIGH}%", "memory": f"{HIGH}%"},
        }
    },
    "protections": {"minAge": "0s"},
    "limits": {"rates": {"cluster": ["10000 per 1h"]}},
    "brakes": {"settling": "0s"},
}
_THEIRS = descheduler.describe_policy(
    "LowNodeUtilization",
    "balance",
    {
        "thresholds": dict.fromkeys(("cpu", "memory"), LOW),
        "targetThresholds": dict.fromkeys(("cpu", "memory"), HIGH),
    },
    evictor={"nodeFit": True},
)


class State(NamedTuple):
    """How the nodes are used: those above the threshold, and the deviation of all in hundredths."""

    above: int
    spread: float


class Raced(NamedTuple):
    """What one arm has made of the fleet."""

    before: State
    after: State
    evicted: int
    returned: int
    seconds: float
    """Until its last eviction."""
    is_quiet: bool
    calls: int
    """Requests to the API server, as its audit log has them."""
    as_forecast: float | None
    """The share of the landings as forecast; None without a forecast."""

    @property
    def calls_a_move(self) -> float:
        return self.calls / max(self.evicted, 1)


Ask = Callable[[], Awaitable[None]]
Arm = Callable[[Cluster, Ask], Awaitable[float | None]]
"""Returns the share of the landings as forecast, if there is a forecast."""


async def race(fleet: Fleet, folder: Path) -> dict[str, Raced]:
    return {
        OURS: await _run(
            fleet, folder, lambda cluster, until: _reschedule(cluster, folder, until, asked=True)
        ),
        ALONE: await _run(
            fleet, folder, lambda cluster, until: _reschedule(cluster, folder, until, asked=False)
        ),
        DESCHEDULER: await _run(fleet, folder, _deschedule),
    }


async def _run(fleet: Fleet, folder: Path, arm: Arm) -> Raced:
    audit = Path(tempfile.mkdtemp(dir=folder))
    flags = audit_log.write_audit_flags(audit, _CALLERS)
    async with running(flags=flags) as cluster, _witnessing(cluster, fleet) as witness:
        before, began = _look(witness), time.monotonic()
        witness.begin()
        as_forecast = await arm(cluster, lambda: _until_quiet(witness, fleet))
        return Raced(
            before,
            _look(witness),
            witness.evicted,
            witness.returned,
            witness.last - began,
            time.monotonic() - witness.last >= QUIET,
            len(audit_log.read_log(audit)),
            as_forecast,
        )


@asynccontextmanager
async def _witnessing(cluster: Cluster, fleet: Fleet) -> AsyncIterator[Witness]:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        await bring_up(cluster, client, fleet)
        api, witness = await stack.enter_async_context(direct(cluster)), Witness()
        mirror = await stack.enter_async_context(mirroring(api, witness, [NODES, PODS]))
        await mirror.synced()
        yield witness


async def _reschedule(cluster: Cluster, folder: Path, until: Ask, *, asked: bool) -> float | None:
    async with AsyncExitStack() as stack:
        extender: Extending | None = None
        if asked:
            extender = await stack.enter_async_context(extending(cluster))
            await extender.schedule()
        one = await stack.enter_async_context(
            daemon(cluster, folder, settings_of(extender, cluster), _POLICY)
        )
        await until()
        hits, misses = [await one.said(_MOVES, forecast=forecast) for forecast in ("hit", "miss")]
        return hits / max(hits + misses, 1) if asked else None


async def _deschedule(cluster: Cluster, until: Ask) -> None:
    async with descheduler.active(cluster, "descheduler", _THEIRS):
        await until()


async def _until_quiet(witness: Witness, fleet: Fleet) -> None:
    """Wait until nothing was evicted for a while and all pods are there, or for as long as can be waited."""
    began = time.monotonic()
    while time.monotonic() - began < LONGEST:
        await asyncio.sleep(0.5)
        moved = witness.evicted > 0
        if moved and time.monotonic() - witness.last >= QUIET and witness.is_whole(fleet.pods):
            return


def _look(witness: Witness) -> State:
    return State(witness.count_above(HIGH / 100), witness.measure_spread())
