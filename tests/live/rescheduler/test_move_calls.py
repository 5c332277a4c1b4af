"""How many requests a move sends to the API server, by the server's own audit log."""

from pathlib import Path

import pytest

from tests.live.support.move_calls import AT_ONCE, count_all, counting, tabulate

pytestmark = pytest.mark.live

# One more for a first move, which creates the history. A pod with a budget is read, or if its name returns,
# has a dry run instead.
CALLS = {
    "Deployment, its first": 8,
    "Deployment, a later one": 7,
    "StatefulSet, its first": 8,
    "StatefulSet, a later one": 7,
    "bare ReplicaSet, its first": 8,
    "bare ReplicaSet, a later one": 7,
    "Deployment with a PodDisruptionBudget": 8,
    "StatefulSet with a PodDisruptionBudget": 8,
    # The note is removed, and the debit is returned.
    "refused by a PodDisruptionBudget": 8,
    "refused by a webhook": 8,
}
TOGETHER = f"{AT_ONCE} Deployments at once"
RESUMED = "resumed after its process was killed"


async def test_calls_of_each_kind_of_move(tmp_path: Path) -> None:
    """Those that begin together share the writes of the ledger; one that is resumed renews debit and note."""
    async with counting(tmp_path) as counter:
        rows = await count_all(counter)
    print(tabulate(rows))
    found = {row.title: row for row in rows}
    together, resumed = found.pop(TOGETHER), found.pop(RESUMED)
    assert {title: row.calls.total() for title, row in found.items()} == CALLS
    assert together.for_each <= CALLS["Deployment, a later one"]
    assert together.calls["ledger"] < 2 * AT_ONCE
    assert resumed.calls.total() - resumed.calls["reads"] == CALLS["Deployment, a later one"] + 2
