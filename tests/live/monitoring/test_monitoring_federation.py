"""The federation's dashboard on a real Prometheus that scraped it during a rebalancing."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from generating.alerts import ALERTS
from generating.federation_dashboard import FEDERATION_DASHBOARD
from generating.panels import Query, list_queries
from tests.live.support.hub_and_members import Place, eventually, weighted
from tests.live.support.hub_paths import DEPLOYMENTS, REBALANCERS
from tests.live.support.prometheus import Prometheus, fill_in, scraping
from tests.live.support.rebalancing_members import (
    AGGREGATED,
    MEMBERS,
    PAIR,
    binding_of,
    finished,
    let_a_second_pass,
    propagate,
    rebalance,
    rebalancer,
    rebalancing,
    recover,
    scheduled,
    settled,
    stand,
    taint,
)
from tests.support.repository import ALERT_RULES

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

QUERIES = list(list_queries(FEDERATION_DASHBOARD))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prometheus(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Prometheus]:
    """Three replicas come home while one rebalancer waits for a workload that does not exist."""
    async with rebalancing("watched", tmp_path_factory.mktemp("federation")) as place:
        ports = {"federation": [place.cluster.spare_port()]}
        async with scraping(place.cluster, ports, rules=ALERT_RULES) as made:
            await made.until("reberth_federation_rebalance_rescheduled_total == 0")
            await propagate(place, "web", 3, clusterAffinity=PAIR, replicaScheduling=weighted(member1=1))
            await let_a_second_pass(place, binding_of("web"))
            await stand(place, "web", {"member2": 3})
            await rebalance(place, "web")
            await settled(place, "web", {"member1": 3})
            await place.hub.create(REBALANCERS, rebalancer("waiting", "nobody"))
            await finished(place, "waiting")
            await made.until('reberth_federation_handovers_total{result="ready"} == 1')
            await made.until('reberth_federation_rebalance_waiting_workloads{reason="BindingNotFound"} == 1')
            # The first rebalancer counts as waiting until its workload is healthy in its new cluster.
            await made.until("sum(reberth_federation_rebalance_waiting_workloads) == 1")
            await leave_a_tainted_member(place, made)
            yield made


async def leave_a_tainted_member(place: Place, made: Prometheus) -> None:
    await propagate(place, "moving", 2, clusterAffinity=PAIR, replicaScheduling=AGGREGATED)
    (home,) = scheduled(
        await eventually(place.hub, binding_of("moving"), lambda one: one and len(scheduled(one)) == 1)
    )
    (other,) = {*PAIR["clusterNames"]} - {home}
    await settled(place, "moving", {home: 2})
    await eventually(place.members[home], f"{DEPLOYMENTS}/moving", is_ready)
    await taint(place, home)
    await settled(place, "moving", {other: 2})
    await made.until('reberth_federation_evictions_total{outcome="replaced",cause="TaintUntolerated"} >= 1')
    await recover(place, home)
    await made.until("sum(reberth_federation_evictions_under_way) == 0")


def is_ready(copy: Any) -> bool:
    return bool(copy and copy.get("status", {}).get("readyReplicas") == 2)


@pytest.mark.parametrize(
    ("title", "query"), QUERIES, ids=[f"{title} {number}" for number, (title, _) in enumerate(QUERIES)]
)
async def test_a_query_of_the_dashboard_is_answered(prometheus: Prometheus, title: str, query: Query) -> None:
    assert await prometheus.query(fill_in(query)) or query.answers == "perhaps", title


async def test_the_dashboard_shows_the_rebalancing_that_was_done(prometheus: Prometheus) -> None:
    """An increase is extrapolated to the whole range, hence the rounding down."""
    said = {}
    for title, query in QUERIES:
        for series in await prometheus.query(fill_in(query)):
            labels = {name: value for name, value in series["metric"].items() if name != "__name__"}
            said[title, *labels.values()] = float(series["value"][1])
    assert said["Triggered", "rebalancer"] >= 1
    assert said["Triggered", "failback"] == 0
    assert said["Rescheduled",] >= 1
    assert said["Replicas moved",] >= 3
    assert said["Waiting",] == 1
    assert said["Waiting by reason", "BindingNotFound"] == 1
    assert said["Waiting by reason", "Budget"] == 0
    assert said["Handovers timed out",] == 0
    assert said["Handovers", "ready"] >= 1
    assert said["Clusters", "ready"] == 3
    assert sum(count for (title, *_), count in said.items() if title == "Clusters") == 3
    assert said["Evictions", "TaintUntolerated", "replaced"] >= 1
    assert said["Evictions", "TaintUntolerated", "timedOut"] == 0
    assert said["Evictions under way", "TaintUntolerated"] == 0
    assert said["Without a ready copy",] == 0
    assert all(said["Age of each member's word", member] < 30 for member in MEMBERS)


async def test_no_alert_is_raised_about_a_federation_that_is_well(prometheus: Prometheus) -> None:
    about_it = {alert.name for alert in ALERTS if "reberth_federation_" in alert.expression}
    rules = [rule for rule in await prometheus.rules() if rule["name"] in about_it]
    assert {rule["name"] for rule in rules} == about_it
    assert {(rule["health"], rule["state"]) for rule in rules} == {("ok", "inactive")}
