"""What holds for every decision, whatever the clusters and the binding are."""

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import Cluster, ResourceBinding
from federation.scheduling import Decision, Fleet, decide
from federation.scheduling.demand import Bounds
from federation.scheduling.output import write_json
from federation.scheduling.rounding import divide
from federation.scheduling.selection import Region, combine
from tests.support.federation.clusters import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    decided,
    spread,
    triggered_binding,
    weighted,
)
from tests.support.federation.objects import NOW
from tests.support.resumable_rounds import Proof

NAMES = [f"m{number:03}" for number in range(100)]
REGIONS = ["r0", "r1", "r2", "r3", ""]
ROUNDS = 20


@st.composite
def fleets(draw: st.DrawFn, most: int = 12) -> list[Cluster]:
    rooms = draw(st.lists(st.integers(0, 40), min_size=1, max_size=most))
    regions = draw(st.lists(st.sampled_from(REGIONS), min_size=len(rooms), max_size=len(rooms)))
    return [
        cluster(name, room, region=region) for name, room, region in zip(NAMES, rooms, regions, strict=False)
    ]


placements_by_room = st.sampled_from([DYNAMIC, AGGREGATED])
assignments = st.dictionaries(st.sampled_from(NAMES[:15]), st.integers(1, 20), max_size=8)
asking = st.sampled_from([binding, triggered_binding])


def bounds_up_to(most: int) -> st.SearchStrategy[tuple[int, int | None]]:
    pairs = st.tuples(st.integers(0, most), st.none() | st.integers(1, most))
    return pairs.filter(lambda pair: pair[1] is None or pair[0] <= pair[1])


def replicas_of(decision: Decision) -> dict[str, int]:
    return {target.name: target.replicas for target in decision.clusters}


def check_by_room(asked: ResourceBinding, at: dict[str, int], decision: Decision) -> None:
    """Replicas add up, none is beyond the room, and without success nothing changes."""
    shares, replicas = replicas_of(decision), asked.spec.replicas
    if decision.scheduled_at is None:
        assert shares == at
        return
    assert sum(shares.values()) == replicas
    for name, count in shares.items():
        assert 0 < count <= decision.verdicts[name].available + at.get(name, 0)


@given(fleets(), placements_by_room, st.integers(1, 120), assignments, asking)
def test_replicas_add_up_and_fit_where_they_are_divided_by_room(
    clusters: list[Cluster], placement: dict[str, Any], replicas: int, at: dict[str, int], ask: Any
) -> None:
    asked = ask(replicas, placement, at=at)
    check_by_room(asked, at, decided(asked, *clusters))


@given(fleets(), placements_by_room, st.integers(1, 120), assignments)
def test_a_steady_decision_moves_no_replica_that_may_stay(
    clusters: list[Cluster], placement: dict[str, Any], replicas: int, at: dict[str, int]
) -> None:
    decision = decided(binding(replicas, placement, at=at), *clusters)
    if decision.scheduled_at is not None:
        staying = sum(count for name, count in at.items() if name in decision.verdicts)
        started = sum(max(0, count - at.get(name, 0)) for name, count in replicas_of(decision).items())
        assert started == max(0, replicas - staying)


@given(fleets(), placements_by_room, st.integers(1, 400), assignments, asking)
def test_by_room_a_decision_fails_only_for_lack_of_room(
    clusters: list[Cluster], placement: dict[str, Any], replicas: int, at: dict[str, int], ask: Any
) -> None:
    decision = decided(ask(replicas, placement, at=at), *clusters)
    room = sum(verdict.available for verdict in decision.verdicts.values())
    staying = sum(count for name, count in at.items() if name in decision.verdicts)
    assert (decision.reason == "Success") is (staying >= replicas or room + staying >= replicas)


@given(
    fleets(),
    st.dictionaries(st.sampled_from(NAMES[:12]), st.integers(0, 9)),
    st.integers(1, 200),
    assignments,
)
def test_fixed_weights_are_kept_to_the_nearest_replica(
    clusters: list[Cluster], weights: dict[str, int], replicas: int, at: dict[str, int]
) -> None:
    shares = replicas_of(decided(binding(replicas, weighted(**weights), at=at), *clusters))
    assert sum(shares.values()) == replicas
    named = {each.metadata.name: weights.get(each.metadata.name, 0) for each in clusters}
    votes = named if any(named.values()) else dict.fromkeys(named, 1)
    for name, count in shares.items():
        assert votes[name] > 0
        for other, weight in votes.items():
            assert count * 2 - 1 <= (2 * shares.get(other, 0) + 1) * votes[name] / weight if weight else True


