"""One move on a real cluster, from its first step to its outcome, and the rules that forbid one."""

import argparse
import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.kwok import PREFIX
from reberth.client.lease import LeaseSettings, leading
from reberth.values.refusal import Refused
from rescheduler.commands import plan
from rescheduler.moves.outcome import MoveReport
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.live.support.fault_client import direct
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import (
    NODES,
    Workload,
    all_ready,
    consistent,
    move,
    policy,
    settings,
    start_command,
    workload,
)
from tests.support.builders import Object, pod

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="session")
async def defined(shared: Cluster) -> AsyncIterator[None]:
    async with definitions(shared):
        yield


@asynccontextmanager
async def cordoned(client: Client, *names: str) -> AsyncIterator[None]:
    for name in names:
        await client.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    yield
    for name in names:
        await client.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


async def test_a_move_goes_through_all_its_steps_to_its_outcome(shared: Cluster, tmp_path: Path) -> None:
    """Nobody draws the replacement here; the source is cordoned, so that it lands elsewhere."""
    async with workload(shared, "walker", budget=1) as walker:
        victim = await walker.pick()
        source, name = victim["spec"]["nodeName"], victim["metadata"]["name"]
        to = [node for node in NODES if node != source][:2]
        async with cordoned(walker.client, source):
            process = await start_command(shared, tmp_path, "move", f"default/{name}", "--to", *to)
            out, _ = await asyncio.wait_for(process.communicate(), 30)
        said = out.decode()
        assert process.returncode == 0, said
        (past,) = (await walker.history())["past"]
        assert (past["from"], past["pod"]) == (source, name)
        assert past["outcome"] in {"Same", "Better"}  # all nodes are alike, and it takes the best
        assert past["landedOn"] in set(NODES) - {source}
        assert past["timeToReady"] >= 0
        assert f"landed on {past['landedOn']}" in said
        assert (await walker.debits())[past["id"]] == "Spent"
        assert (await walker.noted())[past["id"]] == source
        assert await consistent(walker) == 1
        await see_events(walker, name)
        lease = await walker.client.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        (ours,) = [one for one in lease["items"] if one["metadata"]["name"] == "reberth-rescheduler"]
        assert "holderIdentity" not in ours["spec"]


async def see_events(walker: Workload, pod_name: str) -> None:
    found = (await walker.client.get(EVENTS))["items"]
    ours = [event for event in found if event.get("reportingController") == "reberth.dev/rescheduler"]
    about = {
        (event["reason"], event["regarding"]["kind"], event["regarding"]["name"], event["related"]["name"])
        for event in ours
        if walker.name in event["regarding"]["name"]
    }
    assert about == {
        ("MoveEnded", "Deployment", walker.name, pod_name),
    }


async def test_a_pod_that_returns_to_its_source_is_reported_as_returned(shared: Cluster) -> None:
    async with workload(shared, "homer") as homer:
        victim = await homer.pick()
        source = victim["spec"]["nodeName"]
        async with cordoned(homer.client, *(node for node in NODES if node != source)):
            came, _ = await move(shared, victim, [next(node for node in NODES if node != source)])
            assert refused_rule(came) == "NoFeasibleDestination"
        spare = next(node for node in NODES if node != source)
        async with cordoned(homer.client, *(node for node in NODES if node not in (source, spare))):
            await homer.client.patch(f"/api/v1/nodes/{spare}", {"spec": {"taints": [KEEP_OFF]}})
            came, _ = await move(shared, victim, [spare])
            await homer.client.patch(f"/api/v1/nodes/{spare}", {"spec": {"taints": None}})
        assert isinstance(came, MoveReport)
        assert (came.ending.outcome, came.ending.landed_on) == ("Returned", source)
        assert not came.is_well
        assert await consistent(homer) == 1


