"""Which open move draws which pod."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.rows import make_pod_row
from reberth.cluster.templates import Templates
from reberth.memory.destination_draw import Replica, asking_replica, draw, list_untaken, replica_of
from reberth.memory.replacements import MARGIN
from reberth.records import ObjectMeta, OpenMove, Phase
from reberth.values.timestamp import write_time
from tests.support import builders
from tests.support.builders import Object
from tests.support.cluster.strategies import pod_record
from tests.support.memory.objects import NOW, move

ASKED = Replica(NOW + 10, "asked", waiting=True)


def bound(uid: str, *, at: float) -> Replica:
    return Replica(NOW + at, uid, bound=True)


def waiting(uid: str, *, at: float) -> Replica:
    return Replica(NOW + at, uid, waiting=True)


def drawn_by(
    moves: list[OpenMove], replicas: list[Replica], asked: Replica = ASKED, now: float = NOW
) -> str | None:
    found = draw(asked, moves, replicas, now=now)
    return found.id if found else None


M1, M2, M3 = (move(f"m{n}", planned=NOW + n) for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("moves", "replicas", "expected"),
    [
        ([], [], None),
        ([M1], [], "m1"),
        ([M2, M1], [], "m1"),
        ([M1], [ASKED], "m1"),
        ([M1], [bound("old", at=-99)], "m1"),
        ([M1], [bound("new", at=5)], None),
        ([M1, M2], [bound("new", at=5)], "m2"),
        ([M1, M2, M3], [bound("a", at=5), bound("b", at=5)], "m3"),
        ([M1, M2], [bound("between", at=1)], "m2"),
        ([M1, M2, M3], [bound("late", at=5), bound("between", at=1)], "m3"),
        ([M1, M2], [waiting("older", at=5)], "m2"),
        ([M1, M2], [waiting("younger", at=15)], "m1"),
        ([M1, M2], [waiting("a", at=10)], "m2"),
        ([M1, M2], [waiting("b", at=10)], "m1"),
        ([M1], [waiting("older", at=5)], None),
        ([M1], [Replica(NOW + 5, "dying")], "m1"),
        ([M1, M2], [bound("a", at=5), waiting("b", at=6)], None),
    ],
)
def test_the_pod_of_a_rank_is_drawn_by_the_untaken_move_of_that_rank(
    moves: list[OpenMove], replicas: list[Replica], expected: str | None
) -> None:
    assert drawn_by(moves, replicas) == expected


@pytest.mark.parametrize(
    ("version", "others", "expected"),
    [
        (7, [8], "m1"),
        (7, [6], None),
        (7, [math.inf], "m1"),
        (math.inf, [7], None),
    ],
)
def test_pods_created_in_the_same_second_are_ordered_by_resource_version(
    version: float, others: list[float], expected: str | None
) -> None:
    asked = Replica(NOW + 10, "b", version, waiting=True)
    replicas = [Replica(NOW + 10, f"a{other}", other, waiting=True) for other in others]

    assert drawn_by([M1], replicas, asked) == expected


def test_a_pod_that_failed_lets_those_that_came_since_go_first() -> None:
    failed = Replica(NOW + 5, "old", 99, waiting=True)

    assert drawn_by([M1], [failed], Replica(NOW + 10, "new", 50, waiting=True)) == "m1"
    assert drawn_by([M1], [Replica(NOW + 10, "new", 50, waiting=True)], failed) is None


def test_only_the_first_pod_by_resource_version_is_drawn() -> None:
    """Bound or not by then, seen or not: the others are drawn by nothing."""
    pods = [Replica(NOW + 10, uid, version) for version, uid in enumerate("dacb")]
    for seen, bound_by_then in itertools.product(range(len(pods) + 1), range(2)):
        drawn = []
        for number, pod in enumerate(pods):
            rest = pods[: max(seen, number)]
            mirrored = [
                other._replace(bound=other.version < number, waiting=other.version >= number)
                if bound_by_then
                else other._replace(waiting=True)
                for other in rest
            ]
            if drawn_by([M1], mirrored, pod._replace(waiting=True)):
                drawn.append(pod.uid)
        assert drawn == ["d"]


@pytest.mark.parametrize(
    ("version", "expected"),
    [("12", 12.0), ("", math.inf), ("x", math.inf), ("-1", math.inf), ("²", math.inf)],
)
def test_a_pod_without_a_version_is_yet_to_be_made(version: str, expected: float) -> None:
    meta = ObjectMeta(uid="u", creation_timestamp=write_time(NOW), resource_version=version)

    assert asking_replica(meta) == Replica(float(NOW), "u", expected, waiting=True)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_planned_move_neither_draws_a_pod_nor_claims_a_replacement(phase: Phase) -> None:
    first = move("first", planned=NOW, phase=phase)

    assert drawn_by([first, M1], []) == ("m1" if phase is Phase.PLANNED else "first")
    assert drawn_by([first, M1], [bound("new", at=5)]) == (None if phase is Phase.PLANNED else "m1")


def test_an_expired_move_draws_no_pod() -> None:
    brief = move("brief", planned=NOW, life=60)

    assert drawn_by([brief], [], now=NOW + 59) == "brief"
    assert drawn_by([brief], [], now=NOW + 60) is None


def test_a_pod_that_was_known_to_a_move_does_not_take_it_whatever_its_age() -> None:
    knowing = move("m1", planned=NOW, known_pods=("known",))

    assert drawn_by([knowing], [bound("known", at=5)]) == "m1"
    assert drawn_by([knowing], [bound("unknown", at=-5)]) is None
    assert drawn_by([knowing], [bound("unknown", at=-MARGIN)]) == "m1"


def test_what_one_move_knew_may_have_replaced_the_pod_of_an_earlier_one() -> None:
    moves = [move("first", planned=NOW), move("second", planned=NOW + 2, known_pods=("a",))]

    assert drawn_by(moves, [bound("a", at=1)]) == "second"
    assert drawn_by(moves, [bound("a", at=1), bound("b", at=1)]) is None


def test_the_moved_pod_does_not_replace_itself() -> None:
    assert drawn_by([move("m1", pod_uid="victim")], [bound("victim", at=0)]) == "m1"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"phase": "Running"}, None),
        ({"phase": "Pending"}, None),
        ({"phase": "Succeeded"}, None),
        ({"phase": "Failed"}, "m1"),  # the kubelet rejected or evicted it: its controller makes another one
        ({"phase": "Running", "deleted": write_time(NOW + 20)}, "m1"),
    ],
)
def test_a_bound_pod_takes_a_move_only_while_it_lives(fields: Object, expected: str | None) -> None:
    made = builders.pod("new", node="n1", uid="new", created=write_time(NOW + 5), **fields)
    row = make_pod_row(pod_record(made), Templates(version=(1, 36)))
    assert drawn_by([M1], [replica_of(row)]) == expected


def test_the_cached_state_of_the_incoming_pod_does_not_count() -> None:
    assert drawn_by([M1], [bound("asked", at=10)]) == "m1"


def test_a_move_with_an_unreadable_time_draws_no_pod_once_one_is_bound() -> None:
    unreadable = move("m1", planned_at="soon")

    assert drawn_by([unreadable], [bound("any", at=-999)]) is None


moves = st.lists(
    st.builds(
        lambda number, at, phase, known: move(
            f"m{number}", planned=NOW + at / 2, phase=phase, pod_uid=f"r{number % 3}", known_pods=known
        ),
        st.integers(0, 9),
        st.integers(-10, 10),
        st.sampled_from(list(Phase)),
        st.none() | st.tuples(st.integers(0, 9).map("r{}".format)),
    ),
    max_size=6,
    unique_by=lambda one: one.id,
)
replicas = st.lists(
    st.builds(
        lambda number, at, state: Replica(NOW + at, f"r{number}", bound=state == 1, waiting=state == 2),
        st.integers(0, 9),
        st.integers(-6, 6),
        st.integers(0, 2),
    ),
    max_size=8,
    unique_by=lambda one: one.uid,
)


@given(moves=moves, replicas=replicas, data=st.data())
def test_the_order_of_the_objects_does_not_matter(
    moves: list[OpenMove], replicas: list[Replica], data: st.DataObject
) -> None:
    other_moves, other_replicas = data.draw(st.permutations(moves)), data.draw(st.permutations(replicas))

    assert drawn_by(moves, replicas) == drawn_by(other_moves, other_replicas)


@given(moves=moves, replicas=replicas)
def test_no_two_waiting_pods_are_drawn_by_one_move(moves: list[OpenMove], replicas: list[Replica]) -> None:
    untaken = [one.id for one in list_untaken(moves, replicas, now=NOW)]
    asked = sorted((one for one in replicas if one.waiting), key=lambda one: (one.created_at, one.uid))

    drawn = [drawn_by(moves, replicas, asked=one) for one in asked]

    assert drawn == (untaken + [None] * len(asked))[: len(asked)]


@given(moves=moves, replicas=replicas)
def test_each_new_bound_pod_takes_one_move_at_most(moves: list[OpenMove], replicas: list[Replica]) -> None:
    before = list_untaken(moves, replicas, now=NOW)
    after = list_untaken(moves, [*replicas, Replica(NOW + 99, "new", bound=True)], now=NOW)

    assert len(after) == max(0, len(before) - 1)


def test_moves_of_one_second_keep_their_order() -> None:
    assert drawn_by([move("a", planned=NOW + 0.5), move("b", planned=NOW + 0.25)], []) == "b"
