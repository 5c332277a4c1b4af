"""Checks that every kind that Reberth needs can be read, before the daemons are installed."""

import asyncio
from typing import NamedTuple

import msgspec

from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import read_version
from reberth.values.errors import ApiError
from reberth.values.table import align


class KindCheck(NamedTuple):
    """One kind: how many objects were read, or why they cannot be read."""

    resource: str
    objects: int
    trouble: str | None


class CheckReport(NamedTuple):
    """The result for one cluster; `trouble` is the reason why nothing could be checked."""

    server: str
    version: str
    findings: list[KindCheck]
    trouble: str | None = None

    @property
    def is_well(self) -> bool:
        return self.trouble is None and not any(finding.trouble for finding in self.findings)


async def check(access: Access, *, seconds: float) -> CheckReport:
    """List every kind once, within this time. Raises ConfigurationError if the cluster access is invalid."""
    async with Api(access) as api:
        try:
            async with asyncio.timeout(seconds):
                version = await api.version()
        except ApiError as error:
            return CheckReport(api.server, "", [], str(error))
        except TimeoutError:
            return CheckReport(api.server, "", [], f"no answer within {seconds:g} s")
        cache = Cache(version=read_version(version))
        async with mirroring(api, cache, ALL_RESOURCES) as mirror:
            await _wait(mirror, seconds)
            findings = [
                KindCheck(name, len(cache.of(watcher.resource.kind)), watcher.trouble)
                for name, watcher in sorted(mirror.watchers.items())
            ]
        return CheckReport(api.server, version, findings)


async def _wait(mirror: Mirror, seconds: float) -> None:
    """Wait until every kind is synced or has failed; otherwise the timeout ends the wait."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(watcher.answered() for watcher in mirror.watchers.values()))
    except TimeoutError:
        return


def tabulate_report(report: CheckReport) -> str:
    """Write the server and one line for each kind."""
    rows = [(one.resource, f"{one.objects:,}", one.trouble or "ok") for one in report.findings]
    table = align([("KIND", "OBJECTS", "RESULT"), *rows], right={1})
    return "\n".join((f"{report.server}, Kubernetes {report.version}", *table))


def write_report_json(report: CheckReport) -> str:
    content = {
        "server": report.server,
        "kubernetes": report.version,
        "trouble": report.trouble,
        "kinds": {one.resource: {"objects": one.objects, "trouble": one.trouble} for one in report.findings},
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
