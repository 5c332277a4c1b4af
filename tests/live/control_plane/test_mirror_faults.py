"""A mirror equals a real API server after any faults between them, and does not grow."""

import asyncio
import random
import resource as usage
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack

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
    Reset,
    Rule,
    Slow,
    Stale,
    Stall,
    refuse_watch,
    schedule,
    status_bodies,
)
from reberth.client.mirror import Mirror, mirroring
from reberth.client.watcher import WatchSettings
from reberth.cluster import kinds
from reberth.cluster.cache import Cache
from reberth.cluster.pods.requests import NEWEST
from tests.live.support.fault_client import through
from tests.live.support.mirror_waits import IMPATIENT, STREAMED_PODS, until_true
from tests.support.builders import pod
from tests.support.resumable_rounds import Proof

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"
READS = (Match(verb="watch"), Match(verb="list"))


def faults(memory: Memory) -> list[Fault]:
    """Everything that may go wrong with a read."""
    effects = (
        Answer(status_bodies.list_expired()),
        Answer(status_bodies.too_many_requests()),
        Answer(status_bodies.overloaded(retry_after=0)),
        Answer(status_bodies.internal_error()),
        Answer(status_bodies.shutting_down()),
        Answer(status_bodies.timed_out()),
        Reset(),
        Delay(0.3),
        Stall(),
        Stall(Lines(2.5)),
        Slow(2000),
        Cut(Lines(1.5), Ending.RESET),
        Cut(Lines(3), Ending.RESET),
        Duplicate(),
        ErrorEvent(status_bodies.watch_expired(), Lines(2)),
        refuse_watch(status_bodies.watch_list_unsupported()),
        refuse_watch(status_bodies.watch_expired()),
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


async def one_schedule(cluster: Cluster, proxy: FaultProxy, seed: int) -> Counter[str]:
    """A mirror lives through the faults of a seed while objects change; gives which faults struck."""
    memory = Memory()
    name = f"seed-{seed}"
    drawn = schedule(seed, 5, faults(memory), requests=5)
    mine = [Rule(Match(client=name, verb=rule.match.verb), rule.effect, rule.turns) for rule in drawn]
    rules = [Rule(Match(client=name, verb="list"), Remember(memory)), *mine]
    pods = kinds.PODS if seed % 4 == 2 else STREAMED_PODS
    if seed % 2:  # an old server, so that there are lists in pages for the faults to strike
        streamed = Match(client=name, verb="watch", query={"sendInitialEvents": "true"})
        rules.append(Rule(streamed, refuse_watch(status_bodies.watch_list_unsupported())))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(cluster.client())
        api = await stack.enter_async_context(await through(proxy, cluster, name))
        for rule in rules:
            proxy.add(rule)
        cache = Cache(version=NEWEST)
        mirror = await stack.enter_async_context(
            mirroring(api, cache, [pods, kinds.NODES], settings=IMPATIENT)
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
        mirroring(api, Cache(version=NEWEST), [kinds.PODS], settings=settings) as mirror,
    ):
        await mirror.synced()
        await reconnect(proxy, mirror, 2000)
        before = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss
        await reconnect(proxy, mirror, 10_000)
        grown = usage.getrusage(usage.RUSAGE_SELF).ru_maxrss - before
    print(f"\n10,000 reconnects: peak memory grew by {grown} KiB")
    assert grown < 4096
