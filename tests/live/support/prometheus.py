"""A real Prometheus (Debian's package) beside a cluster, which scrapes our processes.

async with scraping(cluster, {"extender": [8443]}, rules=ALERTS) as prometheus:
    found = await prometheus.query("up")
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from generating.panels import Query
from localcluster.build import debian
from localcluster.cluster import Cluster
from localcluster.host import processes
from localproduct.extender_replicas import wait_until_ready
from localproduct.processes import HOST

PACKAGE = "prometheus"
_LAST_SPARE_PORT = 9


class Prometheus:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def query(self, expression: str) -> list[Any]:
        """The series that an expression gives now. An error of it fails the test."""
        found = await self._ask("query", query=expression)
        assert found["status"] == "success", (expression, found)
        result: list[Any] = found["data"]["result"]
        return result

    async def until(self, expression: str) -> list[Any]:
        """Wait until an expression gives something."""
        async with asyncio.timeout(60):
            while not (found := await self.query(expression)):
                await asyncio.sleep(0.2)
        return found

    async def rules(self) -> list[Any]:
        """Every rule after it was evaluated at least once."""
        async with asyncio.timeout(60):
            while True:
                groups = (await self._ask("rules"))["data"]["groups"]
                rules = [rule for group in groups for rule in group["rules"]]
                if rules and all(rule["health"] != "unknown" for rule in rules):
                    return rules
                await asyncio.sleep(0.2)

    async def _ask(self, path: str, **parameters: str) -> Any:
        async with self._session.get(f"{self._url}/api/v1/{path}", params=parameters) as answer:
            return await answer.json()


def fill_in(query: Query, *, cluster: str = ".*") -> str:
    """Put in what Grafana puts in; by default all is chosen."""
    filled = {"$__rate_interval": "1m", "$__range": "1h", "$cluster": cluster, "$namespace": ".*"}
    expression = query.expression
    for variable, value in filled.items():
        expression = expression.replace(variable, value)
    return expression


def promtool() -> Path:
    return debian.program(PACKAGE, "promtool")


@asynccontextmanager
async def scraping(
    cluster: Cluster, jobs: Mapping[str, Sequence[int]], *, rules: Path, clusters: Sequence[str] = ("",)
) -> AsyncIterator[Prometheus]:
    """Scrape these loopback ports every second for as long as the context lasts.

    With several clusters all ports are scraped once for each, and the series have its name as a label.
    """
    program = await asyncio.to_thread(debian.program, PACKAGE, "prometheus")
    file = cluster.folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(_configure(jobs, rules, clusters)))
    address = f"{HOST}:{cluster.spare_port(_LAST_SPARE_PORT)}"
    storage = f"--storage.tsdb.path={cluster.folder / 'prometheus'}"
    command = [str(program), f"--config.file={file}", storage, f"--web.listen-address={address}"]
    running = processes.start(command, folder=cluster.folder, name="prometheus", dies_with_parent=True)
    try:
        await wait_until_ready(f"http://{address}/-/ready")
        async with aiohttp.ClientSession() as session:
            yield Prometheus(f"http://{address}", session)
    finally:
        await processes.stop(running)


def _configure(jobs: Mapping[str, Sequence[int]], rules: Path, clusters: Sequence[str]) -> Any:
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {"job_name": job, "static_configs": [_target(ports, cluster) for cluster in clusters]}
            for job, ports in jobs.items()
        ],
    }


def _target(ports: Sequence[int], cluster: str) -> Any:
    labels = {"cluster": cluster, "namespace": "reberth-system"} if cluster else {}
    return {"targets": [f"{HOST}:{port}" for port in ports], "labels": labels}
