"""Warnings of what the setting `extender` does not guarantee: in every plan, and at /readyz."""

from collections.abc import Iterator

_WARNINGS = {
    "none": (
        "extender: none: kube-scheduler alone decides where replacements land: they may return to the source "
        "node"
    ),
    "optional": (
        "extender: optional: moves are made without the acknowledgement of all extenders: then replacements "
        "may return to the source node"
    ),
}


def list_missing_guarantees(extender: str) -> Iterator[str]:
    """Give the warning for this value of the setting `extender`, if any."""
    if extender in _WARNINGS:
        yield _WARNINGS[extender]
