"""The order of a plan, kept: moves that share a node are made one after the other, all others at once.

What a move gains was counted on what the moves before it leave. So it waits until their replacements have
landed; that they are Ready it does not wait for.
"""

import asyncio
from collections.abc import Iterable


class Turn:
    """One move's place in the order."""

    def __init__(self, turns: "NodeOrder", nodes: frozenset[str], before: Iterable["Turn"]) -> None:
        self.nodes = nodes
        self.has_come = False
        self._turns = turns
        self._before = tuple(before)
        self._over = asyncio.Event()

    async def come(self) -> None:
        """Wait until those before it that share a node with it have passed on."""
        for turn in self._before:
            await turn.wait()
        self._before = ()
        self.has_come = True

    async def wait(self) -> None:
        await self._over.wait()

    def pass_on(self) -> None:
        """Let the next ones go; more than once is as good as once."""
        self._over.set()
        self._turns.forget(self)


class NodeOrder:
    """All places that are taken."""

    def __init__(self) -> None:
        self._taken: list[Turn] = []

    @property
    def waiting(self) -> int:
        """Count the moves whose turn has not come."""
        return sum(not turn.has_come for turn in self._taken)

    def take(self, nodes: Iterable[str]) -> Turn:
        """Take the last place, behind all that share one of these nodes."""
        wanted = frozenset(nodes)
        turn = Turn(self, wanted, [each for each in self._taken if each.nodes & wanted])
        self._taken.append(turn)
        return turn

    def forget(self, turn: Turn) -> None:
        self._taken = [each for each in self._taken if each is not turn]
