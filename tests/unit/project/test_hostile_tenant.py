"""Whatever a tenant writes, the plans and answers for the others are made, in bounded time and memory.

A neighbour of the tenant has a pod on a node that its taint forbids, and three in order. With whatever
objects of the tenant beside it, that pod is moved and the others stay; no fault of ours is met (tests are red
on any); each object is read, and each call made, in bounded processor time of its thread.
"""

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import msgspec
import pytest

from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.verbs import FILTER, PREEMPT, PRIORITIZE, SCORES
from reberth.cluster.cache import ADDED, DELETED, MODIFIED, Cache
from reberth.cluster.kinds import ALL_RESOURCES, NODE, Kind, Resource
from reberth.cluster.object_size import LARGEST
from reberth.cluster.pods.identity import group_of
from reberth.cluster.snapshot import take
from reberth.cluster.tables import meta_of
from reberth.protocol.response import BadObject, Reader
from reberth.records import ObjectMeta, Record
from reberth.values.object_error import ObjectError
from rescheduler.planning.explain import explain_pod
from rescheduler.planning.planner import plan
from tests.support import builders
from tests.support.builders import Object
from tests.support.extender.calls import candidates, question
from tests.support.hostile.tenant import HostileTenant
from tests.support.large_objects import TENANT
from tests.support.memory.advice import LOAD
from tests.support.memory_growth import most_memory
from tests.support.rescheduler.plans import MODEL, NOW, VERSION, moves_of, policy, refusals_of, replica
from tests.support.resumable_rounds import Proof

T = TypeVar("T")

DRAWN = 40
SAMPLE = 10
ROUNDS = 10
SOAKED = 10**6
ROUNDS_AT_ONCE = 250
# Seconds of the processor, about ten times what the worst of them take on a slow machine.
OF_AN_OBJECT, OF_A_PLAN, OF_AN_ANSWER = 0.5, 3.0, 0.5
# Megabytes by which a process may grow while objects of the tenant come and go.
GROWTH = 80
LARGE_ONES, MIRRORS = 60, 2

POLICY = policy(limits={"perWorkload": None}, protections={"minReplicas": 1})
SETTINGS = AnswerSettings(scores=LOAD)
RESOURCES = {(each.kind.group, each.kind.name): each for each in ALL_RESOURCES}
READERS = {each.kind: Reader(each.kind.record) for each in ALL_RESOURCES}


def neighbours() -> list[Object]:
    """Four nodes, of which the first may have no pods any more, and four replicas."""
    nodes = [builders.node(f"n{number}", cpu="8", memory="32Gi") for number in range(4)]
    nodes[0]["spec"] = {"taints": [{"key": "old", "value": "yes", "effect": "NoSchedule"}]}
    for each in nodes:
        each["metadata"]["uid"] = f"uid-{each['metadata']['name']}"
    pods = [
        replica(f"web-{number}", "web", f"n{number}", namespace="shop", cpu="100m") for number in range(4)
    ]
    return [*nodes, *pods]


def within(seconds: float, work: Callable[[], T], what: object) -> T:
    begin = time.thread_time()
    made = work()
    spent = time.thread_time() - begin
    assert spent <= seconds, f"{spent:.2f} s for {what!r:.300}"
    return made


class Cluster:
    """The mirrors of both programs, fed as watches feed them: what cannot be read or used is left out."""

    def __init__(self) -> None:
        self.cache = Cache(version=VERSION)
        self.memory = ClusterMemory(LOAD, version=VERSION)
        self._versions = count(1)
        self._there: dict[tuple[Kind[Any, Any], str], ObjectMeta] = {}
        self.left_out = 0
        self.shop_is_whole = True

    def put(self, *objects: Object) -> None:
        for each in objects:
            resource = RESOURCES[group_of(each["apiVersion"]), each["kind"]]
            each["metadata"]["resourceVersion"] = str(next(self._versions))
            text = json.dumps(each).encode(errors="replace")
            within(OF_AN_OBJECT, lambda resource=resource, text=text: self._read(resource, text), text)

    def drop_tenant(self) -> None:
        for (kind, uid), meta in list(self._there.items()):
            if meta.namespace == TENANT:
                last = msgspec.structs.replace(meta, resource_version=str(next(self._versions)))
                self._apply(kind, DELETED, kind.record(metadata=last))
                del self._there[kind, uid]

    def _read(self, resource: Resource[Any], text: bytes) -> None:
        found = READERS[resource.kind].read_line("watch", b'{"type":"ADDED","object":%b}' % text)
        if isinstance(found, BadObject):
            assert found.namespace in {TENANT, ""}, found
            self.left_out += 1
            return
        meta = meta_of(found.object)
        key = resource.kind, meta.uid
        self._apply(resource.kind, MODIFIED if key in self._there else ADDED, found.object)
        self._there[key] = ObjectMeta(meta.name, meta.namespace, meta.uid)

    def _apply(self, kind: Kind[Any, Any], event: str, record: Record) -> None:
        for cache in (self.cache, self.memory):
            try:
                cache.apply(kind, event, record)
            except ObjectError as error:
                self.left_out += 1
                self.shop_is_whole &= "shop" not in error.name


