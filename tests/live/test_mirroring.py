"""A mirror stays true whatever happens between it and a real API server."""

import asyncio
import logging
import random
import resource as usage
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.faults import (
    Answer,
    Cut,
    Delay,
    Duplicate,
    Ending,
    ErrorEvent,
    Fault,
    FaultProxy,
    Lines,
    Match,
    Memory,
    Remember,
    Replay,
    Reset,
    Rule,
    Slow,
    Stale,
    Stall,
    refuse_watch,
    schedule,
    statuses,
)
from reberth import kinds, resources
from reberth.api import Api
from reberth.cache import Cache
from reberth.connecting import Access
from reberth.mirroring import Mirror, mirroring
from reberth.resources import Resource
from reberth.watching import WatchSettings
from tests.builders import pdb, pod
from tests.live.proxied import direct, through
from tests.proving import Proof

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"
IMPATIENT = WatchSettings(seconds=2, silence=2.5, first_pause=0.02, longest_pause=0.2, settle=0.01)
READS = (Match(verb="watch"), Match(verb="list"))


def faults(memory: Memory) -> list[Fault]:
    """Everything that may go wrong with a read."""
    effects = (
        Answer(statuses.list_expired()),
        Answer(statuses.too_many_requests()),
        Answer(statuses.overloaded(retry_after=0)),
        Answer(statuses.internal_error()),
        Answer(statuses.shutting_down()),
        Answer(statuses.timed_out()),
        Reset(),
        Delay(0.3),
        Stall(),
        Stall(Lines(2.5)),
        Slow(2000),
        Cut(Lines(1.5), Ending.RESET),
        Cut(Lines(3), Ending.RESET),
        Duplicate(),
        ErrorEvent(statuses.watch_expired(), Lines(2)),
        refuse_watch(statuses.watch_list_unsupported()),
        refuse_watch(statuses.watch_expired()),
        Stale(memory),
    )
    return [Fault(match, effect) for match in READS for effect in effects]


async def churn(client: Client, chance: random.Random, prefix: str, rounds: int) -> None:
    """Pods come, change and go; some come again under their old name."""
    alive: list[str] = []
    for number in range(rounds):
        action = chance.choice(["create", "create", "change", "delete"])
        if action == "create" or not alive:
            name = f"{prefix}-{chance.randrange(rounds)}"
            if name not in alive:
                await client.create(PODS, pod(name, cpu="100m"))
                alive.append(name)
        elif action == "change":
            labels = {"metadata": {"labels": {"round": str(number)}}}
            await client.patch(f"{PODS}/{chance.choice(alive)}", labels)
        else:
            name = alive.pop(chance.randrange(len(alive)))
            await client.delete(f"{PODS}/{name}")
        await asyncio.sleep(chance.uniform(0, 0.02))
    await all_of(client.delete(f"{PODS}/{name}") for name in alive[::2])


async def listed(client: Client, prefix: str) -> dict[str, int]:
    found = [item["metadata"] for item in (await client.get("/api/v1/pods"))["items"]]
    return {meta["name"]: int(meta["resourceVersion"]) for meta in found if meta["name"].startswith(prefix)}


def mirrored(cache: Cache, prefix: str = "") -> dict[str, int]:
    return {row.name: row.version for row in cache.contents()[kinds.POD] if row.name.startswith(prefix)}


async def until_true(mirror: Mirror, client: Client, prefix: str = "") -> None:
    """Wait until the mirror is what a fresh list says of pods that nobody changes any more."""
    truth = await listed(client, prefix)
    change = 0
    try:
        async with asyncio.timeout(20):
            while mirrored(mirror.cache, prefix) != truth:
                change = await mirror.changed(since=change)
    except TimeoutError:
        wrong = dict(truth.items() ^ mirrored(mirror.cache, prefix).items())
        raise AssertionError(f"{mirror.troubles()}, differs in {wrong}") from None


async def one_schedule(cluster: Cluster, proxy: FaultProxy, seed: int) -> Counter[str]:
    """A mirror lives through the faults of a seed while objects change; gives which faults struck."""
    memory = Memory()
    name = f"seed-{seed}"
    drawn = schedule(seed, 5, faults(memory), requests=5)
    mine = [Rule(Match(client=name, verb=rule.match.verb), rule.effect, rule.turns) for rule in drawn]
    rules = [Rule(Match(client=name, verb="list"), Remember(memory)), *mine]
    if seed % 2:  # an old server, so that there are lists in pages for the faults to strike
        streamed = Match(client=name, verb="watch", query={"sendInitialEvents": "true"})
        rules.append(Rule(streamed, refuse_watch(statuses.watch_list_unsupported())))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        api = await stack.enter_async_context(await through(proxy, cluster, name))
        for rule in rules:
            proxy.add(rule)
        cache = Cache(version=(1, 36))
        mirror = await stack.enter_async_context(
            mirroring(api, cache, [resources.PODS, resources.NODES], settings=IMPATIENT)
        )
        await churn(client, random.Random(seed), name, rounds=80)
        for rule in rules:
            proxy.remove(rule)
        await until_true(mirror, client, f"{name}-")
    return Counter(type(rule.effect).__name__ for rule in mine if rule.acted)


async def run_schedules(cluster: Cluster, proxy: FaultProxy, seeds: Iterable[int]) -> Counter[str]:
    """Several at once; gives which faults struck."""
    struck: Counter[str] = Counter()

    async def one(seed: int) -> None:
        struck.update(await one_schedule(cluster, proxy, seed))

    await all_of(one(seed) for seed in seeds)
    async with cluster.client() as client:
        left = (await client.get("/api/v1/pods"))["items"]
        await all_of(client.delete(f"{PODS}/{item['metadata']['name']}") for item in left)
    return struck


