"""Every response that a move can get to a write, and the outcome."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.faults import Answer, LoseAnswer, Match, Reset, between, nth, status_bodies
from localcluster.faults.effects import Effect
from localcluster.faults.status_bodies import Status
from rescheduler import settings as rescheduling
from rescheduler.moves.outcome import MoveReport
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import MOVES_WRITES, NODES, consistent, mover, proxied, workload
from tests.support.builders import Object

pytestmark = pytest.mark.live

EVICTIONS = Match(resource="pods/eviction")
BUDGET = {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget b allows -1"}]}
ENDING = {"causes": [{"reason": "NamespaceTerminating", "message": "it is being terminated"}]}
WEBHOOK = {"causes": [{"reason": "RateLimit", "message": "one per hour"}], "retryAfterSeconds": 7}

NO_PERMISSION = (
    'pods "web" is forbidden: User "system:serviceaccount:reberth-system:reberth-rescheduler" cannot create '
    'resource "pods/eviction" in API group "" in the namespace "default"'
)

# The answer; the rule that refuses if the dry run gets it, and if the eviction does.
ANSWERS: dict[str, tuple[Effect, str, str]] = {
    "429 budget": (
        Answer(status_bodies.budget_exhausted("b", needs=2, has=2)),
        "PDB",
        "PDB",
    ),
    "429 unobserved": (Answer(status_bodies.budget_unobserved("b")), "BudgetUnobserved", "BudgetUnobserved"),
    "429 webhook": (
        Answer(Status(429, "TooManyRequests", "denied", WEBHOOK)),
        "EvictionPaced",
        "EvictionPaced",
    ),
    "429 busy": (Answer(status_bodies.overloaded()), "ServerBusy", "ServerBusy"),
    "403 budget": (Answer(Status(403, "Forbidden", "no", BUDGET)), "PDB", "PDB"),
    "403 namespace": (
        Answer(Status(403, "Forbidden", "no", ENDING)),
        "NamespaceTerminating",
        "NamespaceTerminating",
    ),
    "403 rights": (Answer(Status(403, "Forbidden", NO_PERMISSION)), "Forbidden", "Forbidden"),
    "403 other": (Answer(Status(403, "Forbidden", "may not")), "EvictionRefused", "EvictionRefused"),
    "404": (Answer(Status(404, "NotFound", "not found")), "DryRunFailed", "Conflict"),
    "409": (Answer(status_bodies.conflict()), "DryRunFailed", "Conflict"),
    "422": (Answer(Status(422, "Invalid", "not so")), "EvictionRefused", "EvictionRefused"),
    "500 budgets": (Answer(status_bodies.several_budgets()), "SeveralBudgets", "SeveralBudgets"),
    "500": (Answer(status_bodies.internal_error()), "DryRunFailed", "Unanswered"),
    "503": (Answer(status_bodies.shutting_down()), "DryRunFailed", "Unanswered"),
    "504": (Answer(status_bodies.timed_out(retry_after=10)), "DryRunFailed", "Unanswered"),
    "reset": (Reset(), "DryRunFailed", "Unanswered"),
}
# Noted; debit and note; outcome. A debit is marked as Spent with the next write of the ledger.
WRITES_BESIDE_EVICTIONS = (1, 2, 3, 5)
OTHERS: dict[str, Effect] = {
    "409": Answer(status_bodies.conflict()),
    "500": Answer(status_bodies.internal_error()),
    "429": Answer(status_bodies.too_many_requests()),
    "reset": Reset(),
    "lost": LoseAnswer(),
}

ASKED_TWICE = ("429 busy", "404", "409")


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="session")
async def defined(shared: Cluster) -> AsyncIterator[None]:
    async with definitions(shared):
        yield


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
async def test_each_answer_to_an_eviction_is_read_by_its_cause(
    shared: Cluster, kind: str, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request of a StatefulSet's pod with a budget is the dry run.

    A busy server is asked twice, and one that has found another pod is tried again.
    """
    monkeypatch.setattr(rescheduling, "LONGEST_REQUEST", 0.1)  # the proxy lets nothing arrive late
    name = f"asked-{kind.lower()}"
    async with workload(shared, name, kind=kind, budget=1) as stayer, proxied(shared) as proxy:
        victim = await stayer.pick()
        to = elsewhere(victim)
        async with mover(shared, "mover", evictionTimeout="100ms") as move:
            for name, (effect, *rules) in ANSWERS.items():
                with subtests.test(name):
                    turns = between(1, 2) if name in ASKED_TWICE else nth(1)
                    async with proxy.fault(EVICTIONS, effect, turns) as rule:
                        came, said = await move(victim, to)
                    assert rule.acted >= 1
                    assert isinstance(came, MoveReport), came
                    assert came.refused, said
                    assert came.refused.rule == rules[kind == "Deployment"]
        assert await consistent(stayer) == 0