def check(cluster: Cluster, *, is_explained: bool) -> None:
    """Plan and answer as if the tenant were not there."""
    assert cluster.shop_is_whole
    snapshot = take(cluster.cache, now=NOW)
    made, _ = within(OF_A_PLAN, lambda: plan(snapshot, POLICY, None, model=MODEL), "a plan")
    ours = {pod: node for pod, node in moves_of(made).items() if pod.startswith("shop/")}
    assert ours.keys() == {"shop/web-0"}
    assert refusals_of(made).get("shop/web-0") is None
    assert not [warning for warning in made.warnings if "Fault" in warning]
    names = [row.record.metadata.name for row in cluster.cache.of(NODE).rows()]
    for verb, body in (
        *((each, question(names)) for each in (FILTER, PRIORITIZE, SCORES)),
        (PREEMPT, candidates({name: ["uid-evil-1"] for name in names})),
    ):
        answer = within(
            OF_AN_ANSWER,
            lambda verb=verb, body=body: verb.decide(cluster.memory, verb.read(body), SETTINGS, NOW),
            verb,
        )
        assert json.loads(answer.body)
    if is_explained:
        for place in range(len(snapshot.pods.rows)):
            explain_pod(place, snapshot, POLICY, None, model=MODEL)


def run_round(number: int, *, is_explained: bool = False) -> int:
    """Run one round; give how many objects were left out."""
    cluster = Cluster()
    cluster.put(*neighbours())
    assert cluster.left_out == 0
    cluster.put(*HostileTenant(number).draw(DRAWN))
    check(cluster, is_explained=is_explained)
    return cluster.left_out


def test_without_the_tenant_one_pod_is_moved() -> None:
    cluster = Cluster()
    cluster.put(*neighbours())
    check(cluster, is_explained=True)


@pytest.mark.parametrize("first", range(0, SAMPLE * ROUNDS, ROUNDS))
def test_nothing_is_lost_for_the_neighbours(first: int) -> None:
    for number in range(first, first + ROUNDS):
        run_round(number, is_explained=number == first)


def churn(rounds: Sequence[int]) -> Iterator[None]:
    """Let the objects of many rounds come into one cluster and go."""
    cluster = Cluster()
    cluster.put(*neighbours())
    for number in rounds:
        cluster.put(*HostileTenant(number).draw(DRAWN))
        if number % 3 == 2:
            cluster.drop_tenant()
        yield
    check(cluster, is_explained=False)


def test_memory_is_bounded_while_objects_of_the_tenant_come_and_go() -> None:
    for _ in churn(range(12)):
        pass
    before = most_memory()
    for _ in churn(range(100, 136)):
        pass
    assert most_memory() - before <= GROWTH


def test_large_objects_that_stay_take_no_more_than_they_may() -> None:
    cluster, tenant = Cluster(), HostileTenant(1)
    cluster.put(*neighbours())
    gc.collect()
    with traced():
        for _ in range(LARGE_ONES):
            cluster.put(tenant.large_pod())
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
    assert held <= LARGE_ONES * LARGEST * MIRRORS * 1.5
    check(cluster, is_explained=False)


@contextmanager
def traced() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


@pytest.mark.soak
@pytest.mark.usefixtures("no_logs")
def test_nothing_is_lost_among_a_million_objects() -> None:
    proof = Proof("hostile-tenant")
    left_out, before = 0, 0.0
    for index, number in enumerate(proof.remaining(range(SOAKED // DRAWN))):
        left_out += run_round(number, is_explained=number % 50 == 0)
        proof.note([number])
        if index == ROUNDS_AT_ONCE:
            before = most_memory()
        if index % ROUNDS_AT_ONCE == 0:
            print(f"{(index + 1) * DRAWN} objects, {left_out} left out, {most_memory():.0f} MB", flush=True)
    assert not before or most_memory() - before <= GROWTH
