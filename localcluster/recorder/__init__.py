"""Records what happens in a cluster: every change of its pods, nodes and Events, as it is watched.

async with recording(cluster) as recorder:
    ...
states = recorder.states_of("web-1")
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from localcluster.client import Client, Refused
from localcluster.cluster import Cluster

KINDS = ("pods", "nodes", "events")
_SECONDS_BETWEEN_TRIES = 0.2


@dataclass(frozen=True)
class Change:
    """One event of a watch; the seconds are this machine's, since the recording began."""

    seconds: float
    kind: str
    type: str
    object: dict[str, Any]


@dataclass
class Recorder:
    changes: list[Change] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def states_of(self, name: str, kind: str = "pods") -> list[Change]:
        """The changes of one object, in their order."""
        return [each for each in self.changes if (each.kind, each.object["metadata"]["name"]) == (kind, name)]

    async def follow(self, client: Client, kind: str, version: str) -> None:
        """Record the changes of one kind until cancelled; a watch that ends goes on where it was."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, Refused, TimeoutError):
                version = version or await self.list_all(client, kind)
                async for event in client.watch(f"/api/v1/{kind}", version):
                    if event["type"] == "ERROR":  # its history is too short: begin anew
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._add(kind, event["type"], event["object"])
            await asyncio.sleep(_SECONDS_BETWEEN_TRIES)

    async def list_all(self, client: Client, kind: str) -> str:
        """Record the objects of one kind as they are; return the version from which on they are followed."""
        found = await client.get(f"/api/v1/{kind}")
        for each in found["items"]:
            self._add(kind, "LISTED", each)
        version: str = found["metadata"]["resourceVersion"]
        return version

    def _add(self, kind: str, change: str, found: dict[str, Any]) -> None:
        found["metadata"].pop("managedFields", None)
        self.changes.append(Change(round(time.monotonic() - self._began, 3), kind, change, found))

    def write(self, path: Path) -> None:
        """Write the changes as JSON lines."""
        with path.open("w") as file:
            file.writelines(f"{json.dumps(asdict(each))}\n" for each in self.changes)


def read(path: Path) -> Recorder:
    """Read a recording that was written."""
    return Recorder([Change(**json.loads(line)) for line in path.read_text().splitlines()])


@contextlib.asynccontextmanager
async def recording(cluster: Cluster, kinds: Iterable[str] = KINDS) -> AsyncIterator[Recorder]:
    """Record for as long, each change from the first line of the block on; what was before as it is found."""
    recorder = Recorder()
    async with cluster.client() as client:
        # Before the block begins: an object whose kind is listed later has its first changes behind it.
        versions = {kind: await recorder.list_all(client, kind) for kind in kinds}
        following = [asyncio.create_task(recorder.follow(client, *begun)) for begun in versions.items()]
        try:
            yield recorder
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
