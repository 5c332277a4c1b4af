"""Simulate a cluster whose load drifts: every cycle some requests change, and a plan is carried out.

Pods keep their lineage through moves, so the nodes of each of them are known. A second planner, which uses
only thresholds, runs on the same drift for comparison.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

import numpy as np

from reberth.cluster.cache import ADDED, DELETED, MODIFIED, Cache
from reberth.cluster.kinds import NODE, POD, Kind
from reberth.cluster.snapshot import Snapshot, take
from reberth.records import Node, Pod
from reberth.values.timestamp import write_time
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.planner import plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support import builders
from tests.support.rescheduler.plans import LONG_AGO, MODEL, NOW, VERSION, Object

CYCLE = 300.0


@dataclass
class Member:
    """One pod's lineage: what it asks for, where it is, and where it was before."""

    name: str
    app: str
    node: str
    cpu: int  # millis
    memory: int  # Mi
    part: float = 1.0  # of what it usually asks for
    created: str = LONG_AGO
    generation: int = 0
    been: list[str] = field(default_factory=list)

    @property
    def uid(self) -> str:
        return f"uid-{self.name}-{self.generation}"

    def move(self, node: str, now: float) -> None:
        self.been.append(self.node)
        self.node, self.generation, self.created = node, self.generation + 1, write_time(now)


class Move(NamedTuple):
    uid: str
    node: str


Planner = Callable[[Snapshot, float], list[Move]]


class Fleet:
    """Nodes and pods in a cache, so that a cycle costs what has changed."""

    def __init__(self, nodes: Sequence[Object], members: Sequence[Member]) -> None:
        self.members = {member.name: member for member in members}
        self._cache = Cache(version=VERSION)
        self._version = 0
        self._list(NODE, [builders.as_record(Node, self._stamp(node)) for node in nodes])
        self._list(POD, [self._record(member) for member in members])

    def _list(self, kind: Kind[Any, Any], records: Sequence[Any]) -> None:
        listing = self._cache.relist(kind)
        for record in records:
            listing.apply(ADDED, record)
        listing.finish(str(self._version))

    def look(self, now: float) -> Snapshot:
        return take(self._cache, now=now)

    def drift(self, dice: Random, *, share: float, most: float) -> None:
        """Let some pods ask for more or less than they usually do."""
        for name in dice.sample(sorted(self.members), int(share * len(self.members))):
            member = self.members[name]
            member.part = dice.uniform(1 - most, 1 + most)
            self._cache.apply(POD, MODIFIED, self._record(member))

    def carry_out(self, moves: Sequence[Move], now: float) -> None:
        by_uid = {member.uid: member for member in self.members.values()}
        for move in moves:
            member = by_uid[move.uid]
            self._cache.apply(POD, DELETED, self._record(member))
            member.move(move.node, now)
            self._cache.apply(POD, ADDED, self._record(member))

    def count_returns(self) -> int:
        """Count how often a pod came back to a node that it had left."""
        return sum(
            place in member.been[:number]
            for member in self.members.values()
            for number, place in enumerate([*member.been[1:], member.node], 1)
        )

    def count_moves(self) -> int:
        return sum(len(member.been) for member in self.members.values())

    def _record(self, member: Member) -> Pod:
        made = builders.pod(
            f"{member.name}-{member.generation}",
            node=member.node,
            cpu=f"{round(member.cpu * member.part)}m",
            memory=f"{round(member.memory * member.part)}Mi",
            labels={"app": member.app},
            created=member.created,
            uid=member.uid,
            owned_by=builders.owner("ReplicaSet", member.app),
            status={"conditions": [{"type": "Ready", "status": "True"}]},
        )
        return builders.as_record(Pod, self._stamp(made))

    def _stamp(self, made: Object) -> Object:
        self._version += 1
        meta = {"uid": f"uid-{made['metadata']['name']}", "resourceVersion": str(self._version)}
        return {**made, "metadata": {**meta, **made["metadata"]}}


def run_cycles(fleet: Fleet, planner: Planner, *, cycles: int, seed: int, share: float, most: float) -> None:
    """Let the load drift, plan and carry out, again and again."""
    dice = Random(seed)
    for cycle in range(cycles):
        now = NOW + cycle * CYCLE
        fleet.drift(dice, share=share, most=most)
        fleet.carry_out(planner(fleet.look(now), now), now)


def our_planner(settings: ReschedulerPolicy) -> Planner:
    """The planner as a daemon runs it, with its memory."""
    memory: PlanMemory | None = PlanMemory()

    def propose(snapshot: Snapshot, now: float) -> list[Move]:
        nonlocal memory
        del now
        made, memory = plan(snapshot, settings, memory, model=MODEL)
        return [Move(move.uid, move.destinations[0].node) for move in made.moves]

    return propose


def threshold_planner(low: float, high: float) -> Planner:
    """Knows only thresholds around the mean: moves from what is above to the emptiest that is below."""

    def propose(snapshot: Snapshot, now: float) -> list[Move]:
        del now
        return list(_move_by_thresholds(snapshot, low, high))

    return propose


def _move_by_thresholds(snapshot: Snapshot, low: float, high: float) -> Iterator[Move]:
    offered = snapshot.nodes.allocatable.main[:2].astype(float)
    used = snapshot.sums.requested.main[:2].astype(float)
    mean = (used / offered).mean(axis=1)[:, None]
    for node in np.flatnonzero((used / offered > mean + high).any(axis=0)).tolist():
        for pod in snapshot.pods.on(node).tolist():
            parts = used / offered
            cold = np.flatnonzero((parts <= mean - low).all(axis=0))
            if not len(cold) or not (parts[:, node] > mean[:, 0] + high).any():
                break
            target = int(cold[parts[:, cold].max(axis=0).argmin()])
            asks = snapshot.templates.requests.main[:2, snapshot.pods.template[pod]]
            if (used[:, target] + asks <= offered[:, target]).all():
                used[:, target] += asks
                used[:, node] -= asks
                yield Move(snapshot.pods.rows[pod].uid, snapshot.nodes.names[target])


def nodes(count: int, **shape: Any) -> list[Object]:
    return [builders.node(f"n{number:03}", **shape) for number in range(count)]
