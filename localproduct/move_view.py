"""The display of a cluster while pods are moved: nodes as bars, moves as lines. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reberth.cluster.columns import Ints
from reberth.cluster.kinds import HISTORY
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.templates import RESOURCES
from reberth.memory.history import is_evicted
from reberth.records import EvictionHistory, OpenMove, Outcome, PastMove

LOW, HIGH = 0.30, 0.75
_CPU = RESOURCES.index("cpu")
_ZONE = "topology.kubernetes.io/zone"
_RED, _GREEN, _BLUE = 31, 32, 34
_LAST_MOVES = 8


class NodeBar(NamedTuple):
    """A node, and the shares of its cpu that its staying pods and the arriving ones request."""

    name: str
    zone: str
    share: float
    leaving: float = 0.0


class ShownMove(NamedTuple):
    """A move; without an outcome it is in flight."""

    id: str
    pod: str
    source: str
    destinations: tuple[str, ...]
    reason: str
    evicted: bool
    outcome: Outcome | None = None
    landed_on: str | None = None
    time_to_ready: int | None = None


class MoveSnapshot(NamedTuple):
    """Nodes by zone and name, and every move by its time."""

    bars: tuple[NodeBar, ...]
    moves: tuple[ShownMove, ...]

    @property
    def under_way(self) -> int:
        return sum(move.outcome is None for move in self.moves)

    @property
    def landed(self) -> list[ShownMove]:
        return [move for move in self.moves if move.landed_on]

    @property
    def astray(self) -> int:
        """How many replacements landed outside the forecast; of a few the forecast may be unknown."""
        return sum(
            bool(move.destinations) and move.landed_on not in move.destinations for move in self.landed
        )

    @property
    def returned(self) -> int:
        return sum(move.outcome == Outcome.RETURNED for move in self.moves)


def look(snapshot: Snapshot, known: Iterable[ShownMove]) -> MoveSnapshot:
    """See nodes and moves. What was known of a move before stays: its end does not tell its destinations."""
    leaving = _share_of_leaving(snapshot)
    shares = snapshot.sums.requested.main[_CPU] / _offered(snapshot) - leaving
    bars = [
        NodeBar(node.metadata.name, (node.metadata.labels or {}).get(_ZONE, ""), *parts)
        for node, *parts in zip(snapshot.nodes.records, shares.tolist(), leaving.tolist(), strict=True)
    ]
    moves = {move.id: move for move in known}
    for history in snapshot.of(HISTORY):
        for found in _read(history, moves, snapshot):
            moves[found.id] = found
    return MoveSnapshot(tuple(sorted(bars, key=lambda bar: (bar.zone, bar.name))), tuple(moves.values()))


def draw(sight: MoveSnapshot, width: int, *, color: bool = True) -> list[str]:
    """Draw zones side by side with a bar for each node, and the last moves below."""
    zones = sorted({bar.zone for bar in sight.bars})
    room = max(width // max(len(zones), 1), 24)
    columns = [[bar for bar in sight.bars if bar.zone == zone] for zone in zones]
    rows = max(map(len, columns), default=0)
    lines = ["".join(zone.ljust(room) for zone in zones).rstrip()]
    for row in range(rows):
        cells = (
            _draw_bar(column[row], room, color) if row < len(column) else " " * room for column in columns
        )
        lines.append("".join(cells).rstrip())
    lines += ["", summarize(sight)]
    lines += [_shorten(tell(move), width) for move in sight.moves[-_LAST_MOVES:]]
    return lines


def summarize(sight: MoveSnapshot) -> str:
    """Summarize in one line."""
    hot = sum(bar.share > HIGH for bar in sight.bars)
    cold = sum(bar.share <= LOW for bar in sight.bars)
    return (
        f"{hot} nodes above {HIGH:.0%} of cpu, {cold} at or below {LOW:.0%}; "
        f"{sight.under_way} moves in flight, {len(sight.landed)} landed, "
        f"{sight.astray} not as forecast, {sight.returned} returned"
    )


def tell(move: ShownMove) -> str:
    """Describe a move in one line."""
    first = move.destinations[0] if move.destinations else "?"
    others = len(move.destinations) - 1
    more = f" (or {others} other{'s' * (others > 1)})" if others > 0 else ""
    begun = f"{move.pod}: from {move.source} to {first}{more}"
    if move.outcome is None:
        return f"{begun}, {'evicted' if move.evicted else 'requesting eviction'}: {move.reason}"
    if move.landed_on is None:
        return f"{begun}: {move.outcome}"
    how = (
        " as forecast"
        if move.landed_on in move.destinations
        else " not as forecast"
        if move.destinations
        else ""
    )
    ready = "" if move.time_to_ready is None else f", Ready after {move.time_to_ready} s"
    return f"{begun}: landed on {move.landed_on}{how}{ready}: {move.outcome}"


def tell_news(before: MoveSnapshot | None, after: MoveSnapshot) -> list[str]:
    """Describe the moves that have started or ended since the last look; the first time also summarize."""
    known = {move.id: move.outcome for move in before.moves} if before else {}
    news = [tell(move) for move in after.moves if known.get(move.id, "") != move.outcome]
    return news if before else [summarize(after), *news]


def _offered(snapshot: Snapshot) -> Ints:
    offered: Ints = np.maximum(snapshot.nodes.allocatable.main[_CPU], 1)
    return offered


def _share_of_leaving(snapshot: Snapshot) -> NDArray[np.float64]:
    pods = snapshot.pods
    leaving = np.flatnonzero(pods.counted & pods.terminating)
    requested = snapshot.templates.requests.main[_CPU][pods.template[leaving]]
    total = np.bincount(pods.node[leaving], weights=requested, minlength=len(snapshot.nodes.names))
    return total / _offered(snapshot)


def _read(history: EvictionHistory, known: dict[str, ShownMove], snapshot: Snapshot) -> Iterator[ShownMove]:
    for past in history.status.past or ():
        before = known.get(past.id)
        if past.evicted_at is not None or before:
            yield _end(past, history, before)
    for move in history.status.open or ():
        yield _begin(move, history, evicted=is_evicted(move, snapshot.pods.is_alive))


def _begin(move: OpenMove, history: EvictionHistory, *, evicted: bool) -> ShownMove:
    return ShownMove(
        move.id,
        f"{history.metadata.namespace}/{move.pod}",
        move.from_,
        move.destinations or (),
        move.reason,
        evicted=evicted,
    )


def _end(past: PastMove, history: EvictionHistory, before: ShownMove | None) -> ShownMove:
    return ShownMove(
        past.id,
        f"{history.metadata.namespace}/{past.pod}",
        past.from_,
        before.destinations if before else (),
        past.reason,
        evicted=past.evicted_at is not None,
        outcome=past.outcome,
        landed_on=past.landed_on,
        time_to_ready=past.time_to_ready,
    )


def _draw_bar(node: NodeBar, room: int, color: bool) -> str:  # noqa: FBT001 - it is handed on
    length = max(room - 18, 4)
    filled = min(round(node.share * length), length)
    going = min(round(node.leaving * length), length - filled)
    code = _RED if node.share > HIGH else _BLUE if node.share <= LOW else _GREEN
    line = "█" * filled + "▒" * going + "░" * (length - filled - going)
    painted = f"\x1b[{code}m{line}\x1b[0m" if color else line
    return f"{node.name[-10:]} {painted}{node.share:>5.0%}  "


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
