"""Limits in percent: of which pods, what they come to, and what a refusal says."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from reberth.cluster.cache import Cache
from reberth.cluster.kinds import DEPLOYMENT, JOB, POD, REPLICA_SET
from reberth.memory.rates import DisruptionLimits
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from rescheduler.budgets.limits import CandidateMove, Limits, begin_limits
from rescheduler.model.guardrails import LimitSettings, ProtectionSettings, list_percentages
from rescheduler.observe.rule_context import RuleContext
from tests.support.builders import owner
from tests.support.rescheduler.fleets import draw_objects
from tests.support.rescheduler.guardrails import (
    NOW,
    Object,
    context_of,
    keep_ledger,
    place_of,
    replica,
    workload,
)
from tests.support.rescheduler.plans import policy

FREE: Object = {"perCycle": None, "perNode": None, "perWorkload": None, "rates": {"cluster": []}}


def limits_of(**limits: Any) -> LimitSettings:
    """The limits as a file would give them; nothing else is limited."""
    return policy(limits={**FREE, **limits}).limits


def webs(count: int, app: str = "web", **fields: Any) -> list[Object]:
    owned_by = owner("ReplicaSet", app)
    return [replica(f"{app}-{n:02}", owned_by=owned_by, **fields) for n in range(count)]


def cluster(*objects: Object, **limits: Any) -> RuleContext:
    return context_of(*objects, limits=limits_of(**limits), protections=ProtectionSettings(last_ready=False))


def spend(context: RuleContext, *names: str) -> tuple[int, Refused | None]:
    """Count the moves until one is refused."""
    limits = begin_limits(context)
    for number, name in enumerate(names):
        left = limits.spend(CandidateMove(place_of(context, name), 0, "underUtilisedNodes"))
        if not isinstance(left, Limits):
            return number, left
        limits = left
    return len(names), None


@pytest.mark.parametrize(
    ("limits", "rule", "setting"),
    [
        ({"perCycle": "20%"}, "Limit", "perCycle 20% (2 of 12 pods)"),
        ({"perNamespace": "20%"}, "NamespaceInFlight", "perNamespace 20% (2 of 12 pods)"),
        ({"perWorkload": "20%"}, "WorkloadInFlight", "perWorkload 20% (2 of 10 pods)"),
        ({"rates": {"cluster": ["20% per 10m"]}}, "ClusterRate", "20% per 600s (2 of 12 pods)"),
        (
            {"rates": {"cluster": [], "namespace": ["20% per 1h"]}},
            "NamespaceRate",
            "20% per 3600s (2 of 12 pods)",
        ),
        (
            {"rates": {"cluster": [], "workload": ["20% per 1h", "9 per 1h"]}},
            "WorkloadRate",
            "20% per 3600s (2 of 10 pods)",
        ),
        (
            {"rates": {"cluster": ["5% min 3 per 1h"]}, "rateReserve": "50%"},
            "ClusterRate",
            "5% min 3 per 3600s (3 of 12 pods), of which 1 are kept in reserve",
        ),
    ],
)
def test_a_percentage_is_of_the_pods_of_its_scope(limits: Object, rule: str, setting: str) -> None:
    context = cluster(*webs(10), *webs(2, "db"), **limits)
    moved, refused = spend(context, *(f"web-{n:02}" for n in range(10)))
    assert moved == 2
    assert refused is not None
    assert (refused.rule, refused.reason) == (rule, f"no more than {setting}")


@pytest.mark.parametrize(
    ("pods", "text", "moved"),
    [(1, "10%", 0), (3, "10%", 0), (3, "34%", 1), (1, "100%", 1), (3, "100%", 3), (3, "10% min 1", 1)],
)
def test_small_workloads(pods: int, text: str, moved: int) -> None:
    names = [f"web-{n:02}" for n in range(pods)]
    for limits in ({"perWorkload": text}, {"rates": {"cluster": [], "workload": [f"{text} per 1h"]}}):
        assert spend(cluster(*webs(pods), *webs(20, "db"), **limits), *names)[0] == moved


def test_pods_that_cannot_be_disrupted_do_not_count() -> None:
    others = [
        *webs(5, "agent", namespace="default"),
        *webs(5, "gone", deleted="2027-01-15T08:00:00Z"),
        *webs(5, "done", phase="Succeeded"),
        *webs(5, "waiting", node=None),
    ]
    for each in others[:5]:
        each["metadata"]["ownerReferences"] = [owner("DaemonSet", "agent")]
    context = cluster(*webs(10), *others, perCycle="50%")
    assert context.pod_counts.in_cluster == 10
    assert spend(context, *(f"web-{n:02}" for n in range(10)))[0] == 5


def test_a_workload_without_pods_may_make_no_move() -> None:
    context = cluster(*webs(10), perWorkload="50%")
    gone = context.limits_of("default", WorkloadIdentity("apps/v1", "Deployment", "gone", "uid-gone"))
    assert str(gone.per_workload) == "50% (0 of 0 pods, however long one waits)"


def guessed(count: int, app: str) -> list[Object]:
    """Pods of a ReplicaSet that is not known yet: only the name of its Deployment is."""
    made = webs(count, f"{app}-6d5f", labels={"pod-template-hash": "6d5f"})
    for number, each in enumerate(made):
        each["metadata"]["name"] = f"{app}-{number:02}"
    return made


def test_workloads_without_a_uid_have_limits_of_their_own() -> None:
    rates = {"cluster": [], "workload": ["50% per 1h"]}
    context = cluster(*guessed(6, "web"), *guessed(4, "db"), rates=rates)
    names = ["web-00", "web-01", "db-00", "web-02", "db-01"]
    assert spend(context, *names) == (5, None)
    for one, told in (("web-03", "3 of 6 pods"), ("db-02", "2 of 4 pods")):
        refused = Refused("WorkloadRate", f"no more than 50% per 3600s ({told})", NOW + 3605)
        assert spend(context, *names, one) == (5, refused)


def test_a_deployment_that_is_known_by_its_name_is_charged_by_its_uid() -> None:
    found, spent = workload("Deployment"), {"time": "2027-01-15T07:59:30.000000Z", "state": "Spent"}
    debit = {"move": "m", "namespace": "default", "workloadUID": found["metadata"]["uid"], **spent}
    rates = {"cluster": [], "workload": ["1 per 1h"]}
    context = cluster(*guessed(6, "web"), found, keep_ledger([debit]), rates=rates)
    assert spend(context, "web-00") == (
        0,
        Refused("WorkloadRate", "no more than 1 per 3600s", NOW - 30 + 3605),
    )


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (
            {"rates": {"cluster": [], "workload": ["25% per 1h"]}},
            "25% per 3600s (0 of 3 pods, however long one waits)",
        ),
        (
            {"rates": {"cluster": ["50% per 1h"]}, "rateReserve": "100%"},
            "50% per 3600s (1 of 3 pods), of which 1 are kept in reserve",
        ),
    ],
)
def test_a_rate_that_no_time_opens_says_so(limits: Object, told: str) -> None:
    _, refused = spend(cluster(*webs(3), **limits), "web-00")
    assert refused is not None
    assert (refused.reason, refused.until) == (f"no more than {told}", None)


def test_what_percentages_come_to_is_told() -> None:
    rates = {"cluster": ["5% per 10m", "10 per 1h"], "namespace": ["9 per 1h"], "workload": ["25% per 1h"]}
    context = cluster(*webs(10), *webs(30, "db"), perWorkload="10% min 2", perNamespace=4, rates=rates)
    told = context.limits_of("default", context.identify(place_of(context, "web-00")))
    assert list(list_percentages(told)) == [
        "perWorkload 10% min 2 (2 of 10 pods)",
        "rates.cluster 5% per 600s (2 of 40 pods)",
        "rates.workload 25% per 3600s (2 of 10 pods)",
    ]
    assert list(list_percentages(LimitSettings())) == []


def test_limits_without_a_percentage_count_no_pods() -> None:
    context = cluster(*webs(2), perCycle=5, rates={"cluster": ["10 per 10m"]})
    assert spend(context, "web-00", "web-01") == (2, None)
    assert "pod counts" not in context._known


@pytest.mark.parametrize("seed", range(40))
def test_the_plan_and_the_cache_count_the_same_pods(seed: int) -> None:
    """What a plan counts in its snapshot is what a move is given when it reserves its disruption."""
    dice = Random(seed)
    objects = [*draw_objects(dice), *webs(3, "agent"), *webs(2, "lone")]
    for each in objects[-5:-2]:
        each["metadata"]["ownerReferences"] = [owner("DaemonSet", "agent")]
    for each in objects[-2:]:
        each["metadata"]["ownerReferences"] = []
    context = context_of(*objects, limits=limits_of(perWorkload="50%"))
    cache = Cache(version=(1, 36))
    for kind in (POD, REPLICA_SET, JOB, DEPLOYMENT):
        cache.of(kind).become(copy_of(context, cache, kind))
    counts, expected = cache.pod_counts, context.pod_counts
    assert counts.in_cluster == expected.in_cluster > 0
    roots: Counter[tuple[str, WorkloadIdentity]] = Counter()
    for place, row in enumerate(context.snapshot.pods.rows):
        roots[row.namespace, context.identify(place)] += 1
    for (namespace, root), most in roots.items():
        assert counts.in_namespace(namespace) == expected.in_namespace(namespace)
        found = cache.count_workload(namespace, root)
        assert found == context.count_workload(namespace, root) <= most


def copy_of(context: RuleContext, cache: Cache, kind: Any) -> Any:
    table = cache.of(kind).begin()
    for row in context.snapshot.of(kind):
        table.put(context.snapshot.of(kind)._identify(row), row)
    return table


def test_the_clock_skew_stays_when_percentages_are_counted_out() -> None:
    limits = limits_of(rates={"cluster": ["5% per 10m"], "clockSkew": "2s"})
    context = context_of(*webs(20), limits=limits)
    found = context.limits_of().rates
    assert found == replace(limits.rates, cluster=found.cluster)
    assert isinstance(found, DisruptionLimits)
    assert [rate.limit for rate in found.cluster] == [1]
