"""Count what moves ask of the API server, by its audit log: every request but watches and the lease.

async with counting(audit) as counter:
    rows = [await counter.count_moves("Deployment"), ...]
    print(tabulate(rows))

Each row is one move, or ten at once, of one kind; nothing else happens meanwhile.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from localcluster.audit_log import Call
from localcluster.faults import Delay, Detain, FaultProxy
from localcluster.host import processes
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.live.support.daemon_process import Daemon, daemon, settings_of, way_through
from tests.live.support.eviction_webhook import watching_evictions
from tests.live.support.fault_client import standing_before
from tests.live.support.move_audit import EVICTIONS
from tests.live.support.move_stage import APART, MoveStage, drive_policy, standing
from tests.live.support.take_overs import hold_eviction
from tests.support.builders import Object, deployment, pdb, replica_set, stateful_set

AT_ONCE = 10
_BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
_NAME = "rescheduler-0"
_SETTLING = 1.5  # seconds until the last Event has been sent
_LONGEST = 60.0
_COLUMNS = ("reads", "history", "ledger", "node", "dry run", "eviction", "Event")
_RESOURCES = {
    "evictionhistories": "history",
    "moveledgers": "ledger",
    "nodes": "node",
    "events": "Event",
}


class CallCount(NamedTuple):
    """What so many moves have asked, by what it was for."""

    title: str
    moves: int
    calls: Counter[str]

    @property
    def for_each(self) -> float:
        return self.calls.total() / self.moves


class CallCounter:
    """One daemon that leads, and workloads of each kind."""

    def __init__(self, stage: MoveStage, proxy: FaultProxy, leader: Daemon) -> None:
        self.stage = stage
        self.leader = leader
        self._proxy = proxy

    async def count_moves(self, title: str, *owners: str) -> CallCount:
        """Move one pod of each of these owners, all of them at the same time."""
        victims = await self.stage.pick(owners)

        async def move() -> None:
            await self.stage.drive_out(victims.values())
            await self.stage.settle()

        found = await self.count(title, move, moves=len(owners))
        await self.stage.calm()
        return found

    async def count_budgeted(self, title: str, owner: str) -> CallCount:
        """A budget that allows the move: it must not be charged for an eviction that is not carried out."""
        client, path = self.stage.client, f"{_BUDGETS}/{owner}"
        await client.create(_BUDGETS, pdb(owner, max_unavailable=1))
        await client.wait(path, lambda found: found.get("status", {}).get("disruptionsAllowed") == 1)
        found = await self.count_moves(title, owner)
        await client.delete(path)
        return found

    async def count_refused_by_budget(self, title: str, owner: str) -> CallCount:
        """A budget comes between the validation and the eviction: a plan knows all that stood before."""
        victim = (await self.stage.pick([owner]))[owner]
        budget = pdb(owner, max_unavailable=0)

        async def be_refused() -> None:
            hold = hold_eviction(victim, Detain(), client=_NAME)
            async with self._proxy.fault(hold.match, hold.effect, hold.turns) as rule:
                await self.stage.drive_out([victim])
                await self._proxy.until(lambda: rule.acted == 1)
                await self.stage.client.create(_BUDGETS, budget)
                await self.stage.client.wait(f"{_BUDGETS}/{owner}", _is_observed)
            await self._end_refused(victim)

        found = await self.count(title, be_refused)
        await self.stage.client.delete(f"{_BUDGETS}/{owner}")
        return found

    async def count_refused_by_webhook(self, title: str, owner: str) -> CallCount:
        victim = (await self.stage.pick([owner]))[owner]
        name = victim["metadata"]["name"]
        probe = next(pod["metadata"]["name"] for pod in await self.stage.list_pods() if pod != victim)
        client, cluster = self.stage.client, self.stage.cluster

        async def be_refused() -> None:
            await self.stage.drive_out([victim])
            await self._end_refused(victim)

        async with watching_evictions(cluster, client, probe=probe, denied=[name]):
            return await self.count(title, be_refused)

    async def count_resumed(self, title: str, owner: str) -> CallCount:
        """The process is killed when it sends the eviction; the next one finishes the move."""
        victim = (await self.stage.pick([owner]))[owner]

        async def be_resumed() -> None:
            hold = hold_eviction(victim, Delay(_LONGEST), client=_NAME)
            async with self._proxy.fault(hold.match, hold.effect, hold.turns) as rule:
                await self.stage.drive_out([victim])
                await self._proxy.until(lambda: rule.acted == 1)
                await processes.kill(self.leader.running)
            self.leader.restart()
            await self.stage.settle()

        found = await self.count(title, be_resumed)
        await self.stage.calm()
        # It lists everything for its cache when it starts; the rest is of the move.
        return found._replace(
            calls=Counter({key: count for key, count in found.calls.items() if key != "lists"})
        )

    async def count(
        self,
        title: str,
        act: Callable[[], Awaitable[None]],
        *,
        moves: int = 1,
        user: str = RESCHEDULER_ACCOUNT,
    ) -> CallCount:
        """Count what a user asks while something is done, and a moment longer."""
        began = time.time()
        async with asyncio.timeout(_LONGEST):
            await act()
        await asyncio.sleep(_SETTLING)
        calls = [call for call in self.stage.read_calls(since=began) if _is_counted(call, user)]
        return CallCount(title, moves, Counter(map(_name_part, calls)))

    async def _end_refused(self, victim: Object) -> None:
        """Wait until the move is closed, and take its reason away before it is tried again."""
        async with asyncio.timeout(_LONGEST):
            while not self._is_tried(victim) or await self.stage.list_unfinished():
                await asyncio.sleep(0.1)
        await self.stage.calm()

    def _is_tried(self, victim: Object) -> bool:
        name = victim["metadata"]["name"]
        return any(call.resource == EVICTIONS and call.name == name for call in self.stage.read_calls())


def _is_counted(call: Call, user: str) -> bool:
    return call.user == user and call.verb != "watch" and call.resource != "leases"


def _name_part(call: Call) -> str:
    if call.verb in ("get", "list"):
        return "reads" if call.verb == "get" else "lists"
    if call.resource == EVICTIONS:
        return "dry run" if call.body.get("deleteOptions", {}).get("dryRun") else "eviction"
    return _RESOURCES.get(call.resource.partition("/")[0], call.resource)


def _is_observed(found: Object) -> bool:
    status = found.get("status", {})
    return bool(status.get("observedGeneration")) and status.get("disruptionsAllowed") == 0


def tabulate(rows: Sequence[CallCount]) -> str:
    """Write the rows as a table of Markdown."""
    others = sorted({part for row in rows for part in row.calls} - set(_COLUMNS))
    columns = [*_COLUMNS, *others]
    head = ["move", *columns, "all", "for each move"]
    lines = [
        [
            row.title,
            *(str(row.calls[part] or "") for part in columns),
            str(row.calls.total()),
            f"{row.for_each:.1f}",
        ]
        for row in rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines])


@asynccontextmanager
async def counting(folder: Path, *users: str) -> AsyncIterator[CallCounter]:
    """A cluster with a daemon, and workloads of each kind; the log is of these users, too."""
    audit = folder / "audit"
    audit.mkdir()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        stage = await enter(standing(audit, nodes=60, users=[RESCHEDULER_ACCOUNT, *users]))
        proxy = await enter(standing_before(stage.cluster))
        owners = [
            *(deployment(f"web-{number}", replicas=2, **APART) for number in range(AT_ONCE)),
            stateful_set("db", replicas=2, **APART),
            replica_set("bare", replicas=2, **APART),
        ]
        await stage.add(owners)
        await stage.prove([f"web-{number}" for number in range(1, AT_ONCE - 1)])
        way = await way_through(stage.cluster, stage.client, _NAME, server=await proxy.open(_NAME))
        settings, policy = settings_of(None, stage.cluster), drive_policy("1000 per 1h")
        leader = await enter(daemon(stage.cluster, folder, settings, policy, way=way))
        await leader.quiet()
        yield CallCounter(stage, proxy, leader)


async def count_all(counter: CallCounter) -> list[CallCount]:
    """Count each kind of move once. The first one of all creates the ledger, so it does not count.

    The refused ones come last: after two of them within a minute no other move is begun at once.
    """
    await counter.count_moves("the first of all", "web-9")
    fleet = [f"web-{number}" for number in range(AT_ONCE)]
    rows = []
    for title, owner in (("Deployment", "web-0"), ("StatefulSet", "db"), ("bare ReplicaSet", "bare")):
        rows.append(await counter.count_moves(f"{title}, its first", owner))
        rows.append(await counter.count_moves(f"{title}, a later one", owner))
    for title, owner in (("Deployment", "web-0"), ("StatefulSet", "db")):
        rows.append(await counter.count_budgeted(f"{title} with a PodDisruptionBudget", owner))
    rows.append(await counter.count_moves(f"{AT_ONCE} Deployments at once", *fleet))
    rows.append(await counter.count_resumed("resumed after its process was killed", "web-3"))
    rows.append(await counter.count_refused_by_budget("refused by a PodDisruptionBudget", "web-1"))
    rows.append(await counter.count_refused_by_webhook("refused by a webhook", "web-2"))
    return rows