@pytest.mark.parametrize(
    ("kind", "budget", "requests"),
    [("Deployment", None, 2), ("StatefulSet", 1, 3)],
    ids=["plain", "budgeted"],
)
@pytest.mark.parametrize("answer", ["404", "409"])
async def test_a_pod_that_seems_to_have_changed_is_read_and_evicted(
    shared: Cluster, answer: str, kind: str, budget: int | None, requests: int
) -> None:
    """Without a budget the eviction itself compares; else a dry run does, which is tried again."""
    placed = workload(shared, "changed", kind=kind, budget=budget)
    async with placed as changed, proxied(shared) as proxy:
        victim = await changed.pick()
        async with mover(shared, "mover") as move, proxy.fault(EVICTIONS, ANSWERS[answer][0], nth(1)) as rule:
            came, said = await move(victim, elsewhere(victim))
        assert isinstance(came, MoveReport)
        assert came.refused is None, said
        assert rule.matched == requests
        assert await consistent(changed) == 1


async def test_an_eviction_whose_answer_is_lost_is_looked_up_and_not_repeated(shared: Cluster) -> None:
    async with workload(shared, "lost") as lost, proxied(shared) as proxy:
        victim = await lost.pick()
        async with mover(shared, "mover") as move, proxy.fault(EVICTIONS, LoseAnswer(), nth(1)) as rule:
            came, said = await move(victim, elsewhere(victim))
        assert isinstance(came, MoveReport)
        assert came.refused is None
        assert "the eviction was not answered: reading the pod" in said
        assert rule.matched == 1
        assert await consistent(lost) == 1


@pytest.mark.parametrize("fault", OTHERS)
async def test_a_fault_at_another_write_changes_nothing(shared: Cluster, fault: str) -> None:
    """At the history, the ledger or the note: the same move, the same outcome."""
    turn = list(OTHERS).index(fault)
    await disturb(shared, fault, WRITES_BESIDE_EVICTIONS[turn % 3 :: 3])


@pytest.mark.soak
@pytest.mark.parametrize("fault", OTHERS)
async def test_a_fault_at_any_other_write_changes_nothing(shared: Cluster, fault: str) -> None:
    await disturb(shared, fault, WRITES_BESIDE_EVICTIONS)


async def disturb(cluster: Cluster, fault: str, writes: Sequence[int]) -> None:
    async with workload(cluster, f"faulty-{fault}", replicas=3) as faulty, proxied(cluster) as proxy:
        async with mover(cluster, "mover") as move:
            for write in writes:
                victim = await faulty.pick()
                async with proxy.fault(MOVES_WRITES, OTHERS[fault], nth(write)) as rule:
                    came, said = await move(victim, elsewhere(victim))
                assert isinstance(came, MoveReport), came
                assert came.refused is None, said
                assert rule.acted == 1
        status = await faulty.history()
        assert not status.get("open")
        assert set((await faulty.debits()).values()) == {"Spent"}
        assert len(status["past"]) == len(writes)


def elsewhere(victim: Object) -> list[str]:
    return [node for node in NODES if node != victim["spec"]["nodeName"]][:9]
