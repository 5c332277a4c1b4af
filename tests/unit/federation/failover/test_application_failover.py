"""Verdicts about workloads that fail."""

from federation.failover.application_failover import CopyReport, FailoverReason, judge_failover
from federation.failover.eviction_history import GiveUpRules
from federation.failover.health_clock import HealthClock
from reberth.values.timestamp import parse_time, write_time
from tests.support.federation.objects import NOW, claimed_binding, given

TOLERATED = {"application": {"decisionConditions": {"tolerationSeconds": 60}}}


def failing(name: str, seconds: float, *, reported: float) -> CopyReport:
    clock = HealthClock(write_time(NOW - reported), failing=write_time(NOW - seconds))
    return CopyReport(name, "Unhealthy", clock, is_member_ready=True)


def test_a_copy_that_has_not_got_its_newest_version_yet_stays() -> None:
    one = claimed_binding(clusters=given(m1=3), failover=TOLERATED)
    copy = failing("m1", 100, reported=400)
    for is_newest, wanted in ((True, FailoverReason.DUE), (False, FailoverReason.ROLLING_OUT)):
        copies = [copy._replace(is_newest=is_newest)]
        found = judge_failover(one, copies, GiveUpRules(), now=NOW, read_time=parse_time)
        assert found is not None
        assert found.reason is wanted


def test_of_a_workload_that_is_given_up_the_other_copies_keep_their_time_and_count_as_failing() -> None:
    moved = {
        "clusterName": "m0",
        "reason": "ApplicationFailure",
        "creationTimestamp": write_time(NOW - 500),
        "fruitless": 1,
    }
    one = claimed_binding(clusters=given(m1=1, m2=1), failover=TOLERATED, activeEvictionHistory=[moved])
    copies = [failing("m1", 100, reported=400), failing("m2", 20, reported=9000)]
    rules = GiveUpRules()
    found = judge_failover(one, copies, rules, now=NOW, read_time=parse_time)
    assert found is not None
    assert found.reason is FailoverReason.GIVEN_UP
    assert found.failing == {"m1", "m2"}
    assert found.look_at == NOW + 40
    alone = judge_failover(one, copies[:1], rules, now=NOW, read_time=parse_time)
    assert alone is not None
    assert alone.look_at == NOW - 500 + rules.lasting
