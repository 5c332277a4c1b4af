"""Faults between a client and a real API server, each at the request that a test names."""

from localcluster.faults import statuses
from localcluster.faults.asking import Asked, understand
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
from localcluster.faults.marks import Bytes, Lines
from localcluster.faults.memories import Memory, Tape
from localcluster.faults.proxy import FaultProxy
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
from localcluster.faults.statuses import PlainText, Status

__all__ = [
    "ALWAYS",
    "ANY",
    "WRITES",
    "Answer",
    "Asked",
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
    "refuse_watch",
    "schedule",
    "statuses",
    "times",
    "understand",
]
