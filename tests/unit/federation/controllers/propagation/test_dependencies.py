"""The dependencies controller against a fake hub that records its writes."""

import asyncio
from typing import Any

import msgspec
import pytest

from federation.api import ResourceInterpreterCustomization
from federation.controllers.propagation.dependencies import DependenciesController
from federation.hub.workqueue import QueueSettings
from federation.objects import resources
from federation.objects.template import Object
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import as_template, claimed_binding, given, meta, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS, CONFIGURATIONS = (
    next(each for each in resources.TEMPLATES if each.kind.name == kind)
    for kind in ("Deployment", "ConfigMap")
)
SNAPSHOT = {"namespace": "default", "name": "web-deployment", "clusters": given(m1=3)}


class WritingHub(FakeHub):
    """Only writes down what it is asked for."""

    def __init__(self) -> None:
        super().__init__(DEPLOYMENTS, CONFIGURATIONS, resources.BINDINGS)
        self.asked: list[tuple[str, Any]] = []
        self.controllers = [DependenciesController(self.hub, QueueSettings())]

    async def create_object(self, _: Any, body: Object, *, namespace: str = "") -> Object:
        self.asked.append((f"create {namespace}/{body['metadata']['name']}", body["spec"]["requiredBy"]))
        return body

    async def merge(self, _: Any, name: str, patch: Object, **__: Any) -> Object:
        self.asked.append((f"patch {name}", patch["spec"]["requiredBy"]))
        return patch

    async def remove_object(self, _: Any, name: str, **__: Any) -> None:
        self.asked.append((f"delete {name}", None))

    async def reconcile(self) -> list[tuple[str, Any]]:
        await self.run(10)
        return self.asked


def needy() -> Any:
    pod = {"containers": [{"name": "main", "envFrom": [{"configMapRef": {"name": "settings"}}]}]}
    return as_template({"metadata": meta("web"), "spec": {"template": {"spec": pod}}})


def attached(*required_by: Any, labels: Any = None) -> Any:
    spec = {
        "resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "settings"},
        "requiredBy": list(required_by),
    }
    wire = {"metadata": meta("settings-configmap", labels=labels), "spec": spec}
    return msgspec.convert(wire, resources.BINDINGS.record)


def standing(*bindings: Any, deployments: Any = (), configurations: Any = ()) -> WritingHub:
    hub = WritingHub()
    hub.hold(resources.BINDINGS, *bindings)
    hub.hold(DEPLOYMENTS, *deployments)
    hub.hold(CONFIGURATIONS, *configurations)
    return hub


CARRYING = claimed_binding(propagateDeps=True, clusters=given(m1=3))


async def test_a_dependency_gets_a_binding_with_its_dependents() -> None:
    hub = standing(CARRYING, deployments=[needy()], configurations=[template("settings")])
    assert await hub.reconcile() == [("create default/settings-configmap", [SNAPSHOT])]
    need = "ConfigMap default/settings"
    assert set(hub.events) == {
        ("GetDependenciesSucceed", f"Depends on {need}."),
        ("SyncScheduleResultToDependenciesSucceed", f"{need} follows it to its clusters."),
    }


async def test_a_dependency_created_later_is_propagated_then() -> None:
    hub = standing(CARRYING, deployments=[needy()])
    assert await hub.reconcile() == []
    hub.hold(CONFIGURATIONS, template("settings"))
    assert await hub.reconcile() == [("create default/settings-configmap", [SNAPSHOT])]


@pytest.mark.parametrize("one", [claimed_binding(clusters=given(m1=3)), claimed_binding(propagateDeps=True)])
async def test_without_propagate_deps_or_a_cluster_nothing_is_propagated(one: Any) -> None:
    hub = standing(one, deployments=[needy()], configurations=[template("settings")])
    assert await hub.reconcile() == []


async def test_dependents_are_written_once() -> None:
    hub = standing(CARRYING, attached(SNAPSHOT), deployments=[needy()], configurations=[template("settings")])
    assert await hub.reconcile() == []
    assert not hub.events
    hub = standing(CARRYING, attached(), deployments=[needy()], configurations=[template("settings")])
    assert await hub.reconcile() == [("patch settings-configmap", [SNAPSHOT])]


async def test_an_unused_dependency_is_deleted_unless_a_policy_selects_it() -> None:
    hub = standing(attached(SNAPSHOT), configurations=[template("settings")])
    assert await hub.reconcile() == [("delete settings-configmap", None)]
    claim = {"propagationpolicy.karmada.io/permanent-id": "p"}
    hub = standing(attached(SNAPSHOT, labels=claim), configurations=[template("settings")])
    assert await hub.reconcile() == [("patch settings-configmap", None)]


async def test_nothing_is_deleted_before_the_caches_are_synced() -> None:
    hub = WritingHub()
    hub.hold(resources.BINDINGS, CARRYING, attached(SNAPSHOT))
    hub.hold(CONFIGURATIONS, template("settings"))
    running = asyncio.create_task(hub.run(10))
    await asyncio.sleep(5)
    assert hub.asked == []
    hub.hold(DEPLOYMENTS)
    await running
    assert hub.asked == [("delete settings-configmap", None)]


def dependencies_script(body: str) -> ResourceInterpreterCustomization:
    script = {"luaScript": f"function GetDependencies(o) {body} end"}
    wire = {
        "metadata": {"name": "deployments"},
        "spec": {
            "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "customizations": {"dependencyInterpretation": script},
        },
    }
    return msgspec.convert(wire, ResourceInterpreterCustomization)


SETTINGS = "return {{apiVersion = 'v1', kind = 'ConfigMap', namespace = 'default', name = 'settings'}}"


async def test_a_script_that_fails_keeps_what_followed_and_stops_nothing() -> None:
    hub = WritingHub()
    hub.hub.rules.load([dependencies_script(SETTINGS)])
    hub.hold(DEPLOYMENTS, needy())
    hub.hold(CONFIGURATIONS, template("settings"))
    hub.hold(resources.BINDINGS, CARRYING, attached(SNAPSHOT))
    hub.hub.rules.load([dependencies_script("error('no')")])
    (controller,) = hub.controllers
    looks, find_needs = 0, controller._find_needs

    def look(key: Any) -> Any:
        nonlocal looks
        looks += 1
        assert looks < 100, "it queues itself again and again"
        return find_needs(key)

    controller._find_needs = look  # type: ignore[method-assign]
    controller.on_change(DEPLOYMENTS, needy())
    assert await hub.reconcile() == []
    assert looks == 1


async def test_a_script_that_fails_from_the_start_keeps_what_followed() -> None:
    hub = standing()
    hub.hub.rules.load([dependencies_script("error('no')")])
    hub.hold(DEPLOYMENTS, needy())
    hub.hold(CONFIGURATIONS, template("settings"))
    hub.hold(resources.BINDINGS, CARRYING, attached(SNAPSHOT))
    assert await hub.reconcile() == []
