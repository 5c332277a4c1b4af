"""The oracle: a real kube-scheduler that places the pods of a case and explains its choice."""

import asyncio
import contextlib
import copy
import time
from collections.abc import AsyncIterator

import yaml

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import API_SERVER, CONTROLLERS, KWOK
from localcluster.state_dir import running
from reberth.cluster.pods.requests import read_version
from tests.live.forecast.support.configurations import Configuration, reached_at, schedulers_of
from tests.live.forecast.support.messages import Histogram, read_message
from tests.live.forecast.support.recording_extender import TO_REFUSE, Recorder
from tests.live.forecast.support.scheduler_log import LogReader, Scored
from tests.live.forecast.support.stage import NOW, Stage, path_of
from tests.live.forecast.support.truth import Recorded, Truth
from tests.support.forecast.cases.cases import Case, base_objects, make_case
from tests.support.forecast.cases.dice import Object

_SETTLING = 0.1
"""Seconds more, since what is no pod and no node comes to the scheduler in streams of its own."""
_LONGEST = 20.0
_REFUSED = {"Unschedulable", "SchedulerError"}


class Oracle:
    """Asks one case after another."""

    def __init__(
        self, cluster: Cluster, client: Client, recorder: Recorder, *, settings: str | None = None
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._recorder = recorder
        self._settings = settings
        self._stage = Stage(client, for_extender=settings is not None)
        self._log = LogReader(cluster.log("kube-scheduler"))
        self._kubernetes = ".".join(cluster.design.kubernetes.split(".")[:2])
        self._configuration: Configuration | None = None

    async def prepare(self) -> None:
        await self._stage.lay_out(base_objects())
        await self.configure(None)

    async def configure(self, configuration: Configuration | None) -> None:
        """Restart the scheduler with a configuration, and with the recorder as its last extender."""
        reached = reached_at(configuration or {}, f"{self._recorder.url}/lots")
        self._configuration = reached if configuration else None
        extenders = [*reached.get("extenders", ()), self._recorder.entry()]
        await self._cluster.schedule_with({**reached, "extenders": extenders}, "-v=10")

    def case(self, seed: int) -> Case:
        """Draw a case for this scheduler."""
        version = read_version(self._kubernetes)
        return make_case(seed, schedulers=schedulers_of(self._configuration), version=version)

    async def ask(self, case: Case) -> list[Recorded]:
        """Let the scheduler place the probes of a case one after another, then clear the cluster."""
        self._log.forget()
        self._recorder.forget()
        try:
            await self._stage.enter(case)
            await self._wait_until_seen(case)
            return [await self._release(probe) for probe in case.probes]
        finally:
            await self._stage.clear()

    async def _wait_until_seen(self, case: Case) -> None:
        awaited = {key(case.last), *(key(one) for one in case.objects if one["kind"] == "Node")}
        started = time.monotonic()
        while not awaited <= self._log.arrived:
            if time.monotonic() - started > _LONGEST:
                raise TimeoutError(f"not seen: {sorted(awaited - self._log.arrived)}")
            await asyncio.sleep(0.02)
            self._log.read_on()
        await asyncio.sleep(_SETTLING)

    async def _release(self, probe: Object) -> Recorded:
        seen = await self._stage.capture()
        refusal = await self._refuse(probe)
        started = time.time()
        released = await self._client.patch(path_of(probe), {"spec": {"schedulingGates": None}})
        objects = _with_pod(seen, released)
        given = probe.get("status", {}).get("nominatedNodeName")
        decided = await self._decide(probe, given=given)
        between = (started, time.time())
        truth = await self._truth(decided, refusal, given=given)
        if not decided["spec"].get("nodeName"):  # it would be tried again
            await self._client.delete(path_of(probe), NOW)
        text = yaml.safe_dump(self._configuration) if self._configuration else None
        return Recorded(objects, key(probe), self._kubernetes, text, truth, self._settings, between)

    async def _refuse(self, probe: Object) -> str | None:
        """Let a twin of the probe be refused everywhere; give what the scheduler says of it.

        No twin can have the claim that is the pod's own, or the place that is kept for it.
        """
        if "nominatedNodeName" in probe.get("status", {}):
            return None
        if any("ephemeral" in volume for volume in probe["spec"].get("volumes", ())):
            return None
        twin = await self._stage.create_twin(probe, f"{probe['metadata']['name']}{TO_REFUSE}")
        refused = await self._decide(twin)
        await self._client.delete(path_of(twin), NOW)
        return _message(refused)

    async def _decide(self, pod: Object, *, given: str | None = None) -> Object:
        """Wait until a pod has a node or is refused; it may have been nominated for one before."""

        def is_decided(found: Object) -> bool:
            return _place(found, given) is not None or _is_refused(found)

        decided: Object = await self._client.wait(path_of(pod), is_decided, seconds=_LONGEST, every=0.015)
        return decided

    async def _truth(self, decided: Object, refusal: str | None, *, given: str | None) -> Truth:
        self._log.read_on()
        pod = key(decided)
        scored = self._log.scored.get(pod, Scored())
        bound = _place(decided, given)
        message = None if bound else _message(decided)
        said = refusal or message
        histogram = read_message(said) if said else Histogram(None, None)
        return Truth(
            feasible=sorted(self._recorder.left(pod)),
            plugins=scored.plugins,
            extenders=scored.extenders,
            total=scored.total,
            bound=bound,
            message=message,
            refusals=histogram.counts,
            rejected=histogram.rejected,
        )


@contextlib.asynccontextmanager
async def asking(name: str = "oracle", *, kubernetes: str | None = None) -> AsyncIterator[Oracle]:
    """A cluster for as long; its scheduler also asks a recorder, which changes nothing but ties."""
    flags = {API_SERVER: ["--disable-admission-plugins=StorageObjectInUseProtection"]}
    async with (
        running(name, kubernetes=kubernetes, without=[CONTROLLERS, KWOK], flags=flags) as cluster,
        Recorder(cluster.spare_port()) as recorder,
        cluster.client() as client,
    ):
        oracle = Oracle(cluster, client, recorder)
        await oracle.prepare()
        yield oracle


def key(made: Object) -> str:
    meta = made["metadata"]
    return "/".join(part for part in (meta.get("namespace"), meta["name"]) if part)


def _message(pod: Object) -> str:
    conditions = {one["type"]: one for one in pod["status"]["conditions"]}
    message: str = conditions["PodScheduled"]["message"]
    return message


def _place(pod: Object, given: str | None) -> str | None:
    """Where a pod is bound, or will be as soon as its volumes are: it is nominated until then."""
    nominated: str | None = pod["status"].get("nominatedNodeName")
    return pod["spec"].get("nodeName") or (nominated if nominated != given else None)


def _is_refused(pod: Object) -> bool:
    conditions: list[Object] = pod["status"].get("conditions", [])
    return any(one["type"] == "PodScheduled" and one["reason"] in _REFUSED for one in conditions)


def _with_pod(seen: Object, pod: Object) -> Object:
    """What was seen, with this pod as it was when its turn came."""
    made = copy.copy(seen)
    meta = {name: value for name, value in pod["metadata"].items() if name != "managedFields"}
    current = {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": meta}
    made["items"] = [current if _same(one, current) else one for one in seen["items"]]
    return made


def _same(one: Object, other: Object) -> bool:
    return bool(one["metadata"]["uid"] == other["metadata"]["uid"])
