"""Which requests a rule is for: how they are read, matched and counted, and how a seed chooses among them."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcluster.faults import (
    ALWAYS,
    WRITES,
    Answer,
    Fault,
    Match,
    Reset,
    Rule,
    Turns,
    between,
    every,
    nth,
    read_request_info,
    schedule,
    status_bodies,
    times,
)


@pytest.mark.parametrize(
    ("method", "target", "verb", "resource"),
    [
        ("GET", "/api/v1/pods", "list", "pods"),
        ("GET", "/api/v1/pods?watch=true", "watch", "pods"),
        ("GET", "/api/v1/pods?watch=1", "watch", "pods"),
        ("GET", "/api/v1/pods?watch=false", "list", "pods"),
        ("GET", "/api/v1/pods?watch=0", "list", "pods"),
        ("HEAD", "/api/v1/nodes/n1", "get", "nodes"),
        ("GET", "/api/v1/namespaces/shop/pods/web-1", "get", "pods"),
        ("GET", "/api/v1/namespaces/shop/pods/web-1/log", "get", "pods/log"),
        ("POST", "/api/v1/namespaces/shop/pods", "create", "pods"),
        ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction", "create", "pods/eviction"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "update", "leases"),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", "patch", "deployments/scale"),
        ("DELETE", "/api/v1/namespaces/shop/pods/web-1", "delete", "pods"),
        ("DELETE", "/api/v1/namespaces/shop/pods", "deletecollection", "pods"),
        ("GET", "/api/v1/namespaces", "list", "namespaces"),
        ("GET", "/api/v1/namespaces/shop", "get", "namespaces"),
        ("PUT", "/api/v1/namespaces/shop/finalize", "update", "namespaces/finalize"),
        ("PATCH", "/api/v1/namespaces/shop/status", "patch", "namespaces/status"),
        ("GET", "/api/v1", "get", ""),
        ("GET", "/apis/apps/v1", "get", ""),
        ("GET", "/apis", "get", ""),
        ("GET", "/readyz?verbose", "get", ""),
        ("POST", "/", "post", ""),
    ],
)
def test_a_request_is_read_as_the_api_server_reads_it(
    method: str, target: str, verb: str, resource: str
) -> None:
    request = read_request_info("a", method, target=target)
    assert (request.verb, request.resource) == (verb, resource)


def test_a_request_names_its_object() -> None:
    target = "/apis/apps/v1/namespaces/shop/deployments/we%62/scale?dryRun=All&x="
    request = read_request_info("a", "PATCH", target=target)
    assert (request.group, request.namespace, request.name, request.object) == (
        "apps",
        "shop",
        "web",
        'deployments.apps "web"',
    )
    assert request.path == "/apis/apps/v1/namespaces/shop/deployments/web/scale"
    assert request.query == {"dryRun": "All", "x": ""}
    assert read_request_info("a", "GET", target="/api/v1/pods").object == "pods"


@pytest.mark.parametrize(
    ("match", "is_matched"),
    [
        (Match(), True),
        (Match(client="rescheduler-1"), True),
        (Match(client="rescheduler-*"), True),
        (Match(client="extender-*"), False),
        (Match(method="POST"), True),
        (Match(method="GET"), False),
        (Match(verb="create"), True),
        (Match(verb="update"), False),
        (Match(verb=WRITES), True),
        (Match(verb={"get", "list"}), False),
        (Match(resource="pods/eviction"), True),
        (Match(resource="pods/*"), True),
        (Match(resource="pods"), False),
        (Match(path="/api/v1/namespaces/*/pods/*"), True),
        (Match(path="/api/v1/namespaces/shop/pods"), False),
        (Match(path=re.compile(r"/pods/web-\d/")), True),
        (Match(path=re.compile(r"^/pods/")), False),
        (Match(query={"dryRun": "All"}), True),
        (Match(query={"dryRun": "None"}), False),
        (Match(query={"watch": "true"}), False),
        (Match(client="rescheduler-1", verb="get"), False),
    ],
)
def test_a_match_requires_all_its_fields(*, match: Match, is_matched: bool) -> None:
    target = "/api/v1/namespaces/shop/pods/web-1/eviction?dryRun=All&fieldManager=x"
    assert match.matches(read_request_info("rescheduler-1", "POST", target=target)) is is_matched


@pytest.mark.parametrize(
    ("turns", "included"),
    [
        (ALWAYS, [1, 2, 3, 4, 5, 6, 7]),
        (nth(3), [3]),
        (every(3), [3, 6]),
        (between(2, 4), [2, 3, 4]),
        (times(2), [1, 2]),
        (Turns(2, every=3, count=2), [2, 5]),
    ],
)
def test_turns_are_counted_among_the_matching_requests(turns: Turns, included: list[int]) -> None:
    assert [number for number in range(1, 8) if turns.include(number)] == included
    rule = Rule(Match(verb="get"), Reset(), turns)
    other = read_request_info("a", "POST", target="/api/v1/pods")
    request = read_request_info("a", "GET", target="/api/v1/pods/a")
    assert not rule.picks(other)
    assert [number for number in range(1, 8) if rule.picks(request)] == included
    assert (rule.matched, rule.acted) == (7, 0)


@pytest.mark.parametrize("wrong", [lambda: nth(0), lambda: every(0), lambda: times(0), lambda: between(4, 3)])
def test_turns_that_never_come_are_refused(wrong: type[Turns]) -> None:
    with pytest.raises(ValueError, match=r"Turns\.\w+ must be at least 1"):
        wrong()


UNHURRIED = settings(deadline=None)  # a busy machine is no defect
FAULTS = [Fault(Match(verb="get"), Reset()), Fault(Match(verb="list"), Answer(status_bodies.overloaded()))]


def numbers(rules: list[Rule]) -> list[tuple[Match, int]]:
    return [(rule.match, rule.turns.first) for rule in rules]


@UNHURRIED
@given(seed=st.integers(), n=st.integers(0, 40), more=st.integers(0, 1000))
def test_a_schedule_is_the_same_for_the_same_seed(seed: int, n: int, more: int) -> None:
    rules = schedule(seed, n, FAULTS, requests=n + more)
    assert numbers(rules) == numbers(schedule(seed, n, FAULTS, requests=n + more))
    assert len(rules) == n
    at = [rule.turns.first for rule in rules]
    assert at == sorted(set(at))
    assert all(1 <= number <= n + more for number in at)
    assert all(rule.turns == nth(rule.turns.first) for rule in rules)


def test_schedules_of_different_seeds_differ_and_use_all_faults() -> None:
    schedules = [numbers(schedule(seed, 20, FAULTS, requests=200)) for seed in range(50)]
    assert all(one != other for one, other in itertools.pairwise(schedules))
    assert {match.verb for one in schedules for match, _ in one} == {"get", "list"}


def test_a_schedule_of_nothing_or_of_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="faults must not be empty"):
        schedule(1, 1, [], requests=5)
    with pytest.raises(ValueError, match=r"n must be between 0 and requests \(5\), not 6"):
        schedule(1, 6, FAULTS, requests=5)