async def test_a_move_is_not_done_while_its_replacement_is_ready_for_moments_only(shared: Cluster) -> None:
    """A pod in a crash loop is Ready at each start, here for two seconds."""
    marks = {"life": "faithful-crash-loop", "runs-for": "2s", "restarts-every": "500ms"}
    marks = {f"{PREFIX}{key}": value for key, value in marks.items()}
    async with workload(shared, "loops", kind="StatefulSet", replicas=1, annotations=marks) as loops:
        victim = await loops.pick()
        source, path = victim["spec"]["nodeName"], f"{PODS}/{victim['metadata']['name']}"
        spare = next(node for node in NODES if node != source)
        async with cordoned(loops.client, source):
            moving = asyncio.create_task(move(shared, victim, [spare], minReady="3s"))
            replaced = partial(has_restarted, victim["metadata"]["uid"])
            await loops.client.wait(path, replaced)
            assert not moving.done()
            await loops.client.patch(path, {"metadata": {"annotations": {f"{PREFIX}runs-for": "1h"}}})
            came, _ = await asyncio.wait_for(moving, 30)
        assert isinstance(came, MoveReport)
        assert came.is_well
        assert came.ending.landed_on != source


def has_restarted(victim: str, found: Object) -> bool:
    """Whether another pod of this name runs, and has ended before."""
    (container,) = found["status"].get("containerStatuses") or [{"restartCount": 0}]
    return found["metadata"]["uid"] != victim and container["restartCount"] > 0 and container["ready"]


KEEP_OFF = {"key": "example.com/keep-off", "effect": "NoSchedule"}


async def test_each_rule_refuses_by_its_name_and_leaves_nothing(shared: Cluster) -> None:
    async with workload(shared, "fixed", budget=0) as fixed:
        victim = await fixed.pick()
        source = victim["spec"]["nodeName"]
        spare = next(node for node in NODES if node != source)
        client = fixed.client
        made = {
            "BarePod": pod("bare", node=source),
            "MirrorPod": pod("mirror", node=source, annotations={"kubernetes.io/config.mirror": "x"}),
        }
        for built in made.values():
            await client.create(PODS, built)
        for rule, built in made.items():
            came, _ = await move(shared, {"metadata": {**built["metadata"], "namespace": "default"}}, [spare])
            assert refused_rule(came) == rule
        for name in ("bare", "mirror"):
            await client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        assert refused_rule((await move(shared, victim, [spare]))[0]) == "PDB"
        gone = {"metadata": {"namespace": "default", "name": "gone"}}
        assert refused_rule((await move(shared, gone, [spare]))[0]) == "NoSuchPod"
        async with daemon(client, spare) as daemons_pod:
            assert refused_rule((await move(shared, daemons_pod, [source]))[0]) == "DaemonSetPod"
        assert await fixed.history() == {}
        assert await consistent(fixed) == 0


async def test_unsuitable_destinations_are_named(shared: Cluster) -> None:
    async with workload(shared, "picky") as picky:
        victim = await picky.pick()
        source = victim["spec"]["nodeName"]
        away = next(node for node in NODES if node != source)
        async with cordoned(picky.client, away):
            came, _ = await move(shared, victim, [source, away, "nowhere"])
        assert isinstance(came, Refused)
        assert came.reason == (
            f"{source}: the pod is already there; {away}: leaving (unschedulable); nowhere: no such node"
        )
        came, _ = await move(shared, victim, [])
        assert isinstance(came, Refused)
        assert "--to" in came.reason


async def test_a_pod_on_its_way_out_is_left_alone(shared: Cluster) -> None:
    async with workload(shared, "leaver") as leaver:
        victim = await leaver.pick()
        path = f"{PODS}/{victim['metadata']['name']}"
        await leaver.client.patch(path, {"metadata": {"finalizers": ["example.com/wait"]}})
        await leaver.client.delete(path, {"gracePeriodSeconds": 0})
        assert refused_rule((await move(shared, victim, NODES[:2]))[0]) == "Terminating"
        await leaver.client.patch(path, {"metadata": {"finalizers": None}})
        assert await leaver.history() == {}


