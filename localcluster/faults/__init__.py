"""Faults between a client and a real API server, each at the request that a test names."""

from localcluster.faults import status_bodies
from localcluster.faults.body_cursor import Bytes, Lines
from localcluster.faults.effects import (
    Answer,
    Cut,
    Delay,
    Duplicate,
    Effect,
    Ending,
    ErrorEvent,
    LoseAnswer,
    Record,
    Remember,
    Replay,
    Reset,
    Slow,
    Stale,
    Stall,
    refuse_watch,
)
from localcluster.faults.journal import Entry, Journal
from localcluster.faults.proxy import FaultProxy
from localcluster.faults.recordings import Memory, Tape
from localcluster.faults.request_info import RequestInfo, read_request_info
from localcluster.faults.rules import (
    ALWAYS,
    ANY,
    WRITES,
    Fault,
    Match,
    Rule,
    Turns,
    between,
    every,
    nth,
    schedule,
    times,
)
from localcluster.faults.status_bodies import PlainText, Status

__all__ = [
    "ALWAYS",
    "ANY",
    "WRITES",
    "Answer",
    "Bytes",
    "Cut",
    "Delay",
    "Duplicate",
    "Effect",
    "Ending",
    "Entry",
    "ErrorEvent",
    "Fault",
    "FaultProxy",
    "Journal",
    "Lines",
    "LoseAnswer",
    "Match",
    "Memory",
    "PlainText",
    "Record",
    "Remember",
    "Replay",
    "RequestInfo",
    "Reset",
    "Rule",
    "Slow",
    "Stale",
    "Stall",
    "Status",
    "Tape",
    "Turns",
    "between",
    "every",
    "nth",
    "read_request_info",
    "refuse_watch",
    "schedule",
    "status_bodies",
    "times",
]
