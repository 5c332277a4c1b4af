"""The audit of moves itself, on made-up logs: it finds each rule that is broken. Needs no cluster."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from localcluster.audit_log import Call
from reberth.memory.notes import ANNOTATION
from tests.live.support.move_audit import MoveAudit, Window

LEADER, NEXT = "first", "next"
WORKLOAD = "deployment-web-12345678"
Changes = Mapping[str, Any]


class Log:
    """Writes down calls, each a tenth of a second long and one after the other, unless told otherwise."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._version = 0

    def call(self, verb: str, resource: str, name: str, body: Changes, **more: Any) -> None:
        at = more.pop("at", float(len(self.calls)))
        fields = {"answered": at + 0.1, "code": 200, "credential": LEADER, "namespace": ""} | more
        self.calls.append(
            Call(user="us", verb=verb, resource=resource, name=name, received=at, body=body, **fields)
        )

    def write(self, resource: str, name: str, content: Changes, **more: Any) -> None:
        self._version += 1
        metadata = {**content.get("metadata", {}), "name": name, "resourceVersion": str(self._version)}
        body = {**content, "metadata": {**metadata, "resourceVersion": str(self._version - 1)}}
        stored = {} if more.get("code", 200) != 200 else {**content, "metadata": metadata}
        self.call("update", resource, name, body, stored=stored, **more)

    def record(self, *moves: str, past: Mapping[str, str] | None = None, **more: Any) -> None:
        """Write the history of the workload with these open moves, and past ones with their outcomes."""
        phase = more.pop("phase", "Noted")
        opened = [
            {"id": move, "pod": f"pod-of-{move}", "podUID": f"uid-{move}", "phase": phase, "from": "n1"}
            for move in moves
        ]
        ended = [{"id": move, "outcome": outcome} for move, outcome in (past or {}).items()]
        status = {"status": {"open": opened, "past": ended}}
        self.write("evictionhistories/status", WORKLOAD, status, **{"namespace": "shop"} | more)

    def reserve(self, *moves: str, state: str = "Tentative", **more: Any) -> None:
        debits = [{"move": move, "state": state, "podUID": f"uid-{move}"} for move in moves]
        content = {"metadata": more.pop("metadata", {}), "status": {"debits": debits}}
        self.write("moveledgers/status", "default", content, **more)

    def note(self, *moves: str, node: str = "n1", **more: Any) -> None:
        signature = {"podController": {"uid": "uid-rs"}}
        mark = {"namespace": "shop", "expiresAt": "2026-11-19T12:00:00Z"}
        entries = [
            {
                "podSignature": signature,
                "evictionTime": "2026-11-19T11:00:00Z",
                "reberth": {"id": move, **mark},
            }
            for move in moves
        ]
        text = json.dumps({"preferAvoidPods": entries})
        self.write("nodes", node, {"metadata": {"annotations": {ANNOTATION: text}}}, **more)

    def evict(self, move: str, *, uid: str = "", **more: Any) -> None:
        options = {"preconditions": {"uid": uid or f"uid-{move}"}, **more.pop("options", {})}
        body = {"metadata": {"annotations": {"reberth.dev/move": move}}, "deleteOptions": options}
        given = {"code": 201, "namespace": "shop"} | more
        self.call("create", "pods/eviction", f"pod-of-{move}", body, **given)

    def take_lease(self, who: str) -> None:
        self.call("patch", "leases", "reberth-rescheduler", {"spec": {"holderIdentity": who}}, credential=who)

    def move(self, *moves: str) -> None:
        """All that comes before the evictions of these moves, and they."""
        self.record(*moves)
        self.reserve(*moves)
        self.note(*moves)
        for move in moves:
            self.evict(move)

    def list_violations(self, *windows: Window) -> list[str]:
        return MoveAudit(self.calls).list_violations(windows)


@pytest.fixture
def log() -> Log:
    log = Log()
    log.take_lease(LEADER)
    return log


def test_moves_in_the_right_order_break_no_rule(log: Log) -> None:
    log.move("m-1", "m-2")
    log.evict("m-1", options={"dryRun": ["All"]})
    log.reserve("m-1", "m-2", state="Spent")
    log.record(past={"m-1": "Better", "m-2": "Pending"})
    assert log.list_violations(Window("cluster", 2, 60)) == []
    assert MoveAudit(log.calls).count_granted() == 2