async def test_the_refusal_names_the_leader(shared: Cluster) -> None:
    lease = settings().lease
    async with workload(shared, "quiet") as quiet, direct(shared) as api:
        victim = await quiet.pick()
        async with leading(api, lease, identity="the-daemon_1"):
            came, _ = await move(shared, victim, NODES[:2])
        assert isinstance(came, Refused)
        assert (came.rule, "the-daemon_1" in came.reason) == ("LeaseHeld", True)
        assert isinstance(lease, LeaseSettings)
        assert await consistent(quiet) == 0


async def test_notes_are_listed_and_cleared_and_those_of_others_stay(shared: Cluster, tmp_path: Path) -> None:
    async with workload(shared, "noter") as noter:
        victim = await noter.pick()
        source = victim["spec"]["nodeName"]
        came, _ = await move(shared, victim, [node for node in NODES if node != source][:2])
        assert isinstance(came, MoveReport)
        listed = await answer_of(shared, tmp_path, "notes", "list")
        (line,) = [line for line in listed.splitlines() if came.move in line]
        assert line.startswith(source)
        assert line.endswith("manual  requested by hand")
        cleared = await answer_of(shared, tmp_path, "notes", "clear", "--all")
        assert f"{source}: notes removed: 1" in cleared
        assert await noter.noted() == {}


def refused_rule(came: MoveReport | Refused) -> str:
    assert isinstance(came, Refused), came
    return came.rule


@asynccontextmanager
async def daemon(client: Client, node: str) -> AsyncIterator[Object]:
    """A DaemonSet with its pod on one node."""
    labels = {"app": "daemon"}
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "containers": [{"name": "main", "image": "img"}],
    }
    built = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "daemon", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    path = "/apis/apps/v1/namespaces/default/daemonsets"
    await client.create(path, built)
    found = await client.wait(f"{PODS}?labelSelector=app%3Ddaemon", lambda found: found["items"])
    yield found["items"][0]
    await client.delete(f"{path}/daemon")


async def answer_of(cluster: Cluster, folder: Path, *arguments: str) -> str:
    process = await start_command(cluster, folder, *arguments)
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, out.decode()
    return out.decode()


async def test_a_rate_in_percent_is_kept_by_moves_and_told_by_the_plan(
    shared: Cluster, tmp_path: Path
) -> None:
    """Of five pods 40% are two; every move is made by a process that reads the cluster anew."""
    limits = {"perWorkload": "50%", "rates": {"cluster": [], "workload": ["40% per 1h"]}}
    file = tmp_path / "policy.yaml"
    head = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ReschedulerPolicy"}
    file.write_text(yaml.safe_dump({**head, "limits": limits}))
    async with workload(shared, "sharer", replicas=5) as sharer:
        for evicted in (1, 2):
            came = await move_away(shared, sharer, asked=policy(limits=limits))
            assert isinstance(came, MoveReport)
            assert came.refused is None
            assert await consistent(sharer) == evicted
        came = await move_away(shared, sharer, asked=policy(limits=limits))
        assert isinstance(came, MoveReport)
        assert came.refused
        assert came.refused.rule == "WorkloadRate"
        assert came.refused.reason == "no more than 40% per 3600s (2 of 5 pods)"
        assert await sharer.lost() == 2
        name = (await sharer.pick())["metadata"]["name"]
        told = await explain(shared, name, "--policy", str(file))
    assert "rates.workload 40% per 3600s (2 of 5 pods)" in told


async def move_away(shared: Cluster, moved: Workload, *, asked: ReschedulerPolicy) -> MoveReport | Refused:
    """Move one of the first pods, and wait until all are Ready again."""
    victim = next(pod for pod in await moved.pods() if pod["metadata"]["uid"] in moved.uids)
    to = [node for node in NODES if node != victim["spec"]["nodeName"]][:2]
    came, _ = await move(shared, victim, to, asked=asked)
    found = f"{PODS}?labelSelector=app%3D{moved.name}"
    await moved.client.wait(found, lambda f: all_ready(f, len(moved.uids)))
    return came


async def explain(shared: Cluster, pod_name: str, *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    given = ["--kubeconfig", str(shared.kubeconfig), "--why", pod_name, *arguments]
    return await plan.answer(parser.parse_args(given))
