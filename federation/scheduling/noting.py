"""What a decision notes in the binding, with the clusters that it gives it."""

import msgspec

from federation.api import ResourceBinding
from reberth.records import Record

NOTE = "reberth.dev/scheduling"


class Note(Record, frozen=True):
    """When a decision was made, for which group, and upon which wish."""

    time: str
    affinity_name: str = ""
    wish: str = ""


def read_note(binding: ResourceBinding) -> Note | None:
    """What somebody else has written there is no note of ours."""
    text = (binding.metadata.annotations or {}).get(NOTE)
    try:
        return msgspec.json.decode(text, type=Note) if text else None
    except msgspec.DecodeError:
        return None
