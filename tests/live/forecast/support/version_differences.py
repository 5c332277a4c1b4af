"""Compare what the schedulers of two versions answer to the same question: what differs, counted by kind."""

from collections import Counter
from collections.abc import Iterator

from tests.live.forecast.support.truth import Truth


def count_differences(one: Truth, other: Truth) -> Counter[str]:
    """Count each kind of difference once a pod."""
    return Counter(set(_list_differences(one, other)))


def _list_differences(one: Truth, other: Truth) -> Iterator[str]:
    if one.feasible != other.feasible:
        yield "feasible nodes"
    yield from (f"refusal: {reason}" for reason in _find_other_refusals(one, other))
    for node in one.plugins.keys() & other.plugins.keys():
        ours, theirs = one.plugins[node], other.plugins[node]
        names = ours.keys() | theirs.keys()
        yield from (f"score: {name}" for name in names if ours.get(name, 0) != theirs.get(name, 0))
    if one.bound != other.bound:
        yield "choice"


def _find_other_refusals(one: Truth, other: Truth) -> Iterator[str]:
    if one.rejected != other.rejected:
        yield "before any node is filtered"
    ours, theirs = one.refusals or {}, other.refusals or {}
    yield from (reason for reason in ours.keys() | theirs.keys() if ours.get(reason) != theirs.get(reason))
