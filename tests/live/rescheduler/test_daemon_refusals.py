"""Evictions that a policy denies do not keep the other workloads from being moved, whichever process leads.

The policy is a ValidatingAdmissionPolicy of the API server, and its audit log is the witness of every try.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from localcluster import audit_log, manifests
from localcluster.client import Client, Refused, all_of
from localcluster.cluster import Cluster
from localcluster.state_dir import running
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.live.support.audited import AuditedCluster, refuse_violations
from tests.live.support.daemon_process import (
    DEPLOYMENTS,
    HISTORIES,
    PODS,
    Daemon,
    cordon,
    daemon,
    install,
    settings_of,
)
from tests.live.support.extender_process import MANIFESTS
from tests.live.support.moves import all_ready
from tests.support.builders import Object, deployment

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS, DENIED, MOVED_AT_ONCE = 40, 5, 30
MINUTE = 60.0
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
GOOD = {"pool": "good"}
OFF = {"mode": "off"}
POLICY: Object = {
    "mode": "apply",
    "protections": {"minAge": "0s", "lastReady": False},
    "policies": {
        "brokenRules": {"nodeAffinity": {"for": "0s"}},
        "underUtilisedNodes": OFF,
        "betterPreferences": OFF,
    },
    "brakes": {"settling": "0s"},
}
QUICK: Object = POLICY | {"limits": {"rates": {"cluster": ["1000 per 1h"]}, "perNode": None}}


class Try(NamedTuple):
    """An eviction that the API server was asked for, dry runs too."""

    at: float
    workload: str
    code: int


class Crowd(NamedTuple):
    """Workloads of one pod each, on nodes on which they must not be any more; some cannot be evicted."""

    client: Client
    denied: frozenset[str]
    uids: frozenset[str]
    audit: Path
    began: float

    async def count_moved(self) -> int:
        found = (await self.client.get(f"{PODS}?labelSelector=crowd"))["items"]
        living = {pod["metadata"]["uid"] for pod in found if "deletionTimestamp" not in pod["metadata"]}
        return len(self.uids - living)

    async def wait_until_moved(self, count: int, *, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while await self.count_moved() < count:
                await asyncio.sleep(0.2)

    def tries(self) -> list[Try]:
        calls = audit_log.read_log(self.audit)
        return [
            Try(call.received, call.name.rsplit("-", 2)[0], call.code)
            for call in calls
            if call.resource == "pods/eviction" and call.received >= self.began and call.code
        ]

    def refused(self) -> list[Try]:
        return [one for one in self.tries() if one.code >= 400]

    async def wait_until_refused(self, count: int, *, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while len(self.refused()) < count:
                await asyncio.sleep(0.2)

    async def remembered(self) -> dict[str, list[Object]]:
        """What the histories say of refusals."""
        found = (await self.client.get(HISTORIES))["items"]
        return {
            one["spec"]["workload"]["name"]: one["status"]["refused"]
            for one in found
            if one.get("status", {}).get("refused")
        }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AuditedCluster]:
    audit = tmp_path_factory.mktemp("audit")
    flags = audit_log.write_audit_flags(audit, [RESCHEDULER_ACCOUNT], memory=True)
    async with running(nodes=8, flags=flags) as cluster, cluster.client() as client:
        for folder in ("crds", "extender"):
            await manifests.apply(client, MANIFESTS / folder)
        await install(cluster)
        yield AuditedCluster(cluster, audit)
    refuse_violations(audit)


@asynccontextmanager
async def misplace(ground: AuditedCluster, denied: Sequence[int]) -> AsyncIterator[Crowd]:
    """All workloads stand on two nodes that lose the label which they select."""
    async with ground.cluster.client() as client:
        names = sorted(node["metadata"]["name"] for node in (await client.get("/api/v1/nodes"))["items"])
        await label(client, names, GOOD)
        await cordon(client, names[2:], on=True)
        made = [
            deployment(f"crowd-{number:02}", cpu="100m", labels={"crowd": "yes"}, nodeSelector=GOOD)
            for number in range(WORKLOADS)
        ]
        await client.create_all(DEPLOYMENTS, made)
        found = await client.wait(f"{PODS}?labelSelector=crowd", lambda f: all_ready(f, WORKLOADS))
        await cordon(client, names[2:], on=False)
        await label(client, names[:2], dict.fromkeys(GOOD))
        uids = frozenset(pod["metadata"]["uid"] for pod in found["items"])
        async with denying(client, denied) as kept:
            yield Crowd(client, kept, uids, ground.audit, time.time())
        deleted = {"propagationPolicy": "Foreground"}
        await all_of(client.delete(f"{DEPLOYMENTS}/{one['metadata']['name']}", deleted) for one in made)
        await client.wait(f"{PODS}?labelSelector=crowd", lambda f: not f["items"])


async def label(client: Client, names: list[str], labels: dict[str, Any]) -> None:
    await all_of(client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}}) for name in names)


@asynccontextmanager
async def denying(client: Client, numbers: Sequence[int]) -> AsyncIterator[frozenset[str]]:
    """A policy denies the evictions of these workloads."""
    names = [f"crowd-{number:02}" for number in numbers]
    expression = f"!request.name.matches('^({'|'.join(names)})-')"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule | {"resources": ["pods/eviction"]}]},
        "validations": [{"expression": expression, "message": "this one stays"}],
    }
    binding = {"policyName": "keep", "validationActions": ["Deny"]}
    policies, bindings = (f"{REGISTRATION}/validatingadmissionpolic{each}" for each in ("ies", "ybindings"))
    await client.create(policies, {"metadata": {"name": "keep"}, "spec": spec})
    await client.create(bindings, {"metadata": {"name": "keep"}, "spec": binding})
    try:
        await wait_until_denied(client, names[0])
        yield frozenset(names)
    finally:
        await client.delete(f"{bindings}/keep")
        await client.delete(f"{policies}/keep")


async def wait_until_denied(client: Client, workload: str) -> None:
    """A policy is in force a moment after it was created."""
    (pod,) = (await client.get(f"{PODS}?labelSelector=app={workload}"))["items"]
    meta = {name: pod["metadata"][name] for name in ("name", "namespace")}
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": meta,
        "deleteOptions": {"dryRun": ["All"]},
    }
    with pytest.raises(Refused, match="ValidatingAdmissionPolicy 'keep'"):
        await repeat(client, f"{PODS}/{meta['name']}/eviction?dryRun=All", body)


async def repeat(client: Client, path: str, body: Object) -> None:
    """Ask until it is refused."""
    async with asyncio.timeout(30):
        while True:
            await client.request("POST", path, body)
            await asyncio.sleep(0.2)


@asynccontextmanager
async def three_daemons(cluster: Cluster, folder: Path, policy: Object) -> AsyncIterator[list[Daemon]]:
    async with AsyncExitStack() as stack:
        settings = settings_of(None, cluster)
        yield [
            await stack.enter_async_context(daemon(cluster, folder, settings, policy, number=number))
            for number in range(3)
        ]


async def find_leader(daemons: Sequence[Daemon]) -> Daemon:
    async with asyncio.timeout(30):
        while True:
            for one in daemons:
                if await one.said("reberth_rescheduler_leading") == 1:
                    return one
            await asyncio.sleep(0.1)


async def kill_leader(daemons: list[Daemon]) -> None:
    leader = await find_leader(daemons)
    leader.send(signal.SIGKILL)
    daemons.remove(leader)


def count_fullest(tries: list[Try]) -> int:
    """Count the tries of the fullest minute."""
    times = sorted(one.at for one in tries)
    return max((sum(start <= at < start + MINUTE - 1 for at in times) for start in times), default=0)


def see_pauses(tries: list[Try], workload: str) -> None:
    """The nth pause is at least so many minutes: 1, 2, 4 and so on."""
    times = [one.at for one in tries if one.workload == workload]
    pauses = [(after - before) / MINUTE for before, after in pairwise(times)]
    assert all(pause >= 0.98 * 2**number for number, pause in enumerate(pauses)), pauses


async def test_denied_evictions_keep_no_others_and_are_not_repeated_by_three_leaders(
    ground: AuditedCluster, tmp_path: Path
) -> None:
    async with (
        misplace(ground, range(WORKLOADS - DENIED, WORKLOADS)) as crowd,
        three_daemons(ground.cluster, tmp_path, QUICK) as daemons,
    ):
        # Unknown ones that come after the first two denials wait for a try.
        await crowd.wait_until_moved(MOVED_AT_ONCE, seconds=60)
        await crowd.wait_until_refused(2, seconds=10)
        await see_memory(crowd)
        for _ in range(2):
            await kill_leader(daemons)
            last = await find_leader(daemons)
            await last.until("reberth_rescheduler_cycles_total", lambda count: count >= 3)
        assert MOVED_AT_ONCE <= await crowd.count_moved() <= WORKLOADS - DENIED
        assert len(crowd.refused()) <= 2 * (1 + (time.time() - crowd.began) // (MINUTE - 1))
        assert {one.workload for one in crowd.refused()} <= crowd.denied
        assert count_fullest(crowd.refused()) <= 2
        await see_plan(last, crowd)


async def see_memory(crowd: Crowd) -> None:
    async with asyncio.timeout(5):
        while len(found := await crowd.remembered()) < 2:
            await asyncio.sleep(0.1)
    assert set(found) <= crowd.denied
    for (one,) in found.values():
        assert (one["rule"], one.get("count", 1)) == ("EvictionRefused", 1)
        assert "this one stays" in one["reason"]


async def see_plan(one: Daemon, crowd: Crowd) -> None:
    """A leader that has tried none of them knows which have been refused, until when and by whom."""
    plan = await one.plan()
    assert plan is not None
    rules = {
        refused["pod"].partition("/")[2].rsplit("-", 2)[0]: refused["rule"] for refused in plan["refused"]
    }
    assert rules.keys() >= crowd.denied
    before = [name for name in crowd.denied if rules[name] == "RefusedBefore"]
    assert len(before) >= 2
    assert {rules[name] for name in crowd.denied} <= {"RefusedBefore", "RefusalRate"}
    said = next(each["reason"] for each in plan["refused"] if before[0] in each["pod"])
    assert "EvictionRefused has refused such a move once" in said
    assert "ValidatingAdmissionPolicy 'keep'" in said
    assert await one.said("reberth_rescheduler_waiting_refusals", rule="EvictionRefused") >= 2


@pytest.mark.soak
async def test_denied_evictions_keep_no_others_at_the_default_rate(
    ground: AuditedCluster, tmp_path: Path
) -> None:
    """The denied ones come first in every plan. Five evictions in ten minutes is the rate of the policy."""
    async with (
        misplace(ground, range(DENIED)) as crowd,
        three_daemons(ground.cluster, tmp_path, POLICY) as daemons,
    ):
        await crowd.wait_until_moved(5, seconds=4 * MINUTE)
        await kill_leader(daemons)
        await asyncio.sleep(3 * MINUTE)
        await kill_leader(daemons)
        await crowd.wait_until_moved(10, seconds=9 * MINUTE)
        refused = crowd.refused()
        seconds = time.time() - crowd.began
        shown = sorted((one.workload, round(one.at - crowd.began)) for one in refused)
        print(f"\n10 of {WORKLOADS - DENIED} moved after {seconds:.0f} s; refused: {shown}", flush=True)
        assert {one.workload for one in refused} == crowd.denied
        assert count_fullest(refused) <= 2
        for workload in crowd.denied:
            see_pauses(refused, workload)
