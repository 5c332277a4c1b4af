"""Dashboard and alerts on a real Prometheus that has scraped the product while it moved pods."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import pytest_asyncio
import yaml

from generating.alerts import ALERTS
from generating.panels import Query, list_queries
from generating.rescheduler_dashboard import RESCHEDULER_DASHBOARD
from localcluster.cluster import Cluster
from localcluster.state_dir import running
from tests.live.product.test_localproduct import run
from tests.live.support.prometheus import Prometheus, fill_in, scraping
from tests.support.repository import ALERT_RULES

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/reberth-system/leases/reberth-rescheduler"
EXTENDERS, RESCHEDULER = (0, 1), 3
CLUSTERS = ("east", "west")
QUERIES = list(list_queries(RESCHEDULER_DASHBOARD))


class Shown(NamedTuple):
    cluster: Cluster
    prometheus: Prometheus
    said: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shown() -> AsyncIterator[Shown]:
    """`make up`, watched by Prometheus from its first moment, as if it were two clusters that are well."""
    async with running("shown", nodes=30) as cluster:
        ports = {
            "extender": [cluster.spare_port(number) for number in EXTENDERS],
            "rescheduler": [cluster.spare_port(RESCHEDULER)],
        }
        async with scraping(cluster, ports, rules=ALERT_RULES, clusters=CLUSTERS) as prometheus:
            code, said = await run("localproduct", "show", "--name", cluster.folder.name)
            assert code == 0, said
            await prometheus.until("sum(up) == 6")
            yield Shown(cluster, prometheus, said)


async def test_without_a_terminal_moves_are_printed_line_by_line(shown: Shown) -> None:
    lines = shown.said.splitlines()
    begun = [line for line in lines if ", requesting eviction: " in line or ", evicted: " in line]
    landed = [line for line in lines if " as forecast, Ready after " in line]
    assert begun
    assert landed
    assert "\x1b" not in shown.said
    assert all("its node is over-utilised" in line for line in begun)
    (end,) = (line for line in lines if line.startswith("No more moves. "))
    assert "No more moves. 0 nodes above 75% of cpu" in end
    assert "; 0 moves in flight" in end
    assert end.endswith("0 not as forecast, 0 returned.")


async def test_the_end_names_addresses_that_answer(shown: Shown) -> None:
    settings = yaml.safe_load((shown.cluster.folder / "rescheduler.yaml").read_text())
    assert f"http://127.0.0.1:{settings['server']['port']}" in shown.said
    for address in settings["extenderAccess"]["addresses"]:
        assert f"http://{address}" in shown.said


@pytest.mark.parametrize(
    ("title", "query"), QUERIES, ids=[f"{title} {number}" for number, (title, _) in enumerate(QUERIES)]
)
async def test_a_query_of_the_dashboard_is_answered(shown: Shown, title: str, query: Query) -> None:
    found = await shown.prometheus.query(fill_in(query))
    assert found or query.answers == "perhaps", title


async def test_the_dashboard_shows_the_gain_of_the_moves(shown: Shown) -> None:
    by_title = dict(QUERIES)
    said = {}
    for title in ("Moves with a gain", "Landed as forecast", "Pods moved", "Requests above the thresholds"):
        (series,) = await shown.prometheus.query(fill_in(by_title[title], cluster="east"))
        said[title] = float(series["value"][1])
    assert said["Moves with a gain"] > 0.9
    assert said["Landed as forecast"] > 0.9
    assert said["Pods moved"] > 0
    assert said["Requests above the thresholds"] == 0


async def test_the_variable_chooses_a_cluster_and_all_are_added_up(shown: Shown) -> None:
    query = dict(QUERIES)["Pods moved"]
    found = {}
    for cluster in (*CLUSTERS, ".*", "east|west", "north"):
        found[cluster] = await shown.prometheus.query(fill_in(query, cluster=cluster))
    values = {cluster: float(series[0]["value"][1]) for cluster, series in found.items() if series}
    assert values["east"] > 0
    # The same counters scraped twice, and asked for at different times.
    assert values["west"] == pytest.approx(values["east"], rel=0.25)
    assert values[".*"] == pytest.approx(values["east"] + values["west"], rel=0.25)
    assert values["east|west"] == pytest.approx(values[".*"], rel=0.25)
    assert "north" not in values
    offered = await shown.prometheus.query(f"group by (cluster, namespace) ({RESCHEDULER_DASHBOARD.metric})")
    assert sorted(series["metric"]["cluster"] for series in offered) == sorted(CLUSTERS)


async def test_every_alert_is_evaluated_and_none_is_raised_for_a_product_that_is_well(shown: Shown) -> None:
    rules = await shown.prometheus.rules()
    assert [rule["name"] for rule in rules] == [alert.name for alert in ALERTS]
    assert [rule for rule in rules if rule["health"] != "ok"] == []
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


async def test_the_account_sees_the_pause_on_its_lease_and_its_end(shown: Shown) -> None:
    async with shown.cluster.client() as client:
        for value, metric in (("true", 1), (None, 0)):
            await client.patch(LEASE, {"metadata": {"annotations": {"reberth.dev/paused": value}}})
            await shown.prometheus.until(f"reberth_rescheduler_paused == {metric}")