@pytest.mark.parametrize(
    ("left_out", "lack"),
    [("record", "no open move"), ("reserve", "no debit"), ("note", "note is not on n1")],
)
@pytest.mark.parametrize("answer", ["never", "late", "refused"])
def test_an_eviction_before_history_debit_and_note_were_answered(
    log: Log, left_out: str, lack: str, answer: str
) -> None:
    answers: Mapping[str, Changes] = {
        "never": {"answered": None, "code": None},
        "late": {"answered": 100.0},
        "refused": {"code": 409},
    }
    for name in ("record", "reserve", "note"):
        getattr(log, name)("m-1", **(answers[answer] if name == left_out else {}))
    log.evict("m-1")
    assert any("eviction of shop/pod-of-m-1" in line and lack in line for line in log.list_violations())


@pytest.mark.parametrize("left_out", ["", "record", "reserve", "note"])
def test_an_eviction_whose_body_a_killed_server_never_logged_is_known_by_its_pod(
    log: Log, left_out: str
) -> None:
    for name in ("record", "reserve", "note"):
        if name != left_out:
            getattr(log, name)("m-1")
    unread = {"namespace": "shop", "answered": None, "code": None}
    log.call("create", "pods/eviction", "pod-of-m-1", {}, **unread)
    assert bool(log.list_violations()) == bool(left_out)


def test_an_eviction_whose_preparation_was_taken_back_by_another_leader(log: Log) -> None:
    for name in ("record", "reserve", "note"):
        getattr(log, name)("m-1")
    log.take_lease(NEXT)
    log.note(credential=NEXT)
    log.reserve(credential=NEXT)
    log.record(past={"m-1": "Refused"}, credential=NEXT)
    log.evict("m-1")
    said = " ".join(log.list_violations())
    for lack in ("no open move", "no debit", "debit was returned", "closed as Refused"):
        assert lack in said


def test_an_eviction_of_another_pod_or_in_another_phase(log: Log) -> None:
    log.record("m-1", phase="Planned")
    log.reserve("m-1")
    log.note("m-1")
    log.evict("m-1", uid="uid-of-another")
    planned, debited, *rest = log.list_violations()
    assert "Planned of pod uid-m-1, not of uid-of-another" in planned
    assert "debit is for pod uid-m-1" in debited
    assert rest == []


def test_a_debit_that_is_returned_while_the_eviction_is_on_its_way(log: Log) -> None:
    for name in ("record", "reserve", "note"):
        getattr(log, name)("m-1")
    log.evict("m-1", at=10.0, answered=12.0)
    log.reserve(at=11.0)
    assert log.list_violations() == ["m-1: its debit was returned, and its pod was evicted"]


def test_a_debit_that_is_spent_and_folded_was_not_returned(log: Log) -> None:
    for name in ("record", "reserve", "note"):
        getattr(log, name)("m-1")
    log.evict("m-1", at=10.0, answered=12.0)
    known = [{"until": "2026-11-19T11:10:00Z", "moves": "m-0 m-1"}]
    log.write("moveledgers/status", "default", {"status": {"spentMoves": known}}, at=13.0)
    assert log.list_violations() == []


def test_an_eviction_that_nobody_answered_keeps_the_same_rules(log: Log) -> None:
    log.evict("m-1", answered=None, code=None)
    assert len(log.list_violations()) == 2  # no history names a node
    log.calls.clear()
    log.evict("m-1", code=409)
    assert log.list_violations() == []


def test_a_pod_that_two_moves_evicted(log: Log) -> None:
    log.move("m-1", "m-2")
    log.evict("m-2", uid="uid-m-1", at=50.0)
    found = log.list_violations()
    assert "pod uid-m-1 was evicted by ['m-1', 'm-2']" in found
    assert "m-2: its eviction was sent 2 times, and granted 2 times" in found


def test_an_eviction_that_one_leader_sent_twice(log: Log) -> None:
    log.move("m-1")
    log.evict("m-1", code=404)
    assert log.list_violations() == ["m-1: its eviction was sent 2 times, and granted 1 times"]


