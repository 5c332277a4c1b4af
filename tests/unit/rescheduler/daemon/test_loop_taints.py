"""Cycles while the taints of nodes come and go, in virtual time."""

from typing import Any, cast

import pytest

from reberth.cluster.object_files import load_objects
from reberth.runtime.worker_thread import run_inline
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.daemon.loop import CycleInputs, CycleLoop
from rescheduler.execution.dispatcher import MoveDispatcher
from rescheduler.model.plan import PlannedMove
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.model.refusal_memory import RefusalMemory
from tests.support.builders import node
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, policy, replica

NODES = 50
AGENT = {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}
# A node is tainted for this long, and the next one follows at once.
RESTART = 60.0
EVERY = 10.0


class Begun:
    """A dispatcher that takes every move and makes none."""

    def __init__(self) -> None:
        self.moves: list[PlannedMove] = []
        self.failed = False
        self.waiting = 0

    def __len__(self) -> int:
        return 0

    def has_orphans(self) -> bool:
        return False

    def begin(self, planned: PlannedMove) -> bool:
        self.moves.append(planned)
        return True


class Cluster:
    """Nodes with two pods each, one of which may be tainted; cycles at any time."""

    def __init__(self, **taints: Any) -> None:
        self.now = NOW
        self.contents: Any = None
        self.begun = Begun()
        settings = policy(
            policies={"brokenRules": {"taints": taints}, "underUtilisedNodes": {"mode": "off"}},
            limits={"perNode": None},
        )
        inputs = CycleInputs(
            contents=lambda: self.contents,
            policy=lambda: settings,
            model=lambda: MODEL,
            health=ClusterHealth,
            refusals=RefusalMemory,
            clock=lambda: self.now,
            warnings=list,
            offload=run_inline,
            stop_reason=lambda: None,
        )
        self._loop = CycleLoop(inputs, PlanMemory())

    def _read(self, tainted: str | None) -> Any:
        names = [f"n{number:02}" for number in range(NODES)]
        nodes = [node(name, taints=[AGENT] if name == tainted else []) for name in names]
        pods = [
            replica(f"app-{number}-{which}", f"app-{number}", names[(number + which) % NODES], cpu="100m")
            for number in range(NODES)
            for which in range(2)
        ]
        return dict(load_objects([*nodes, *pods], now=self.now, version=VERSION).snapshot.contents)

    async def run(self, tainted: str | None, seconds: float) -> list[str]:
        """Run cycles while a node is tainted; give the nodes that moves left."""
        self.contents, end = self._read(tainted), self.now + seconds
        while self.now < end:
            await self._loop.cycle("node", cast("MoveDispatcher", self.begun))
            self.now += EVERY
        assert self._loop.last is not None
        return sorted({move.from_ for move in self.begun.moves})


@pytest.mark.parametrize(("taints", "left"), [({}, 0), ({"for": "0s"}, NODES)])
async def test_a_rolling_restart_of_an_agent_moves_no_pod(taints: Any, left: int) -> None:
    """The agents' taint passes from node to node. If taints counted at once, every node would be left."""
    cluster = Cluster(**taints)
    for number in range(NODES):
        found = await cluster.run(f"n{number:02}", RESTART)
    assert len(found) == left


async def test_a_taint_that_stays_moves_the_pods_of_its_node_after_its_time() -> None:
    cluster = Cluster()
    assert await cluster.run("n07", 60) == []
    assert await cluster.run(None, 10) == []
    assert await cluster.run("n07", 300) == []
    assert await cluster.run("n07", 10) == ["n07"]
