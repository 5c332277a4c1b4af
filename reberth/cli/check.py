"""Can everything be read that Reberth needs? An operator asks before the daemons do."""

import asyncio
from typing import NamedTuple

from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import read_version
from reberth.values.errors import ApiError


class KindCheck(NamedTuple):
    """One kind: how many objects could be read, or why not."""

    resource: str
    objects: int
    trouble: str | None


class CheckReport(NamedTuple):
    """What a look at a cluster found; `trouble` is why there was nothing to look at."""

    server: str
    version: str
    findings: list[KindCheck]
    trouble: str | None = None

    @property
    def is_well(self) -> bool:
        return self.trouble is None and not any(finding.trouble for finding in self.findings)


async def check(access: Access, *, seconds: float) -> CheckReport:
    """Mirror every kind once, for so long at most. Raises ConfigurationError without a way to the server."""
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
    """Until every kind is there or has said why not; what says nothing has its time."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(watcher.answered() for watcher in mirror.watchers.values()))
    except TimeoutError:
        return
