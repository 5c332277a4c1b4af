"""The detector against a fake hub that records its writes."""

from typing import Any

import msgspec
import pytest

from federation.controllers.propagation.detector import DetectorController
from federation.hub.workqueue import QueueSettings
from federation.objects import resources
from federation.objects.template import Object
from federation.propagation.binding import write_binding
from tests.support.federation.fake_hub import FakeHub
from tests.support.federation.objects import WEB, meta, policy, template

pytestmark = pytest.mark.looptime
DEPLOYMENTS = resources.TEMPLATES[0]


class WritingHub(FakeHub):
    """Only writes down what it is asked for."""

    def __init__(self) -> None:
        super().__init__(DEPLOYMENTS, resources.POLICIES, resources.BINDINGS)
        self.asked: list[tuple[str, str]] = []
        self.controllers = [DetectorController(self.hub, QueueSettings())]

    async def create_object(self, resource: Any, body: Object, *, namespace: str = "") -> Object:
        self.asked.append(("create", f"{resource.name} {namespace}/{body['metadata']['name']}"))
        return body

    async def merge(self, resource: Any, name: str, patch: Object, **_: Any) -> Object:
        self.asked.append(("patch", f"{resource.name} {name}"))
        return patch

    async def remove_object(self, resource: Any, name: str, *, uid: str, namespace: str = "") -> None:
        self.asked.append(("delete", f"{resource.name} {namespace}/{name} {uid}"))

    async def reconcile(self) -> list[tuple[str, str]]:
        await self.run()
        return self.asked


def bound() -> Any:
    wire = write_binding(WEB, template(), policy("a"))
    whole = wire | {"metadata": meta("web-deployment") | wire["metadata"]}
    return msgspec.convert(whole, resources.BINDINGS.record)


async def test_a_selected_template_is_claimed_and_gets_a_binding() -> None:
    hub = WritingHub()
    hub.hold(DEPLOYMENTS, template())
    hub.hold(resources.POLICIES, policy("a"))
    assert await hub.reconcile() == [
        ("create", "resourcebindings default/web-deployment"),
        ("patch", "deployments web"),
    ]


async def test_a_template_that_no_policy_selects_is_left_alone() -> None:
    hub = WritingHub()
    hub.hold(DEPLOYMENTS, template())
    hub.hold(resources.POLICIES, policy("a", {"name": "other"}))
    assert await hub.reconcile() == []


async def test_a_binding_goes_with_its_template() -> None:
    hub = WritingHub()
    hub.hold(DEPLOYMENTS)
    hub.hold(resources.BINDINGS, bound())
    assert await hub.reconcile() == [("delete", "resourcebindings default/web-deployment uid-web-deployment")]


async def test_a_template_of_an_unlisted_kind_is_not_treated_as_deleted() -> None:
    hub = WritingHub()
    hub.hold(resources.BINDINGS, bound())
    assert await hub.reconcile() == []


async def test_a_recreated_template_gets_a_new_binding() -> None:
    hub = WritingHub()
    hub.hold(DEPLOYMENTS, template(uid="another"))
    hub.hold(resources.POLICIES, policy("a"))
    hub.hold(resources.BINDINGS, bound())
    assert await hub.reconcile() == [("delete", "resourcebindings default/web-deployment uid-web-deployment")]


async def test_a_policy_with_an_unreadable_selector_is_told_and_the_others_propagate() -> None:
    hub = WritingHub()
    odd = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "in", "values": ["a"]}]}}
    hub.hold(DEPLOYMENTS, template())
    hub.hold(resources.POLICIES, policy("odd", odd, priority=9), policy("a"))
    assert ("create", "resourcebindings default/web-deployment") in await hub.reconcile()
    assert hub.events[0][0] == "SelectorUnreadable"
    assert hub.events[1:] == [("ApplyPolicySucceed", "Claimed by PropagationPolicy default/a.")]


async def test_what_is_gone_or_claimed_by_another_is_not_remembered() -> None:
    hub = WritingHub()
    hub.hold(DEPLOYMENTS)
    label = "propagationpolicy.karmada.io/permanent-id"
    for number in range(50):
        hub.put(DEPLOYMENTS, template(f"job{number}", labels={label: "a"}))
    (detector,) = hub.controllers
    assert isinstance(detector, DetectorController)
    assert {holder: len(keys) for holder, keys in detector._claimed.items()} == {"a": 50}
    hub.put(DEPLOYMENTS, template("job0", labels={label: "b"}))
    assert {holder: len(keys) for holder, keys in detector._claimed.items()} == {"a": 49, "b": 1}
    hub.hold(DEPLOYMENTS)
    assert not detector._claimed
    assert not detector._claimed_by
