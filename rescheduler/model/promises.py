"""What cannot be promised of moves, as the daemon is set up: said in every plan and at /readyz."""

from collections.abc import Iterator

_UNPROMISED = {
    "none": (
        "extender: none: nobody draws replacements to their destinations and nothing keeps them off the node "
        "that they left: moves may return, and are judged by where they land"
    ),
    "optional": (
        "extender: optional: moves are made also while an extender has not seen them: then nothing keeps the "
        "replacement off the node that it left"
    ),
}


def list_promises_missing(extender: str) -> Iterator[str]:
    """Say what the setting `extender` leaves open."""
    if extender in _UNPROMISED:
        yield _UNPROMISED[extender]
