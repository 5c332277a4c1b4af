import asyncio
from dataclasses import replace
from typing import cast

import pytest

from federation.hub.kind_catalog import KindCatalog
from federation.objects import resources
from federation.objects.resources import can_be_propagated
from federation.objects.template import ResourceTemplate
from reberth.cluster.kinds import Resource, plain_kind

pytestmark = pytest.mark.looptime
BERTHS = cast(
    "Resource[ResourceTemplate]", Resource(plain_kind("Berth", ResourceTemplate, "example.com"), "berths")
)


async def test_a_kind_that_is_not_known_is_asked_for_until_it_is_learned() -> None:
    asked: list[tuple[str, str]] = []
    catalog = KindCatalog()
    assert catalog.find("example.com/v1", "Berth") is None
    catalog.when_asked(lambda *what: asked.append(what))
    assert catalog.find("example.com/v1", "Berth") is None
    assert catalog.find("apps/v1", "Deployment") is resources.TEMPLATES[0]
    catalog.learn(BERTHS, on_hub=True)
    catalog.learn(BERTHS, on_hub=True)
    assert catalog.find("example.com/v1", "Berth") is BERTHS
    assert catalog.of(BERTHS.kind) is BERTHS
    assert catalog.learned.all == catalog.on_hub.all == (BERTHS,)
    assert asked == [("example.com/v1", "Berth")]


async def test_what_members_say_of_a_kind_is_not_watched_on_the_hub_and_the_hub_corrects_it() -> None:
    catalog, secrets = KindCatalog(), replace(BERTHS, name="secrets")
    catalog.learn(secrets, on_hub=False)
    assert catalog.find("example.com/v1", "Berth") is secrets
    assert (catalog.learned.all, catalog.on_hub.all) == ((secrets,), ())
    catalog.learn(BERTHS, on_hub=True)
    catalog.learn(secrets, on_hub=False)
    assert catalog.find("example.com/v1", "Berth") is BERTHS
    assert catalog.on_hub.all == (BERTHS,)


async def test_a_waiter_for_more_kinds_is_woken() -> None:
    catalog = KindCatalog()
    waiting = asyncio.create_task(catalog.learned.grown(beyond=0))
    await asyncio.sleep(1)
    assert not waiting.done()
    catalog.learn(BERTHS, on_hub=True)
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(catalog.learned.grown(beyond=0), 1)


@pytest.mark.parametrize(
    ("api_version", "kind", "wanted"),
    [
        ("example.com/v1", "Berth", True),
        ("v1", "Pod", True),
        ("v1", "Node", False),
        ("work.karmada.io/v1alpha1", "Work", False),
        ("", "Pod", False),
        ("v1", "", False),
    ],
)
async def test_the_federations_own_kinds_are_not_propagated(
    api_version: str, kind: str, *, wanted: bool
) -> None:
    assert can_be_propagated(api_version, kind) is wanted
    asked: list[tuple[str, str]] = []
    catalog = KindCatalog()
    catalog.when_asked(lambda *what: asked.append(what))
    catalog.find(api_version, kind)
    assert bool(asked) is wanted
