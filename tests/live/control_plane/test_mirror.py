"""A mirror stays equal to a real API server through restarts, missing kinds and missing rights."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace

from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.faults import (
    Bytes,
    Cut,
    Delay,
    Ending,
    FaultProxy,
    Match,
    Replay,
    Reset,
    Rule,
    nth,
    refuse_watch,
    status_bodies,
)
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import Mirror, mirroring
from reberth.client.watcher import WatchSettings
from reberth.cluster import kinds
from reberth.cluster.cache import BOOKMARK, Cache
from reberth.cluster.kinds import Resource
from reberth.cluster.pods.requests import NEWEST
from reberth.protocol.response import BadObject
from reberth.values import errors
from tests.live.support.definitions import DEFINITIONS, remove_definitions
from tests.live.support.fault_client import QUICK, direct, through
from tests.live.support.mirror_waits import IMPATIENT, STREAMED_PODS, mirrored, until_true
from tests.support.builders import pdb, pod

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"


async def with_mirror(
    cluster: Cluster,
    proxy: FaultProxy,
    name: str,
    test: Callable[[Mirror, Client], Awaitable[None]],
    *,
    resource: Resource[Any] = STREAMED_PODS,
    page_size: int = 500,
) -> None:
    async with (
        cluster.client() as client,
        await through(proxy, cluster, name, replace(QUICK, page_size=page_size)) as api,
        mirroring(api, Cache(version=NEWEST), [resource], settings=IMPATIENT) as mirror,
    ):
        await test(mirror, client)


async def test_a_server_that_is_gone_is_not_hammered_and_its_return_is_noticed(
    bare: Cluster, proxy: FaultProxy
) -> None:
    async def test(mirror: Mirror, client: Client) -> None:
        await mirror.synced()
        await proxy.cut("hammer")
        async with proxy.fault(Match(client="hammer"), Reset()):
            await proxy.mend("hammer")
            before = len(proxy.journal.select(Match(client="hammer")))
            await asyncio.sleep(2)
            asked = len(proxy.journal.select(Match(client="hammer"))) - before
            assert 2 <= asked <= 60  # two tries each, pauses between 0.1 and 0.2 s
            assert mirror.watchers["pods"].trouble is not None
            await client.create(PODS, pod("late"))
        await until_true(mirror, client)
        assert mirror.watchers["pods"].trouble is None
        await client.delete(f"{PODS}/late")

    await with_mirror(bare, proxy, "hammer", test)


async def test_a_connection_on_which_nothing_comes_is_given_up(bare: Cluster, proxy: FaultProxy) -> None:
    async def test(mirror: Mirror, client: Client) -> None:
        await mirror.synced()
        proxy.freeze("frozen")
        await client.create(PODS, pod("unseen"))
        while mirror.watchers["pods"].trouble is None:
            await asyncio.sleep(0.05)
        assert "no data" in str(mirror.watchers["pods"].trouble) or "no answer" in str(
            mirror.watchers["pods"].trouble
        )
        await proxy.mend("frozen")
        await until_true(mirror, client)
        await client.delete(f"{PODS}/unseen")

    await with_mirror(bare, proxy, "frozen", test)


async def test_a_server_without_streamed_lists_is_read_in_pages(bare: Cluster, proxy: FaultProxy) -> None:
    async def test(mirror: Mirror, client: Client) -> None:
        await mirror.synced()
        await until_true(mirror, client)

    streamed = Match(client="old-etcd", verb="watch", query={"sendInitialEvents": "true"})
    async with proxy.fault(streamed, refuse_watch(status_bodies.watch_list_unsupported())) as rule:
        await with_mirror(bare, proxy, "old-etcd", test)
        assert rule.acted == 1


async def test_bookmarks_of_every_kind_can_be_read(bare: Cluster) -> None:
    """They are empty objects: fields that every object has are null there."""
    unreadable, read = [], 0
    async with Api(Access(str(bare.kubeconfig))) as api:
        for resource in kinds.ALL_RESOURCES:
            with contextlib.suppress(errors.NotFound):  # not installed here
                async with api.watch(resource, since=None, seconds=30) as lines:
                    last = [line async for line in until_bookmark(lines)][-1]
                read += 1
                unreadable += [resource.name] if isinstance(last, BadObject) else []
    assert unreadable == []
    assert read >= 24


async def until_bookmark(lines: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for line in lines:
        yield line
        if isinstance(line, BadObject) or line.type == BOOKMARK:
            return


async def test_pods_are_listed_in_pages_even_where_lists_can_be_streamed(
    bare: Cluster, proxy: FaultProxy
) -> None:
    names = [f"{PODS}/many-{number}" for number in range(8)]
    lists = Rule(Match(client="many", verb="list"), Delay(0.01))

    async def test(mirror: Mirror, client: Client) -> None:
        await mirror.synced()
        await until_true(mirror, client)
        await client.create(PODS, pod("later"))  # the watch goes on where the list was made
        await until_true(mirror, client)
        await all_of(client.delete(name) for name in (*names, f"{PODS}/later"))

    async with bare.client() as client:
        await client.create_all(PODS, [pod(f"many-{number}") for number in range(8)])
    proxy.add(lists)
    await with_mirror(bare, proxy, "many", test, resource=kinds.PODS, page_size=3)
    proxy.remove(lists)
    assert lists.acted == 3


@pytest.mark.parametrize("page", [1, 2, 3])
@pytest.mark.parametrize("ending", list(Ending))
async def test_a_page_that_breaks_off_is_no_end_of_the_list(
    page: int, ending: Ending, bare: Cluster, proxy: FaultProxy
) -> None:
    name = f"broken-{page}-{ending.name.lower()}"
    paths = [f"{PODS}/{name}-{number}" for number in range(8)]
    breaks = Rule(Match(client=name, verb="list"), Cut(Bytes(1_500), ending), nth(page))

    async def test(mirror: Mirror, client: Client) -> None:
        await mirror.synced()
        assert breaks.acted == 1
        await until_true(mirror, client, name)
        await all_of(map(client.delete, paths))

    async with bare.client() as client:
        await client.create_all(PODS, [pod(f"{name}-{number}") for number in range(8)])
    proxy.add(breaks)
    await with_mirror(bare, proxy, name, test, resource=kinds.PODS, page_size=3)
    proxy.remove(breaks)


async def test_a_resync_lists_again(bare: Cluster, proxy: FaultProxy) -> None:
    lists = Match(client="resync", verb="watch", query={"sendInitialEvents": "true"})

    async def test(mirror: Mirror, _: Client) -> None:
        await mirror.synced()
        before = rule.matched
        mirror.watchers["pods"].resync()
        await proxy.until(lambda: rule.matched == before + 1)

    async with proxy.fault(lists, Delay(0.001)) as rule:
        await with_mirror(bare, proxy, "resync", test)


async def test_a_burst_wakes_a_consumer_once(bare: Cluster) -> None:
    settings = WatchSettings(settle=0.3)
    async with (
        bare.client() as client,
        direct(bare) as api,
        mirroring(api, Cache(version=NEWEST), [kinds.PODS], settings=settings) as mirror,
    ):
        await mirror.synced()
        change = await mirror.changed(since=0)
        woken = asyncio.create_task(mirror.changed(since=change))
        await client.create_all(PODS, [pod(f"burst-{number}") for number in range(50)])
        assert await woken - change == 50
        await all_of(client.delete(f"{PODS}/burst-{number}") for number in range(50))


BERTH = kinds.plain_kind("Berth", kinds.SCORE.record, "tests.reberth.dev")
DEFINED = "berths.tests.reberth.dev"


async def test_a_kind_that_is_not_installed_is_waited_for_with_one_line(
    bare: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="reberth")
    berths = Resource(BERTH, "berths", "v1", namespaced=False)
    async with (
        bare.client() as client,
        direct(bare) as api,
        mirroring(api, Cache(version=NEWEST), [berths, kinds.NODES], settings=IMPATIENT) as mirror,
    ):
        await mirror.synced("nodes")
        while mirror.watchers["berths"].trouble == "not listed yet":
            await asyncio.sleep(0.01)
        assert mirror.watchers["berths"].trouble == "not installed in this cluster"
        await asyncio.sleep(1)
        await client.create(DEFINITIONS, BERTHS)
        await asyncio.wait_for(mirror.synced("berths"), 20)
        await remove_definitions(client, [DEFINED])
    said = [record for record in caplog.records if "not installed" in str(vars(record))]
    assert len(said) == 1


async def test_an_optional_kind_may_be_installed_and_removed_without_errors(
    bare: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="reberth")
    berths = Resource(BERTH, "berths", "v1", namespaced=False, is_optional=True)
    cache = Cache(version=NEWEST)
    async with (
        bare.client() as client,
        direct(bare) as api,
        mirroring(api, cache, [berths], settings=IMPATIENT) as mirror,
        asyncio.timeout(60),
    ):
        await mirror.synced()
        assert mirror.troubles() == {"berths": None}
        await client.create(DEFINITIONS, BERTHS)
        await client.wait(berths.path(), lambda listed: "items" in listed)
        await client.create(berths.path(), B1)
        await until_there_are(mirror, cache, 1)
        await remove_definitions(client, [DEFINED])
        await until_there_are(mirror, cache, 0)
    assert not [record for record in caplog.records if "not installed" in str(vars(record))]


async def test_an_optional_kind_that_is_not_installed_is_looked_for_rarely_until_it_is_there(
    bare: Cluster, proxy: FaultProxy
) -> None:
    """Counted before the real API server; ten minutes are a second here."""
    berths = Resource(BERTH, "berths", "v1", namespaced=False, is_optional=True)
    longest, cache = 1.0, Cache(version=NEWEST)
    patient = replace(IMPATIENT, longest_absence_pause=longest)
    async with (
        bare.client() as client,
        await through(proxy, bare, "rarely") as api,
        mirroring(api, cache, [berths], settings=patient) as mirror,
        asyncio.timeout(60),
    ):
        await mirror.synced()
        await asyncio.sleep(2)
        before = len(proxy.journal.select(Match(client="rarely")))
        await asyncio.sleep(3)
        asked = len(proxy.journal.select(Match(client="rarely"))) - before
        assert 2 <= asked <= 6  # pauses between 0.5 and 1 s
        assert mirror.troubles() == {"berths": None}
        await client.create(DEFINITIONS, BERTHS)
        await client.wait(berths.path(), lambda listed: "items" in listed)
        await client.create(berths.path(), B1)
        async with asyncio.timeout(longest + 1):
            await until_there_are(mirror, cache, 1)
        await remove_definitions(client, [DEFINED])


B1 = {"apiVersion": "tests.reberth.dev/v1", "kind": "Berth", "metadata": {"name": "b1"}}


async def until_there_are(mirror: Mirror, cache: Cache, count: int) -> None:
    change = 0
    while len(cache.of(BERTH)) != count:
        change = await mirror.changed(since=change)


BERTHS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": DEFINED},
    "spec": {
        "group": "tests.reberth.dev",
        "scope": "Cluster",
        "names": {"plural": "berths", "singular": "berth", "kind": "Berth"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


async def test_a_missing_permission_stops_only_its_kind(bare: Cluster) -> None:
    async with bare.client() as client:
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", NODE_READER)
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", NODE_READER_BINDING)
        api = Api(Access(str(bare.user("node-reader"))))
        cache = Cache(version=NEWEST)
        asked: list[Resource[Any]] = [kinds.PODS, kinds.NODES]
        async with api, mirroring(api, cache, asked, settings=IMPATIENT) as mirror:
            await asyncio.wait_for(mirror.synced("nodes"), 10)
            while mirror.watchers["pods"].trouble == "not listed yet":
                await asyncio.sleep(0.01)
            assert 'User "node-reader" cannot list resource "pods"' in str(mirror.troubles()["pods"])
            assert mirror.troubles()["nodes"] is None
        await client.delete("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/node-reader")
        await client.delete("/apis/rbac.authorization.k8s.io/v1/clusterroles/node-reader")


NODE_READER = {
    "metadata": {"name": "node-reader"},
    "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}],
}
NODE_READER_BINDING = {
    "metadata": {"name": "node-reader"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "node-reader"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "node-reader"}],
}


async def test_an_object_that_cannot_be_read_spoils_nothing_else(bare: Cluster, proxy: FaultProxy) -> None:
    """The API server would not store one, so a replayed watch brings it."""
    wrong = b'{"type":"ADDED","object":{"metadata":{"name":"bad","namespace":"default","uid":"u1",'
    wrong += b'"resourceVersion":"7"},"spec":{"containers":"none"}}}\n'
    right = b'{"type":"ADDED","object":{"metadata":{"name":"good","namespace":"default","uid":"u2",'
    right += b'"resourceVersion":"8"}}}\n'
    end = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9",'
    end += b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'

    async def test(mirror: Mirror, _: Client) -> None:
        await asyncio.wait_for(mirror.synced(), 5)
        assert mirrored(mirror.cache) == {"good": 8}

    async with proxy.fault(Match(client="bad", verb="watch"), Replay((wrong, right, end))):
        await with_mirror(bare, proxy, "bad", test)


async def test_a_line_beyond_all_bounds_is_a_fault_that_passes(bare: Cluster, proxy: FaultProxy) -> None:
    async def test(mirror: Mirror, _: Client) -> None:
        while "not listed yet" in str(mirror.troubles()["pods"]):
            await asyncio.sleep(0.01)
        assert "a line of more than" in str(mirror.troubles()["pods"])
        proxy.remove(rule)
        await asyncio.wait_for(mirror.synced(), 10)

    endless = b'{"type":"ADDED","object":{"x":"' + b"a" * (8 << 20)
    rule = proxy.add(Rule(Match(client="endless", verb="watch"), Replay((endless,))))
    await with_mirror(bare, proxy, "endless", test)


async def test_budgets_are_read_as_they_stand(bare: Cluster) -> None:
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    async with (
        bare.client() as client,
        direct(bare) as api,
        mirroring(api, Cache(version=NEWEST), [kinds.BUDGETS]) as mirror,
    ):
        await client.create(path, pdb("half", min_available="50%"))
        await mirror.synced()
        change = 0
        while not (rows := mirror.cache.contents()[kinds.BUDGET].all):
            change = await mirror.changed(since=change)
        assert rows[0].spec.min_available == "50%"
        await client.delete(f"{path}/half")
