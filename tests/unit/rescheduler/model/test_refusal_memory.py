"""What a process remembers of refusals beside the histories."""

from reberth.memory.refusals import FORGOTTEN_AFTER, note_refusal
from reberth.values.refusal import Refused
from rescheduler.model import refusal_memory
from rescheduler.model.refusal_memory import KnownRefusal, RecentRefusals, RefusalMemory, WorkloadName

NOW = 1000.0
WEB, DB = WorkloadName("shop", "Deployment/web"), WorkloadName("shop", "Deployment/db")
FAILING = Refused("WebhookFailing", "no answer")


def test_refusals_are_counted_by_rule_and_key() -> None:
    recent = RecentRefusals()
    for rule, key in (("PodMoved", "uid-1"), ("PodMoved", "uid-2"), ("PodMoved", "uid-1"), ("PDB", "")):
        recent.note(WEB, Refused(rule, "said"), key=key, now=NOW)
    known = recent.read(NOW).known
    assert sorted((one.rule, one.key, one.count) for _, one in known) == [
        ("PDB", "", 1),
        ("PodMoved", "uid-1", 2),
        ("PodMoved", "uid-2", 1),
    ]
    assert recent.read(NOW + FORGOTTEN_AFTER + 121) == RefusalMemory()


def test_what_a_plan_sees_by_itself_is_not_remembered() -> None:
    recent = RecentRefusals()
    recent.note(WEB, Refused("ClusterRate", "used up"), key="", now=NOW)
    assert recent.read(NOW) == RefusalMemory()


def test_a_granted_eviction_disproves_the_refusals_of_its_workload_alone() -> None:
    recent = RecentRefusals()
    for workload in (WEB, DB):
        recent.note(workload, FAILING, key="hook.example", now=NOW)
    recent.disprove(WEB, (), NOW + 5)
    found = recent.read(NOW + 5)
    assert [workload for workload, _ in found.known] == [DB]
    assert found.answered == {"hook.example": NOW + 5}


def test_what_was_only_in_the_history_is_disproved_too() -> None:
    recent = RecentRefusals()
    noted = note_refusal(FAILING, key="hook.example", before=(), now=NOW)
    recent.disprove(WEB, (noted,), NOW + 5)
    assert recent.read(NOW) == RefusalMemory(
        disproved=frozenset({KnownRefusal(WEB, noted)}),
        answered={"hook.example": NOW + 5},
        granted={WEB: NOW + 5},
    )


def test_the_memory_is_bounded() -> None:
    recent = RecentRefusals()
    many = refusal_memory._MOST + 5
    for number in range(many):
        noted = note_refusal(FAILING, key=f"hook-{number}", before=(), now=NOW)
        recent.put(KnownRefusal(WEB, noted))
    assert [one.key for _, one in recent.read(NOW).known] == [f"hook-{number}" for number in range(5, many)]
    for number in range(many):
        noted = note_refusal(FAILING, key=f"hook-{number}", before=(), now=NOW)
        recent.disprove(DB, (noted,), NOW)
    assert len(recent.read(NOW).answered) == refusal_memory._MOST
