"""The controller of interpreters: live, and telling how the scripts do."""

from typing import Any

import msgspec
import pytest

from federation.controllers.propagation.interpreters import InterpretersController
from federation.hub.telemetry.interpreter_metrics import FAILING
from federation.hub.work_index import WorkIndex
from federation.hub.workqueue import QueueSettings
from federation.interpreters.operations import Operation
from federation.objects import resources
from federation.propagation.works import write_work
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import WEB, claimed_binding, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS = resources.TEMPLATES[0]
KIND = ("apps/v1", "Deployment")


def customization(script: str, name: str = "a") -> Any:
    target = dict(zip(("apiVersion", "kind"), KIND, strict=True))
    rules = {"healthInterpretation": {"luaScript": script}}
    metadata = {"name": name, "generation": 1, "uid": "u", "resourceVersion": "1"}
    wire = {"metadata": metadata, "spec": {"target": target, "customizations": rules}}
    return msgspec.convert(wire, resources.INTERPRETERS.record)


class InterpretedHub(FakeHub):
    def __init__(self) -> None:
        known = (DEPLOYMENTS, resources.BINDINGS, resources.WORKS, resources.INTERPRETERS)
        super().__init__(*known)
        self.told: list[tuple[Any, str]] = []
        index = WorkIndex(self.hub)
        tell = lambda resource, record: self.told.append((resource, record.metadata.name))  # noqa: E731
        controller = InterpretersController(self.hub, index, QueueSettings(), tell)
        self.controllers = [index, controller]  # type: ignore[list-item]

    async def run(self, seconds: float = 1) -> None:
        self.controllers, kept = self.controllers[1:], self.controllers
        await super().run(seconds)
        self.controllers = kept

    def status(self) -> dict[str, Any]:
        name, subresource, patch = self.patches[-1]
        assert (name, subresource) == ("a", "status")
        condition = patch["status"]["conditions"][0]
        return {each: condition[each] for each in ("type", "status", "reason", "message")}


GOOD = "function InterpretHealth(o) return true end"


async def test_a_changed_customization_counts_at_once_for_what_is_there() -> None:
    hub = InterpretedHub()
    hub.put(DEPLOYMENTS, template())
    hub.put(resources.BINDINGS, claimed_binding())
    wire = write_work(WEB, claimed_binding(), template(), "m1", 1)
    hub.put(resources.WORKS, msgspec.json.decode(msgspec.json.encode(wire), type=resources.WORKS.record))
    hub.put(resources.INTERPRETERS, customization(GOOD))
    assert hub.hub.rules.health[KIND]({}) == "Healthy"
    assert hub.told == [(resources.WORKS, wire["metadata"]["name"]), (DEPLOYMENTS, "web")]
    hub.put(resources.INTERPRETERS, customization(GOOD))
    assert len(hub.told) == 2
    hub.drop(resources.INTERPRETERS, customization(GOOD))
    assert not hub.hub.rules.has(KIND, Operation.HEALTH)
    assert len(hub.told) == 4


async def test_the_condition_says_whether_the_scripts_work() -> None:
    hub = InterpretedHub()
    hub.put(resources.INTERPRETERS, customization("function InterpretHealth(o) return o.a.b end"))
    await hub.run(3)
    assert (hub.status()["status"], hub.patches[-1][2]["status"]["observedGeneration"]) == ("True", 1)
    assert hub.hub.rules.health[KIND]({}) == "Unknown"
    await hub.run(3)
    failing = hub.status()
    assert failing["status"] == "False"
    assert FAILING._value.get() == 1
    assert "InterpretHealth: InterpretHealth:1: attempt to index field 'a'" in failing["message"]
    assert len(hub.patches) == 2
    hub.put(resources.INTERPRETERS, customization(GOOD))
    await hub.run(3)
    assert hub.status()["status"] == "True"


async def test_a_script_that_cannot_be_compiled_is_told() -> None:
    hub = InterpretedHub()
    hub.put(resources.INTERPRETERS, customization("function InterpretHealth("))
    await hub.run(3)
    assert hub.status()["reason"] == "ScriptsFail"
    assert "near '<eof>'" in hub.status()["message"]