async def test_after_any_faults_the_mirror_is_the_truth(bare: Cluster, proxy: FaultProxy) -> None:
    struck: Counter[str] = Counter()
    for start in (0, 5, 10):
        struck += await run_schedules(bare, proxy, range(start, start + 5))
    assert sum(struck.values()) >= 15, struck


@pytest.mark.soak
async def test_after_three_hundred_schedules_of_faults_the_mirror_is_the_truth(
    bare: Cluster, proxy: FaultProxy
) -> None:
    proof = Proof("mirror-faults")
    struck: Counter[str] = Counter()
    remaining = proof.remaining(range(1000, 1300))
    for start in range(0, len(remaining), 5):
        seeds = remaining[start : start + 5]
        struck += await run_schedules(bare, proxy, seeds)
        proof.note(seeds)
    print(f"\nschedules passed: {len(proof.passed())}; faults that struck in this run: {dict(struck)}")
    assert sum(struck.values()) >= len(remaining)


async def with_mirror(
    cluster: Cluster, proxy: FaultProxy, name: str, test: Callable[[Mirror, Client], Awaitable[None]]
) -> None:
    async with (
        cluster.client() as client,
        await through(proxy, cluster, name) as api,
        mirroring(api, Cache(version=(1, 36)), [resources.PODS], settings=IMPATIENT) as mirror,
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
        assert "silent" in str(mirror.watchers["pods"].trouble) or "no answer" in str(
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
    async with proxy.fault(streamed, refuse_watch(statuses.watch_list_unsupported())) as rule:
        await with_mirror(bare, proxy, "old-etcd", test)
        assert rule.acted == 1


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
        mirroring(api, Cache(version=(1, 36)), [resources.PODS], settings=settings) as mirror,
    ):
        await mirror.synced()
        change = await mirror.changed(since=0)
        woken = asyncio.create_task(mirror.changed(since=change))
        await client.create_all(PODS, [pod(f"burst-{number}") for number in range(50)])
        assert await woken - change == 50
        await all_of(client.delete(f"{PODS}/burst-{number}") for number in range(50))


async def test_a_kind_that_is_not_installed_is_waited_for_with_one_line(
    bare: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="reberth")
    kind = kinds.plain("Berth", kinds.SCORE.record, "tests.reberth.dev")
    berths = resources.Resource(kind, "berths", "v1", namespaced=False)
    async with (
        bare.client() as client,
        direct(bare) as api,
        mirroring(api, Cache(version=(1, 36)), [berths, resources.NODES], settings=IMPATIENT) as mirror,
    ):
        await mirror.synced("nodes")
        while mirror.watchers["berths"].trouble == "not listed yet":
            await asyncio.sleep(0.01)
        assert mirror.watchers["berths"].trouble == "not installed in this cluster"
        await asyncio.sleep(1)
        await client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", BERTHS)
        await asyncio.wait_for(mirror.synced("berths"), 20)
        await client.delete(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/berths.tests.reberth.dev"
        )
    said = [record for record in caplog.records if "not installed" in str(vars(record))]
    assert len(said) == 1


BERTHS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "berths.tests.reberth.dev"},
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


async def test_a_right_that_is_missing_stops_one_kind_alone(bare: Cluster) -> None:
    async with bare.client() as client:
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", NODE_READER)
        await client.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", NODE_READER_BINDING)
        api = Api(Access(str(bare.user("node-reader"))))
        cache = Cache(version=(1, 36))
        asked: list[Resource[Any]] = [resources.PODS, resources.NODES]
        async with api, mirroring(api, cache, asked, settings=IMPATIENT) as mirror:
            await asyncio.wait_for(mirror.synced("nodes"), 10)
            while mirror.watchers["pods"].trouble == "not listed yet":
                await asyncio.sleep(0.01)
            assert 'User "node-reader" cannot watch resource "pods"' in str(mirror.troubles()["pods"])
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


async def reconnect(proxy: FaultProxy, mirror: Mirror, times: int) -> None:
    """Each watch is cut at once, so that the next begins; without pauses worth the name."""
    async with proxy.fault(Match(client="reconnects", verb="watch"), Cut(Lines(0), Ending.CLEAN)) as rule:
        mirror.watchers["pods"].resync()
        await proxy.until(lambda: rule.acted >= times)


@pytest.mark.soak
async def test_ten_thousand_reconnects_do_not_grow_the_process(bare: Cluster, proxy: FaultProxy) -> None:
    settings = WatchSettings(first_pause=0.0001, longest_pause=0.0001)
    async with (
        await through(proxy, bare, "reconnects") as api,
        mirroring(api, Cache(version=(1, 36)), [resources.PODS], settings=settings) as mirror,
    ):
        await mirror.synced()
        await reconnect(proxy, mirror, 2000)
        before = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss
        await reconnect(proxy, mirror, 10_000)
        grown = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss - before
    print(f"\n10,000 reconnects: peak memory grew by {grown} KiB")
    assert grown < 4096


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
        assert "Got more than" in str(mirror.troubles()["pods"])
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
        mirroring(api, Cache(version=(1, 36)), [resources.BUDGETS]) as mirror,
    ):
        await client.create(path, pdb("half", min_available="50%"))
        await mirror.synced()
        change = 0
        while not (rows := mirror.cache.contents()[kinds.BUDGET].all):
            change = await mirror.changed(since=change)
        assert rows[0].spec.min_available == "50%"
        await client.delete(f"{path}/half")
