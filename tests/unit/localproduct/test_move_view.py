"""What a person sees while pods are moved: read from a cluster's objects, drawn, and told."""

import io
from typing import Any

import pytest

from localproduct.move_view import MoveSnapshot, NodeBar, ShownMove, draw, look, summarize, tell, tell_news
from localproduct.terminal import Screen
from reberth.cluster.object_files import load_objects
from reberth.cluster.snapshot import Snapshot
from reberth.records import Outcome
from tests.support import builders
from tests.support.rescheduler.plans import NOW, replica

MOVE = ShownMove("m-1", "shop/web-1", "a", ("b", "c"), "its node is over-utilised", evicted=False)
EVICTED = MOVE._replace(evicted=True)
LANDED = EVICTED._replace(outcome=Outcome.BETTER, landed_on="c", time_to_ready=2)
OPEN = {
    "id": "m-1",
    "pod": "a-1",
    "podUID": "uid-2",
    "controllerUID": "c",
    "from": "a",
    "destinations": ["b"],
    "reason": "full",
    "phase": "Noted",
    "plannedAt": "2026-11-18T12:00:00.000000Z",
    "expiresAt": "2026-11-18T12:05:00Z",
}
PAST = {
    "id": "m-1",
    "pod": "a-1",
    "podUID": "u",
    "from": "a",
    "reason": "full",
    "outcome": "Better",
    "landedOn": "b",
    "closedAt": "2026-11-18T12:00:09.000000Z",
    "evictedAt": "2026-11-18T12:00:01.000000Z",
    "timeToReady": 3,
}


def history(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {"name": "deployment-a", "namespace": "shop", "uid": "h"},
        "spec": {"workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "w"}},
        "status": status,
    }


def snapshot(*objects: dict[str, Any]) -> Snapshot:
    """Two nodes of 8 CPUs in two zones; on the first one 2 CPUs stay and 4 are on their way."""
    zone = "topology.kubernetes.io/zone"
    nodes = [builders.node("a", labels={zone: "z1"}), builders.node("b", labels={zone: "z0"})]
    pods = [replica("a-1", "a", "a", cpu="4"), replica("a-2", "a", "a", cpu="2")]
    pods[1]["metadata"]["uid"] = "uid-2"
    pods[0]["metadata"]["deletionTimestamp"] = "2026-11-18T12:00:30Z"
    return load_objects([*nodes, *pods, *objects], now=NOW, version=(1, 36)).snapshot


def test_nodes_are_sorted_by_zone_and_leaving_pods_are_counted_apart() -> None:
    assert look(snapshot(), ()).bars == (NodeBar("b", "z0", 0.0), NodeBar("a", "z1", 0.25, 0.5))


def test_a_move_keeps_its_forecast_destinations_to_its_end() -> None:
    begun = look(snapshot(history(open=[OPEN])), ())
    (move,) = begun.moves
    assert (move.pod, move.source, move.destinations, move.evicted) == ("shop/a-1", "a", ("b",), False)
    (gone,) = look(snapshot(history(open=[OPEN | {"podUID": "uid-gone"}])), ()).moves
    assert gone.evicted
    ended = look(snapshot(history(past=[PAST])), begun.moves)
    (move,) = ended.moves
    assert (move.outcome, move.landed_on, move.destinations) == (Outcome.BETTER, "b", ("b",))
    assert (begun.under_way, ended.under_way, ended.astray, ended.returned) == (1, 0, 0, 0)


def test_a_refused_move_that_was_never_shown_is_not_listed() -> None:
    dropped = {key: value for key, value in PAST.items() if key not in ("evictedAt", "landedOn")}
    assert look(snapshot(history(past=[{**dropped, "outcome": "Refused"}])), ()).moves == ()


@pytest.mark.parametrize(
    ("move", "said"),
    [
        (MOVE, "shop/web-1: from a to b (or 1 other), requesting eviction: its node is over-utilised"),
        (EVICTED, "shop/web-1: from a to b (or 1 other), evicted: its node is over-utilised"),
        (
            LANDED,
            "shop/web-1: from a to b (or 1 other): landed on c as forecast, Ready after 2 s: Better",
        ),
        (
            LANDED._replace(landed_on="a", outcome=Outcome.RETURNED, time_to_ready=None),
            "shop/web-1: from a to b (or 1 other): landed on a not as forecast: Returned",
        ),
        (LANDED._replace(destinations=()), "shop/web-1: from a to ?: landed on c, Ready after 2 s: Better"),
        (
            MOVE._replace(destinations=("b",), outcome=Outcome.REFUSED),
            "shop/web-1: from a to b: Refused",
        ),
    ],
)
def test_a_move_is_described_in_one_line(move: ShownMove, said: str) -> None:
    assert tell(move) == said


def test_news_are_beginnings_and_ends() -> None:
    before, after = MoveSnapshot((), (MOVE,)), MoveSnapshot((), (EVICTED, LANDED._replace(id="m-2")))
    assert tell_news(None, before) == [summarize(before), tell(MOVE)]
    assert tell_news(MoveSnapshot((), ()), before) == [tell(MOVE)]
    assert tell_news(before, after) == [tell(LANDED)]
    assert tell_news(after, after) == []


def test_the_summary_counts_nodes_and_moves() -> None:
    bars = (NodeBar("a", "z", 0.76), NodeBar("b", "z", 0.75), NodeBar("c", "z", 0.3))
    returned = LANDED._replace(landed_on="a", outcome=Outcome.RETURNED)
    assert summarize(MoveSnapshot(bars, (MOVE, LANDED, returned, LANDED._replace(destinations=())))) == (
        "1 nodes above 75% of cpu, 1 at or below 30%; "
        "1 moves in flight, 3 landed, 1 not as forecast, 1 returned"
    )


@pytest.mark.parametrize("width", [40, 80, 141])
def test_a_picture_is_as_wide_as_it_may_be_and_shows_every_node(width: int) -> None:
    bars = [NodeBar(f"node-{number:05d}", f"z{number % 2}", number / 5, 0.1) for number in range(5)]
    sight = MoveSnapshot(tuple(sorted(bars, key=lambda bar: (bar.zone, bar.name))), (MOVE, LANDED))
    lines = draw(sight, width, color=False)
    assert all(bar.name in "".join(lines) for bar in bars)
    assert lines[0].split() == ["z0", "z1"]
    pictures = [line for line in lines if "node-" in line]
    assert max(map(len, pictures)) <= max(width, 48)
    assert all(len(line) <= width for line in lines[-2:])
    assert "\x1b[31m" in "".join(draw(sight, width))


def test_the_leaving_share_is_drawn_after_the_staying_share() -> None:
    (_, line, *_) = draw(MoveSnapshot((NodeBar("node-a", "z", 0.5, 0.25),), ()), 58, color=False)
    assert line == f"node-a {'█' * 20}{'▒' * 10}{'░' * 10}  50%"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_drawn_over_and_a_file_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "40")
    sights = [MoveSnapshot((NodeBar("a", "z", 0.9),), moves) for moves in ((), (MOVE,), (LANDED,))]
    terminal, file = Terminal(), io.StringIO()
    for out in (terminal, file):
        screen = Screen(out, draw, tell_news)
        for sight in sights:
            screen.show(sight)
    assert terminal.getvalue().count("\x1b[J") == 2
    assert "\x1b[4A" in terminal.getvalue()
    assert file.getvalue().splitlines() == [summarize(sights[0]), tell(MOVE), tell(LANDED)]
