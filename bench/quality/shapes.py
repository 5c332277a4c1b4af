"""Fleets of five shapes, each drawn whole from one number: nodes, workloads with their replicas, budgets.

Every node is given a share that it is to be filled to, and replicas go where most of that is missing. So a
fleet is as uneven as its shares are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support import builders

Object = dict[str, Any]
Size = tuple[int, int]
"""Millis of cpu, and Mi of memory."""

LONG_AGO = "2026-01-01T00:00:00Z"
CRITICAL = 2_000_000_000
_ZONE, _HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TRIED = 8
_LARGE, _SMALL = (16_000, 65_536), (4_000, 16_384)


@dataclass
class Place:
    """A node while it is being filled."""

    name: str
    zone: str
    size: Size
    share: float  # that it is to be filled to
    used: list[int] = field(default_factory=lambda: [0, 0])

    def missing(self, asked: Size) -> float:
        """Return how far the node is from its share; negative if the pod does not fit."""
        after = [used + part for used, part in zip(self.used, asked, strict=True)]
        filled = max(part / whole for part, whole in zip(after, self.size, strict=True))
        return self.share - filled if filled <= 1 else -1.0


@dataclass(frozen=True)
class Work:
    """A workload: the requests and the constraints of its pods."""

    size: Size
    replicas: int
    apart: bool = False  # no two of them on one node
    zoned: bool = False  # evenly over the zones
    priority: int = 0
    budget: bool = False


@dataclass(frozen=True)
class Shape:
    """One kind of fleet."""

    name: str
    story: str
    draw_node: Callable[[Random, int], tuple[Size, float]]
    draw_work: Callable[[Random], Work]
    daemon: Size | None = None


def draw_fleet(shape: Shape, nodes: int, seed: int) -> list[Object]:
    """Draw a fleet; the same number draws the same."""
    dice = Random(f"{shape.name} {seed}")  # noqa: S311 - repeatable, not secret
    places = [
        Place(f"n{number:04}", "abc"[number % 3], *shape.draw_node(dice, number)) for number in range(nodes)
    ]
    pods = [*_run_daemon(places, shape.daemon), *_fill(places, shape, dice)]
    made = [
        builders.node(
            place.name, cpu=f"{place.size[0]}m", memory=f"{place.size[1]}Mi", pods=250, zone=place.zone
        )
        for place in places
    ]
    return [*made, *pods]


def _fill(places: list[Place], shape: Shape, dice: Random) -> Iterator[Object]:
    """Place workloads until the nodes are filled to their shares."""
    wanted = sum(place.share * place.size[0] for place in places)
    number = 0
    while sum(max(place.used[0], place.used[1] * place.size[0] / place.size[1]) for place in places) < wanted:
        yield from _place(f"w{number:04}", shape.draw_work(dice), places, dice)
        number += 1


def _place(app: str, work: Work, places: list[Place], dice: Random) -> Iterator[Object]:
    taken: set[str] = set()
    placed = 0
    for number in range(work.replicas):
        zone = "abc"[number % 3] if work.zoned else None
        open_to = [
            place
            for place in places
            if zone in {None, place.zone} and not (work.apart and place.name in taken)
        ]
        tried = dice.sample(open_to, min(_TRIED, len(open_to)))
        best = max(tried, key=lambda place: place.missing(work.size))
        if best.missing(work.size) <= -1:
            continue
        taken.add(best.name)
        _take(best, work.size)
        placed += 1
        yield _write(f"{app}-{number}", app, best, work)
    if work.budget and placed:
        yield _write_budget(app, placed)


def _take(place: Place, asked: Size) -> None:
    place.used[0] += asked[0]
    place.used[1] += asked[1]


def _run_daemon(places: list[Place], size: Size | None) -> Iterator[Object]:
    for place in places if size else ():
        _take(place, size or (0, 0))
        yield _write(
            f"agent-{place.name}", "agent", place, Work(size or (0, 0), 1, priority=CRITICAL), "DaemonSet"
        )


def _write(name: str, app: str, place: Place, work: Work, kind: str = "ReplicaSet") -> Object:
    rules: Object = {}
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    if work.apart:
        rules["affinity"] = {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _HOSTNAME, **selector}]}}
    if work.zoned:
        rules["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
        ]
    return builders.pod(
        name,
        node=place.name,
        created=LONG_AGO,
        uid=f"uid-{name}",
        labels={"app": app},
        owned_by=builders.owner(kind, app),
        status={"conditions": [{"type": "Ready", "status": "True"}]},
        cpu=f"{work.size[0]}m",
        memory=f"{work.size[1]}Mi",
        priority=work.priority,
        **rules,
    )


def _write_budget(app: str, replicas: int) -> Object:
    status = {
        "observedGeneration": 0,
        "disruptionsAllowed": max(replicas // 4, 1),
        "currentHealthy": replicas,
        "desiredHealthy": replicas - max(replicas // 4, 1),
        "expectedPods": replicas,
    }
    return builders.pdb(app, max_unavailable="25%", status=status)


def _draw_one_size(dice: Random, number: int) -> tuple[Size, float]:
    del number
    return _LARGE, dice.betavariate(2, 2)


def _draw_many_sizes(dice: Random, number: int) -> tuple[Size, float]:
    del number
    cpu = dice.choice((4, 8, 16, 32))
    return (cpu * 1000, cpu * 1024 * dice.choice((2, 4, 8))), dice.betavariate(2, 2)


def _draw_skewed(dice: Random, number: int) -> tuple[Size, float]:
    """One of ten nodes is hot, one is new, the others are in the middle."""
    share = {0: 0.9, 1: 0.08}.get(number % 10, 0.5)
    return _LARGE, share + dice.uniform(-0.05, 0.05)


def _draw_small(dice: Random) -> Work:
    return Work((500, 2048), dice.randint(4, 20))


def _draw_mixed(dice: Random) -> Work:
    """One of forty workloads is of pods that fill half a node and more."""
    if dice.random() < 1 / 40:
        return Work((dice.choice((8_000, 10_000, 12_000)), dice.choice((16_384, 40_960))), 2)
    return Work((dice.choice((100, 500, 1_000, 2_000)), dice.choice((256, 1_024, 4_096, 8_192))), 10)


def _draw_lopsided(dice: Random) -> Work:
    """Much cpu and little memory, or the other way round."""
    cpu = dice.choice((250, 500, 1_000))
    return Work((cpu, int(cpu * dice.choice((0.5, 1, 4, 12)))), dice.randint(3, 12))


def _draw_bound(dice: Random) -> Work:
    return Work(
        (dice.choice((250, 500, 1_000)), dice.choice((1_024, 2_048, 4_096))),
        dice.choice((3, 6, 9)),
        apart=dice.random() < 0.5,
        zoned=dice.random() < 0.5,
        budget=dice.random() < 0.5,
    )


def _draw_ranked(dice: Random) -> Work:
    return Work(
        (dice.choice((200, 400, 800, 1_600)), dice.choice((512, 1_024, 2_048, 6_144))),
        dice.randint(2, 12),
        priority=dice.choice((0, 0, 0, 1_000, 1_000_000, CRITICAL)),
        budget=dice.random() < 0.3,
    )


SHAPES = (
    Shape("small", "equal nodes, equal small pods", _draw_one_size, _draw_small),
    Shape(
        "mixed", "equal nodes, pods of many sizes, some larger than half a node", _draw_one_size, _draw_mixed
    ),
    Shape(
        "nodes", "nodes of 4 to 32 cores, pods with much cpu or much memory", _draw_many_sizes, _draw_lopsided
    ),
    Shape("zones", "three zones, spread and anti-affinity, budgets", _draw_one_size, _draw_bound),
    Shape(
        "skewed",
        "a tenth of the nodes hot and a tenth new, priorities, a DaemonSet, budgets",
        _draw_skewed,
        _draw_ranked,
        daemon=(200, 512),
    ),
)
