"""Keeps the order of a plan: moves that share a node are made one after the other, all others at once.

The plan computed the gain of a move on the state that the moves before it leave behind. So a move waits until
their replacements have landed; it does not wait until they are Ready.

Some controllers replace a pod only when it is gone, and its grace period may be hours. So a move whose pod is
evicted holds up the others for a short time only. Each of them is validated right before its own eviction:
then a node refuses it whose room is not free yet.
"""

import asyncio
from collections.abc import Iterable

# A replacement that is created when its pod begins to terminate has landed by then.
_LANDING_TIME = 10.0


class Turn:
    """The place of one move in the order."""

    def __init__(self, turns: "NodeOrder", nodes: frozenset[str], before: Iterable["Turn"]) -> None:
        self.nodes = nodes
        self.has_come = False
        self._turns = turns
        self._before = tuple(before)
        self._over = asyncio.Event()

    async def come(self) -> None:
        """Wait until the moves before it that share a node with it have landed or ended."""
        for turn in self._before:
            await turn.wait()
        self._before = ()
        self.has_come = True

    async def wait(self) -> None:
        await self._over.wait()

    def pass_on_soon(self) -> None:
        """Let the next moves begin in a moment, although the replacement may not have landed by then."""
        asyncio.get_running_loop().call_later(_LANDING_TIME, self.pass_on)

    def pass_on(self) -> None:
        """Let the next moves begin; may be called more than once."""
        self._over.set()
        self._turns.forget(self)


class NodeOrder:
    """The order of all moves that have not landed."""

    def __init__(self) -> None:
        self._taken: list[Turn] = []

    @property
    def waiting(self) -> int:
        """Count the moves that still wait."""
        return sum(not turn.has_come for turn in self._taken)

    def take(self, nodes: Iterable[str]) -> Turn:
        """Take the last place, after all moves that share one of these nodes."""
        wanted = frozenset(nodes)
        turn = Turn(self, wanted, [each for each in self._taken if each.nodes & wanted])
        self._taken.append(turn)
        return turn

    def forget(self, turn: Turn) -> None:
        self._taken = [each for each in self._taken if each is not turn]
