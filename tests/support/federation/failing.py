"""A hub without an API server whose workloads fail over, with the controllers that take part in it."""

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding
from federation.controllers.failover.application_failover import (
    ApplicationFailoverController,
    ApplicationFailoverSettings,
)
from federation.controllers.failover.graceful import GracefulController, GracefulSettings
from federation.controllers.propagation.scheduler import SchedulerController, SchedulerSettings
from federation.failover.eviction_causes import EvictionCauses
from federation.failover.health_clock import CopyHealth, tell_health
from federation.hub.work_index import WorkIndex
from federation.objects import resources
from federation.objects.conditions import find_condition, put_condition
from federation.objects.names import Key
from federation.objects.resources import HeldWork
from federation.propagation.works import write_work
from reberth.cluster.kinds import Resource
from reberth.records import Condition
from tests.support.federation.clusters import DYNAMIC, cluster
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import claimed_binding, given, template, work

MEMBERS = ("m1", "m2", "m3")
SPREAD_TO_ONE = {
    **DYNAMIC,
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}


def member(name: str, room: int = 99, *, ready: bool = True) -> Cluster:
    conditions = [{"type": "Ready", "status": str(ready)}]
    one = cluster(name, room, status={"conditions": conditions})
    return replace(one, metadata=replace(one.metadata, uid=name))


def failing_over(
    at: dict[str, int], *, name: str = "web", placement: Any = SPREAD_TO_ONE, replicas: int = 3, **said: Any
) -> ResourceBinding:
    """A binding with application failover: a toleration of 10 s, unless it is said otherwise."""
    seconds = said.pop("tolerationSeconds", 10)
    application = {"decisionConditions": {"tolerationSeconds": seconds, **said.pop("decision", {})}, **said}
    resource = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "default",
        "name": name,
        "uid": name,
    }
    return claimed_binding(
        name=f"{name}-deployment",
        clusters=given(**at),
        placement=placement,
        replicas=replicas,
        resource=resource,
        failover={"application": application},
    )


class FailingHub(FakeHub):
    """Its copies are Works; `report` says how one does, as its member would."""

    def __init__(self, *members: Cluster, settings: ApplicationFailoverSettings | None = None) -> None:
        super().__init__(resources.BINDINGS, resources.CLUSTERS, resources.WORKS)
        self._index = WorkIndex(self.hub)
        self.settings = settings or ApplicationFailoverSettings()
        for each in members or map(member, MEMBERS):
            self.put(resources.CLUSTERS, each)
        self._running: list[asyncio.Task[None]] = []
        self.start()

    def start(self) -> None:
        """Start the controllers anew, as another leader does: they have no memory, and get every object."""
        for task in self._running:
            task.cancel()
        self._running = []
        scheduler = SchedulerController(self.hub, SchedulerSettings())
        failover = ApplicationFailoverController(self.hub, self._index, scheduler.placing, self.settings)
        graceful = GracefulController(
            self.hub, self._index, EvictionCauses(self.hub.clock), GracefulSettings()
        )
        self.controllers = [scheduler, graceful, failover]
        known: tuple[Resource[Any], ...] = (resources.BINDINGS, resources.CLUSTERS, resources.WORKS)
        for resource in known:
            for record in self.cache.of(resource.kind).rows():
                self._notify(resource.kind, record)

    async def live(self, seconds: float) -> None:
        """Let time go by; the controllers go on until others are started."""
        if not self._running:
            self._running = [asyncio.create_task(each.run()) for each in self.controllers]
        await asyncio.sleep(seconds)

    def find(self, name: str = "web") -> ResourceBinding:
        found = self.cache.of(resources.BINDINGS.kind).named("default", f"{name}-deployment")
        assert isinstance(found, ResourceBinding)
        return found

    def clusters(self, name: str = "web") -> dict[str, int]:
        return {each.name: each.replicas for each in self.find(name).spec.clusters or ()}

    def leaving(self, name: str = "web") -> list[str]:
        return [each.from_cluster for each in self.find(name).spec.graceful_eviction_tasks or ()]

    def condition(self, name: str = "web") -> Condition:
        found = find_condition(self.find(name).status.conditions, "Failover")
        assert found is not None
        return found

    def report(self, cluster: str, available: int, *, name: str = "web", of: int = 3) -> None:
        """Say how many replicas of a copy are available."""
        self.tell(cluster, CopyHealth("Healthy" if available >= of else "Unhealthy"), available, name=name)

    def tell(self, cluster: str, copy: CopyHealth, available: int = 0, *, name: str = "web") -> None:
        now = self.hub.clock()
        has = self._conditions(cluster, name)
        for wanted in (Condition("Applied", "True"), *tell_health(has, copy, now=now)):
            changed: Any = put_condition(has, wanted, now=now)
            has = msgspec.convert(changed, tuple[Condition, ...]) if changed else has
        told = {
            "identifier": {"ordinal": 0, "version": "v1", "kind": "Deployment", "name": name},
            "status": {"availableReplicas": available},
            "health": copy.health,
        }
        conditions = msgspec.to_builtins(has)
        made = work(self._wire(cluster, name), manifestStatuses=[told], conditions=conditions)
        self.put(resources.WORKS, replace(made, metadata=replace(made.metadata, uid=f"{cluster}-{name}")))

    def lose_copy(self, cluster: str, *, name: str = "web") -> None:
        if (found := self._find_work(cluster, name)) is not None:
            self.drop(resources.WORKS, found)

    def _conditions(self, cluster: str, name: str) -> tuple[Condition, ...]:
        found = self._find_work(cluster, name)
        return (found.status.conditions or ()) if found else ()

    def _find_work(self, cluster: str, name: str) -> HeldWork | None:
        meta = self._wire(cluster, name)["metadata"]
        found: HeldWork | None = self.cache.of(resources.WORKS.kind).named(meta["namespace"], meta["name"])
        return found

    def _wire(self, cluster: str, name: str) -> Any:
        key = Key("apps/v1", "Deployment", "default", name)
        binding = claimed_binding(name=f"{name}-deployment")
        return write_work(key, binding, template(name), cluster, 3)

    def _notify(self, kind: Any, record: Any) -> None:
        self._index.on_change(self._known[kind], record)
        super()._notify(kind, record)