@given(
    fleets(),
    st.sampled_from([DUPLICATED, DYNAMIC, AGGREGATED]),
    bounds_up_to(6),
    st.none() | bounds_up_to(3),
    st.integers(1, 60),
    assignments,
    asking,
)
def test_clusters_and_regions_stay_within_their_bounds(  # noqa: PLR0917 - hypothesis gives them by position
    clusters: list[Cluster],
    division: dict[str, Any],
    of_clusters: tuple[int, int | None],
    of_regions: tuple[int, int | None] | None,
    replicas: int,
    at: dict[str, int],
    ask: Any,
) -> None:
    bounds = {"cluster": of_clusters} | ({"region": of_regions} if of_regions else {})
    asked = ask(replicas, {**division, **spread(**bounds)}, at=at)
    decision = decided(asked, *clusters)
    if decision.scheduled_at is None:
        assert replicas_of(decision) == at
        return
    region_of = {each.metadata.name: each.spec.region for each in clusters}
    used = {region_of[target.name] for target in decision.clusters}
    least, most = of_clusters
    assert len(decision.clusters) <= (most or len(clusters))
    if division is DUPLICATED:
        assert len(decision.clusters) >= least
        assert set(replicas_of(decision).values()) == {replicas}
    if of_regions:
        assert "" not in used
        assert len(used) <= (of_regions[1] or len(clusters))
        assert division is not DUPLICATED or len(used) >= of_regions[0]


@given(fleets(), st.sampled_from([DUPLICATED, DYNAMIC, AGGREGATED]), assignments, st.randoms())
def test_the_same_input_gives_the_same_bytes_in_any_order(
    clusters: list[Cluster], division: dict[str, Any], at: dict[str, int], chance: random.Random
) -> None:
    placement = {**division, **spread(region=(1, 2), cluster=(1, 4))}
    shuffled = chance.sample(clusters, len(clusters))
    other = dict(chance.sample(list(at.items()), len(at)))
    first = write_json({"a": decided(binding(9, placement, at=at), *clusters)})
    assert first == write_json({"a": decided(binding(9, placement, at=other), *shuffled)})


@given(
    st.integers(0, 300),
    st.lists(st.integers(0, 50) | st.integers(0, 10**12), min_size=1, max_size=8),
    st.booleans(),
)
def test_seats_are_as_if_given_one_by_one(seats: int, counts: list[int], last: bool) -> None:  # noqa: FBT001 - from hypothesis
    votes = dict(zip(NAMES, counts, strict=False))
    slowly = dict.fromkeys(votes, 0)
    for _ in range(seats):
        order = sorted(votes, reverse=last)
        best = min(order, key=lambda name: (-votes[name] / (2 * slowly[name] + 1), slowly[name]))
        slowly[best] += 1
    assert divide(seats, votes, last_name_first=last) == slowly


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 99)), min_size=1, max_size=7),
    st.integers(1, 4),
    st.none() | st.integers(1, 5),
    st.integers(0, 12),
)
def test_the_best_combination_of_regions_is_that_of_trying_them_all(
    sizes: list[tuple[int, int]], least: int, most: int | None, clusters: int
) -> None:
    regions = [Region(f"R{number}", size, score) for number, (size, score) in enumerate(sizes)]
    chosen = combine(regions, Bounds(least, most), clusters)
    best = try_all(
        sorted(regions, key=lambda each: (each.clusters, -each.score, each.name)), least, most, clusters
    )
    assert [each.name for each in chosen] == [each.name for each in best]


def try_all(listed: list[Region], least: int, most: int | None, clusters: int) -> list[Region]:
    """Go through the combinations depth first, each ending where it is sound; prefer sound beginnings."""
    sound: list[list[Region]] = []

    def go(path: list[Region], place: int) -> None:
        if (
            len(path) >= least
            and sum(each.clusters for each in path) >= clusters
            and len(path) <= (most or 99)
        ):
            sound.append(path)
        elif len(path) < (most or 99):
            for at in range(place, len(listed)):
                go([*path, listed[at]], at + 1)

    go([], 0)
    by_score = [sorted(path, key=lambda each: (-each.score, each.name)) for path in sound]
    by_merit = sorted(
        by_score, key=lambda path: (-sum(r.score for r in path), -sum(r.clusters for r in path))
    )
    final = by_merit[0] if by_merit else []
    for path in by_merit[1:]:
        if len(path) < len(final) and final[: len(path)] == path:
            final = path
    return final


@pytest.mark.soak
def test_a_thousand_bindings_keep_the_laws_on_a_hundred_clusters() -> None:
    proof = Proof("federation-laws")
    for number in proof.remaining(range(ROUNDS)):
        keep_the_laws(random.Random(number), bindings=1000)
        proof.note([number])


def test_a_sample_of_bindings_keeps_the_laws_on_a_hundred_clusters() -> None:
    keep_the_laws(random.Random(ROUNDS), bindings=60)


def keep_the_laws(chance: random.Random, *, bindings: int) -> None:
    clusters = [cluster(name, chance.randint(0, 300), region=chance.choice(REGIONS)) for name in NAMES]
    fleet, other = Fleet(clusters), Fleet(chance.sample(clusters, len(clusters)))
    for _ in range(bindings):
        at = {name: chance.randint(1, 200) for name in chance.sample(NAMES, chance.randint(0, 30))}
        ask = chance.choice([binding, triggered_binding])
        asked = ask(chance.randint(1, 20_000), chance.choice([DYNAMIC, AGGREGATED]), at=at)
        decision = decide(asked, fleet, now=NOW)
        check_by_room(asked, at, decision)
        assert msgspec.json.encode(decision) == msgspec.json.encode(decide(asked, other, now=NOW))
