"""The leader audit itself, on made-up calls: it finds late writes. Needs no cluster."""

from localcluster.audit_log import Call
from tests.live.support.leader_audit import Fence


def call(who: str, at: float, *, resource: str = "leases", name: str = "", **spec: str | None) -> Call:
    verb, code = ("create", 201) if resource == "pods/eviction" else ("patch", 200)
    return Call("account", who, verb, resource, "", name, at, at + 0.01, code, {"spec": spec} if spec else {})


def take(who: str, at: float) -> Call:
    return call(who, at, holderIdentity=who)


def evict(who: str, at: float, name: str) -> Call:
    return call(who, at, resource="pods/eviction", name=name)


def fence(*calls: Call) -> Fence:
    return Fence(calls, since=0.0)


def test_a_handover_lasts_from_the_last_renewal_to_the_next_claim() -> None:
    seen = fence(
        take("a", 1), call("a", 2, renewTime="now"), take("b", 5.5), call("b", 7, holderIdentity=None)
    )
    (taken,) = seen.list_handovers()
    assert (taken.seconds, taken.is_released) == (3.5, False)
    *_, left = fence(take("a", 1), call("a", 2, holderIdentity=None), take("b", 2.25)).list_handovers()
    assert (left.seconds, left.is_released) == (0.25, True)


def test_only_who_has_just_returned_is_excused_for_not_having_looked_at_the_lease() -> None:
    look = Call(**{**vars(call("b", 8)), "verb": "get"})
    calls = [take("a", 1), look, take("b", 8.5)]
    spans = [
        [each.seconds for each in Fence(calls, since=0.0, returned=returned).list_handovers()]
        for returned in ([], [0.0], [7.0])
    ]
    assert spans == [[7.5], [0.5], [0.5]]
    late = [take("a", 21), Call(**{**vars(look), "received": 28.0}), take("b", 28.5)]
    (missed,) = Fence(late, since=0.0, returned=[7.0]).list_handovers()
    assert missed.seconds == 7.5


def test_writes_after_the_next_leader_took_the_lease_are_late() -> None:
    seen = fence(
        take("a", 1),
        evict("a", 2, "in-time"),
        take("b", 5),
        call("a", 6, resource="events"),
        call("a", 6, resource="evictionhistories/status", name="late"),
        evict("b", 6, "others"),
        take("a", 9),
        evict("a", 10, "leads-again"),
    )
    assert [[each.name for each in late] for late in seen.list_late()] == [["late"], []]


def test_a_pod_that_is_evicted_twice_and_a_window_that_is_too_full_are_seen() -> None:
    seen = fence(evict("a", 1, "x"), evict("a", 2, "y"), evict("b", 6, "x"), evict("b", 6.5, "z"))
    assert seen.evicted == {"x", "y", "z"}
    assert seen.list_repeated() == ["x"]
    assert (seen.count_fullest(5), seen.count_fullest(4), seen.count_fullest(0.2)) == (3, 2, 1)


def test_dry_run_evictions_do_not_count_and_unanswered_ones_do() -> None:
    dry = evict("a", 1, "dry")
    dry = Call(**{**vars(dry), "body": {"deleteOptions": {"dryRun": ["All"]}}})
    refused = Call(**{**vars(evict("a", 2, "refused")), "code": 429})
    unanswered = Call(**{**vars(evict("a", 3, "unanswered")), "code": None, "answered": None})
    assert fence(dry, refused, unanswered).evicted == {"unanswered"}
