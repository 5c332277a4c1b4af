"""What `python -m rescheduler notes list` prints."""

import json
import re

from reberth.memory.notes import Note, NoteOrigin, Notes
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from rescheduler.commands.notes import NodeNotes, tabulate_notes, write_notes_json

NOON = 1_795_003_200.0  # 2026-11-18T12:00:00Z
POLICY = "underUtilisedNodes"
ROOT = WorkloadIdentity(kind="Deployment", name="web")
OURS = Note(
    b"",
    "c-1",
    NOON - 60,
    NOON - 60,
    NOON,
    "its node is over-utilised",
    NoteOrigin("m-1", "shop", "", policy=POLICY, strict=True, root=ROOT),
)
FOREIGN = Note(b"", "c-2", NOON - 60, NOON - 60, NOON, "one\x1b[2Jline")
FOUND = [
    NodeNotes("node-1", Notes(ours=(OURS,), foreign=(FOREIGN,))),
    NodeNotes("node-2", Refused("NoteUnreadable", "no JSON")),
]


def test_a_table_has_a_line_for_each_note_and_for_each_unreadable_annotation() -> None:
    rows = [re.split(r"  +", line) for line in tabulate_notes(FOUND).splitlines()]
    until = "2026-11-18T12:00:00Z"
    assert rows == [
        ["NODE", "MOVE", "UNTIL", "NAMESPACE", "WORKLOAD", "CONTROLLER", "STRICT", "POLICY", "REASON"],
        ["node-1", "m-1", until, "shop", "Deployment/web", "c-1", "yes", POLICY, "its node is over-utilised"],
        ["node-1", "foreign", until, "-", "-", "c-2", "-", "-", "one\\x1b[2Jline"],
        ["node-2", "-", "-", "-", "-", "-", "-", "-", "NoteUnreadable: no JSON"],
    ]
    assert tabulate_notes([]) == tabulate_notes([NodeNotes("node-1", Notes())]) == "no notes"


def test_json_has_the_same_content() -> None:
    told = json.loads(write_notes_json(FOUND))
    assert told["nodes"]["node-2"] == {"refused": {"rule": "NoteUnreadable", "reason": "no JSON"}}
    ours, foreign = told["nodes"]["node-1"]["notes"]
    assert ours == {
        "move": "m-1",
        "until": "2026-11-18T12:00:00Z",
        "namespace": "shop",
        "workload": "Deployment/web",
        "controller": "c-1",
        "strict": True,
        "policy": POLICY,
        "reason": "its node is over-utilised",
    }
    assert (foreign["move"], foreign["namespace"], foreign["strict"]) == ("foreign", None, False)
