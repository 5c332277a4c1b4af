"""An oracle whose scheduler calls the real extender, with much stored about its pods and nodes.

Before a pod is released, the extender has seen all objects. Each kind arrives in its own watch, in order: so
it is enough to wait for the last object of each kind.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec
import yaml

from localcluster.client import Client, Object, all_of
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER, CONTROLLERS, KWOK
from localcluster.state_dir import running
from reberth.cluster.pods.identity import Signature
from reberth.memory.notes import ANNOTATION
from reberth.values.refusal import Refused
from tests.live.forecast.support.configurations import Configuration
from tests.live.forecast.support.memories import Memories, make_memories, score, sign_all
from tests.live.forecast.support.oracle import Oracle, key
from tests.live.forecast.support.recording_extender import Recorder
from tests.live.forecast.support.stage import path_of
from tests.live.forecast.support.truth import Recorded
from tests.live.forecast.support.widened import widen
from tests.live.support.extender_process import MANIFESTS, Extending, extending
from tests.support.forecast.cases.cases import Case

SETTINGS: Object = {
    "scores": {
        "scores": [
            {"source": "load", "name": "cpu", "weight": 3, "least": -10, "most": 10},
            {"source": "load", "name": "memory", "weight": 1},
            {"source": "power", "name": "green", "weight": -2, "least": -5, "most": 5},
        ]
    },
    "deadline": "5s",  # what is proven is what it says, not how soon
}
_LONGEST = 20.0


class RecallingOracle(Oracle):
    """Asks one case after another; the extender must never have been in doubt."""

    def __init__(self, cluster: Cluster, client: Client, recorder: Recorder, extender: Extending) -> None:
        header = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ExtenderSettings"}
        super().__init__(cluster, client, recorder, settings=yaml.safe_dump({**header, **SETTINGS}))
        self._extender = extender
        self._turning: float | None = None
        self._last: Object = {}
        self._marks = 0

    async def ask_extender(self, *, weight_of_scores: int) -> None:
        """Restart the scheduler, to ask the extender as its manifests say."""
        await self.configure(make_configuration(self._extender.url, weight_of_scores=weight_of_scores))

    async def find_doubts(self) -> float:
        """Count what the extender said without knowing, or did not say."""
        said = self._extender.said
        asked = await said("reberth_extender_requests_total")
        answered = await said("reberth_extender_requests_total", result="answered")
        return asked - answered

    def case(self, seed: int) -> Case:
        return widen(super().case(seed))

    async def _wait_until_seen(self, case: Case) -> None:
        await super()._wait_until_seen(case)
        self._last = case.last
        there = (await self._stage.capture())["items"]
        memories = make_memories(case.seed, there, time.time())
        self._turning = memories.turning
        marker = f"{case.last['metadata']['name']}-marker"
        await self._write(there, memories, score(marker, marker, "load", {"cpu": 77}))
        await self._wait_for_extender(case, marker)

    async def _write(self, there: Sequence[Object], memories: Memories, last: Object) -> None:
        """Write all nodes, in the order in which they were made: by their versions the oldest is found."""
        nodes = sorted((one for one in there if one["kind"] == "Node"), key=_version_of)
        for node in nodes:
            text = memories.annotations.get(node["metadata"]["name"], "")
            await self._client.patch(path_of(node), {"metadata": {"annotations": {ANNOTATION: text}}})
        await self._stage.lay_out([*memories.histories, *memories.scores])
        await self._stage.lay_out([last])

    async def _wait_for_extender(self, case: Case, marker: str) -> None:
        there = (await self._stage.capture())["items"]
        plurals = {"Node": "nodes", "EvictionHistory": "evictionhistories"}
        await all_of(
            self._extender.sees(plurals[one["kind"]], one) for one in there if one["kind"] in plurals
        )
        known = sign_all(there)
        await explained(self._extender, key(case.last))
        for pod in map(key, case.probes):
            await explained(self._extender, pod, partial(_is_known, known[pod]), node=marker)

    async def _release(self, probe: Object) -> Recorded:
        if self._turning is not None and probe["metadata"]["name"].endswith("-1"):
            await asyncio.sleep(max(0.0, self._turning - time.time()) + 0.01)
        return await super()._release(probe)

    async def _refuse(self, probe: Object) -> str | None:
        """The extender must have seen the end of the twin; and the place of the probe before."""
        said = await super()._refuse(probe)
        self._marks += 1
        meta = self._last["metadata"]
        mark = {**self._last, "metadata": {**meta, "name": f"{meta['name']}-{self._marks}"}}
        await self._stage.lay_out([mark])
        await explained(self._extender, key(mark))
        return said


@contextlib.asynccontextmanager
async def recalling(
    name: str = "recalling", *, kubernetes: str | None = None
) -> AsyncIterator[RecallingOracle]:
    """A cluster for as long, with the extender beside it."""
    flags = {API_SERVER: ["--disable-admission-plugins=StorageObjectInUseProtection"]}
    async with (
        running(name, kubernetes=kubernetes, without=[CONTROLLERS, KWOK], flags=flags) as cluster,
        extending(cluster, settings=SETTINGS) as extender,
        Recorder(cluster.spare_port(1)) as recorder,
        cluster.client() as client,
    ):
        oracle = RecallingOracle(cluster, client, recorder, extender)
        await oracle.prepare()
        yield oracle


async def explained(
    extender: Extending, pod: str, until: Callable[[Any], bool] = bool, *, node: str = "nobody-knows"
) -> None:
    """Wait until an extender knows a pod, and what it must know of it."""
    path = f"/explain?{urlencode({'pod': pod, 'node': node})}"
    async with asyncio.timeout(_LONGEST):
        while True:
            status, text = await extender.ask(path)
            if status == 200 and until(json.loads(text)):
                return
            await asyncio.sleep(0.01)


def make_configuration(url: str, *, weight_of_scores: int) -> Configuration:
    """Give the manifests' configuration for trying it out; only addresses and one weight are put in."""
    content: Configuration = yaml.safe_load((MANIFESTS / "kube-scheduler" / "plain.yaml").read_text())
    for extender in content["extenders"]:
        part = extender["urlPrefix"].rpartition("/")[2]
        extender["urlPrefix"] = f"{url}/{part}"
        extender["httpTimeout"] = "10s"
        if part == "scores":
            extender["weight"] = weight_of_scores
    return content


def _is_known(who: Signature | Refused, told: Mapping[str, Any]) -> bool:
    """Tell whether the extender knows whose the pod is, and the last score."""
    known = None if isinstance(who, Refused) else msgspec.to_builtins(who)
    return told["known"] == known and any(reason.endswith(": 77") for reason in told["nodes"][0]["reasons"])


def _version_of(one: Object) -> int:
    return int(one["metadata"]["resourceVersion"])