def test_what_was_not_processed_may_be_sent_again_and_the_next_leader_may_send_it_too(log: Log) -> None:
    for name in ("record", "reserve", "note"):
        getattr(log, name)("m-1")
    log.evict("m-1", code=429)
    log.evict("m-1")
    log.take_lease(NEXT)
    log.evict("m-1", credential=NEXT, code=404)
    log.take_lease(LEADER)
    log.evict("m-1", code=404)
    assert log.list_violations() == []


@pytest.mark.parametrize(
    ("window", "is_overfull"),
    [
        (Window("cluster", 2, 10.0), True),
        (Window("namespace", 2, 10.0), True),
        (Window("workload", 2, 10.0), True),
        (Window("workload", 3, 10.0), False),
        (Window("workload", 2, 1.0), False),
    ],
)
def test_a_window_with_more_evictions_than_its_rate(log: Log, window: Window, *, is_overfull: bool) -> None:
    log.move("m-1", "m-2", "m-3")
    assert bool(log.list_violations(window)) is is_overfull


def test_windows_count_each_pod_once_and_each_scope_by_itself(log: Log) -> None:
    log.move("m-1")
    log.take_lease(NEXT)
    log.evict("m-1", credential=NEXT)
    log.record("m-2", namespace="garden")
    log.reserve("m-1", "m-2")
    log.note("m-1", "m-2")
    log.evict("m-2", namespace="garden")
    assert log.list_violations(Window("namespace", 1, 60), Window("workload", 1, 60)) == []
    assert log.list_violations(Window("cluster", 1, 60))


def test_a_note_of_a_move_that_no_history_had_named(log: Log) -> None:
    log.note("m-1")
    log.record("m-1")
    log.note("m-1")
    log.note("m-1", node="n2")
    (found,) = log.list_violations()
    assert found == "m-1: its note was written to n1, and no history had named it before"


def test_the_moves_that_began_since_then(log: Log) -> None:
    log.record("m-1", past={"m-0": "Same"}, at=1.0)
    log.record("m-1", "m-2", at=2.0)
    log.record("m-3", past={"m-1": "Same", "m-2": "Same"}, at=3.0)
    audit = MoveAudit(log.calls)
    assert audit.list_begun(since=0.0) == {"m-1", "m-2", "m-3"}
    assert audit.list_begun(since=1.5) == {"m-2", "m-3"}


def test_a_leader_that_was_replaced_and_goes_on_writing(log: Log) -> None:
    log.record("m-1")
    log.take_lease(NEXT)
    log.record("m-1")
    log.reserve("m-1")
    assert log.list_violations() == []
    log.record("m-1")
    assert log.list_violations() == [
        f"2 writes of evictionhistories/status shop/{WORKLOAD} by a leader that was replaced"
    ]


def test_a_write_whose_answer_was_lost_counts_from_the_next_read_on(log: Log) -> None:
    log.record("m-1")
    log.note("m-1")
    log.reserve("m-0")
    log.reserve("m-1", answered=None, code=None)
    log.call("get", "moveledgers", "default", {})
    log.evict("m-1")
    assert log.list_violations() == []
    del log.calls[-2]
    assert any("no debit" in line for line in log.list_violations())


MOVE, OTHER = "m-00000000000a", "m-00000000000b"


def test_what_a_test_does_by_hand_keeps_no_rules_and_a_new_ledger_undoes_nothing(log: Log) -> None:
    for name in ("record", "reserve", "note"):
        getattr(log, name)(MOVE, agent="reberth")
    log.evict(MOVE, agent="reberth")
    log.evict("m-9", agent="kubectl")
    log.evict("m1", agent="reberth")
    log.note(MOVE, "m-9", agent="kubectl")
    log.reserve(agent="reberth", metadata={"uid": "of-another"})
    assert MoveAudit(log.calls, agent="reberth").list_violations() == []
    assert len(MoveAudit(log.calls).list_violations()) > 1
    log.evict(OTHER, agent="reberth")
    (line, *_) = MoveAudit(log.calls, agent="reberth").list_violations()
    assert OTHER in line
    log.evict("", agent="reberth")
    assert any(
        "eviction of shop/pod-of- by " in line
        for line in MoveAudit(log.calls, agent="reberth").list_violations()
    )
