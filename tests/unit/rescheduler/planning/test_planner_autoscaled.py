"""Plans of a cluster that an autoscaler changes all the time, and in which one pod stays pending for good."""

from collections.abc import Sequence

from reberth.values.timestamp import write_time
from rescheduler.model.plan_memory import PlanMemory
from tests.support import builders
from tests.support.rescheduler.guardrails import history, past_move
from tests.support.rescheduler.plans import LONG_AGO, NOW, Object, make_plan, moves_of, policy, replica

POOL = "eks.amazonaws.com/nodegroup"
EAGER = policy(
    level=5, worth=0, policies={"underUtilisedNodes": {"low": {"cpu": "30%"}, "high": {"cpu": "50%"}}}
)
MINUTES = range(60)
NODE_EVERY = 3


def machine(name: str, pool: str, created: str = LONG_AGO) -> Object:
    made = builders.node(name, labels={POOL: pool} if pool else {})
    return made | {"metadata": {**made["metadata"], "creationTimestamp": created}}


def fleet(pool: str, named: str) -> list[Object]:
    """A full node, an empty one, and workloads with a peer elsewhere."""
    apps = [f"{named}-{number}" for number in range(7)]
    full = [replica(f"{app}-x", app, f"{named}-full", cpu="1") for app in apps]
    peers = [replica(f"{app}-y", app, f"{named}-free", cpu="10m") for app in apps]
    return [machine(f"{named}-full", pool), machine(f"{named}-free", pool), *full, *peers]


def stuck() -> list[Object]:
    """A workload whose replacement was created an hour before the test and fits nowhere."""
    born = write_time(NOW - 3600)
    move = past_move(
        "Pending",
        write_time(NOW - 3300),
        evictedAt=write_time(NOW - 3601),
        replacementUID="uid-default-stuck-x",
    )
    pending = replica("stuck-x", "stuck", "", created=born, cpu="64")
    return [
        pending | {"status": {}},
        replica("stuck-y", "stuck", "steady-full", cpu="1"),
        replica("stuck-z", "stuck", "steady-free", cpu="10m"),
        history("stuck", uid="uid-default-stuck", past=[move]),
    ]


def added(minute: int, pool: str) -> list[Object]:
    """One new node every three minutes."""
    times = range(0, minute + 1, NODE_EVERY)
    return [machine(f"new-{each}", pool, write_time(NOW + 60 * each)) for each in times]


def balance(pools: tuple[str, str]) -> list[list[str]]:
    """The sources of the moves that are planned in each minute: of the steady and of the growing fleet."""
    steady, growing = pools
    found = []
    for minute in MINUTES:
        now = NOW + 60 * minute
        objects: Sequence[Object] = [
            *fleet(steady, "steady"),
            *fleet(growing, "growing"),
            *added(minute, growing),
            *stuck(),
        ]
        plan, _ = make_plan(objects, EAGER, now=now)
        assert not any(pod.startswith("default/stuck") for pod in moves_of(plan))
        found.append(sorted({move.from_ for move in plan.moves}))
    return found


def share(found: list[list[str]], source: str) -> float:
    return sum(source in sources for sources in found) / len(found)


def test_other_pools_are_balanced_while_one_grows() -> None:
    found = balance(("calm", "grows"))
    assert share(found, "steady-full") == 1.0
    assert share(found, "growing-full") == 50 / 60


def test_without_pools_balance_waits_for_ten_minutes_once() -> None:
    """Before, it waited until no node was young: in none of these minutes it was allowed."""
    found = balance(("", ""))
    assert found[:10] == [[]] * 10
    assert all(found[10:])


def test_moves_go_onto_no_node_of_a_paused_pool() -> None:
    objects = [*fleet("calm", "steady"), *added(0, "grows"), machine("grown", "grows")]
    plan, _ = make_plan(objects, EAGER, now=NOW + 60)
    assert set(moves_of(plan).values()) == {"steady-free"}
    for each in objects:
        if each["metadata"]["name"] == "steady-free":
            each["metadata"]["labels"][POOL] = "grows"
    plan, _ = make_plan(objects, EAGER, now=NOW + 60)
    assert plan.moves == ()
    assert {refused.rule for refused in plan.refused} == {"ScaleUp"}


def test_a_removal_that_never_ends_stops_balance_for_an_hour() -> None:
    """The plan memory says since when, so the pause ends although the taint stays."""
    objects = fleet("calm", "steady")
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
    left = machine("left", "calm") | {"spec": {"taints": [taint]}}
    memory: PlanMemory | None = PlanMemory()
    made = []
    for minute in (0, 30, 59, 60):
        plan, memory = make_plan([*objects, left], EAGER, memory, now=NOW + 60 * minute)
        made.append(bool(plan.moves))
    assert made == [False, False, False, True]
