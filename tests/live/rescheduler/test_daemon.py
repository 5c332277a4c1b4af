"""The daemon on a real cluster, with a real scheduler and the extender behind it."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from localcluster.cluster import Cluster
from localcluster.components import SCHEDULER_FILE
from localcluster.host import processes
from localproduct.processes import asking_here
from reberth.cluster.kinds import HISTORIES
from reberth.cluster.pods.identity import name_history
from reberth.records import WorkloadIdentity
from reberth.values.timestamp import parse_time, write_time
from tests.live.support.audited import audited
from tests.live.support.daemon_process import (
    DEPLOYMENTS,
    EAGER,
    FIRST_PORT,
    LEASE,
    LEASE_SECONDS,
    PODS,
    Crowd,
    Daemon,
    command,
    cordon,
    daemon,
    ended,
    imbalance,
    install,
    settings_of,
)
from tests.live.support.extender_process import MANIFESTS, Extending, extending
from tests.live.support.karpenter_kinds import POOL, pooled
from tests.live.support.memory_objects import keep
from tests.live.support.wrong_clocks import ahead, extenders_ahead
from tests.support.builders import Object, deployment

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]
EVENTS = "/apis/events.k8s.io/v1/namespaces"
NODES = "/api/v1/nodes"
LEADING = "reberth_rescheduler_leading"
CYCLES = "reberth_rescheduler_cycles_total"
BRAKE_ON = "reberth_rescheduler_brake_on"
AGENT_NOT_READY = {"key": "node.cilium.io/agent-not-ready", "effect": "NoSchedule"}
TAINT_SECONDS = 6
DAY = 86_400.0
SLOW = {"requestsPerSecond": 40, "burst": 10}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster() -> AsyncIterator[Cluster]:
    async with audited(nodes=14) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def extender(cluster: Cluster) -> AsyncIterator[Extending]:
    async with extending(cluster, replicas=2) as extender:
        await extender.schedule()
        await install(cluster)
        yield extender


async def test_a_plan_is_only_shown_until_mode_apply_and_then_the_cluster_converges(
    extender: Extending, tmp_path: Path
) -> None:
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    async with (
        imbalance(cluster) as crowd,
        daemon(cluster, tmp_path, settings, {**EAGER, "mode": "off"}) as one,
    ):
        await see_cycles(one, 2)
        await see_nothing_planned(one)
        one.follow({**EAGER, "mode": "recommend"})
        await one.until("reberth_rescheduler_plan_moves", lambda count: count > 3, mode="recommend")
        await see_cycles(one, 2)
        assert await one.said("reberth_rescheduler_plan_moves", mode="recommend") > 3
        assert await crowd.lost() == 0
        assert await crowd.past() == await crowd.opened() == []
        one.spoil()
        await one.until("reberth_settings_valid", lambda valid: valid == 0, kind="ReschedulerPolicy")
        assert await one.said("reberth_settings_valid", kind="ReschedulerSettings") == 1
        assert "policy.yaml: level (line 3)" in await one.remarks("refused, the last valid version stays")
        await see_cycles(one, 1)
        assert await crowd.lost() == 0
        one.follow(EAGER)
        await one.until("reberth_settings_valid", lambda valid: valid == 1, kind="ReschedulerPolicy")
        assert "refused" not in (await one.ask("/readyz"))[1]
        await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)
        await one.quiet()
        await see_convergence(one, crowd)
        await see_refused_settings(crowd)
        one.send(signal.SIGTERM)
        assert await ended(one.running) < 2  # a second, and one for a machine that is busy
        lease = await crowd.client.get(LEASE)
        assert "holderIdentity" not in lease["spec"]


async def see_nothing_planned(one: Daemon) -> None:
    """Off, it watches and serves, and says that this is all."""
    plan = await one.plan()
    assert plan is not None
    assert plan["moves"] == plan["refused"] == []
    assert "warning: Off: the mode of the policy file is off" in await one.remarks("Off")
    assert await one.said("reberth_rescheduler_mode", mode="off") == 3
    assert await one.said("reberth_rescheduler_mode") == 3
    assert '"stopped_by": "Off"' in one.log


async def see_convergence(one: Daemon, crowd: Crowd) -> None:
    await see_landings(one, crowd)
    assert max((await crowd.spread()).values()) <= 8  # they were 14
    assert one.log.count('"move ended"') == await one.said("reberth_rescheduler_moves_total")


async def see_landings(one: Daemon, crowd: Crowd) -> list[Object]:
    """Every move was made once, landed as forecast, and none came back."""
    past = [move for move in await crowd.past() if move["outcome"] != "Refused"]
    assert len(past) > 3
    assert await crowd.lost() == len(past) == len({move["podUID"] for move in past})
    assert not [move for move in past if move["landedOn"] == move["from"]]
    assert all(move["asForecast"] and move["controllerUID"] for move in past)
    assert await one.said("reberth_rescheduler_landings_total", forecast="hit") == len(past)
    assert await one.said("reberth_rescheduler_landings_total", forecast="miss") == 0
    assert await one.said("reberth_rescheduler_returns_total") == 0
    return past


async def see_refused_settings(crowd: Crowd) -> None:
    """The refusal of the file is told as an Event of the lease."""
    found = await crowd.client.get(f"{EVENTS}/reberth-system/events")
    (said,) = [event for event in found["items"] if event["reason"] == "SettingsRefused"]
    assert said["regarding"]["kind"] == "Lease"
    assert "level" in said["note"]


async def test_the_pause_annotation_of_the_lease_pauses_and_resumes_moves(
    extender: Extending, tmp_path: Path
) -> None:
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    async with (
        imbalance(cluster) as crowd,
        daemon(cluster, tmp_path, settings, {**EAGER, "mode": "recommend"}) as one,
    ):
        await one.until(LEADING, lambda leading: leading == 1)
        await pause(crowd, "true")
        await one.until("reberth_rescheduler_paused", lambda paused: paused == 1)
        one.follow(EAGER)
        await one.until("reberth_rescheduler_plan_moves", lambda count: count > 0, mode="apply")
        await see_cycles(one, 2)
        assert "Paused" in await one.remarks("Paused")
        await see_that_nobody_moves_beside_it(one, crowd)
        assert await crowd.lost() == 0
        await pause(crowd, None)
        await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)


async def see_that_nobody_moves_beside_it(one: Daemon, crowd: Crowd) -> None:
    """Also what a person asks for by hand is refused while all is paused."""
    pod = min(pod["metadata"]["name"] for pod in await crowd.pods())
    assert await move(one, pod) == (
        1,
        "refused: Paused: the lease's annotation reberth.dev/paused pauses all moves\n",
    )


async def pause(crowd: Crowd, word: str | None) -> None:
    await crowd.client.patch(LEASE, {"metadata": {"annotations": {"reberth.dev/paused": word}}})


async def test_a_move_that_a_person_asks_for_is_made_by_the_daemon_that_leads(
    extender: Extending, tmp_path: Path
) -> None:
    """Neither `recommend` nor `off` stops it: nobody has planned it."""
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    async with imbalance(cluster) as crowd, daemon(cluster, tmp_path, settings, IDLE) as one:
        await one.until(LEADING, lambda leading: leading == 1)
        holder = (await crowd.client.get(LEASE))["spec"]["holderIdentity"]
        first, *_, last = sorted(await crowd.pods(), key=lambda pod: str(pod["metadata"]["name"]))
        to = max(node["metadata"]["name"] for node in (await crowd.client.get("/api/v1/nodes"))["items"])
        await see_it_refused(one, first)
        await see_it_made(one, crowd, first, to, holder)
        one.follow({**EAGER, "mode": "off"})
        await one.until("reberth_rescheduler_mode", lambda count: count == 3, mode="off")
        await see_it_made(one, crowd, last, to, holder)
        assert await crowd.lost() == 2
        assert await one.said("reberth_rescheduler_moves_total", policy="manual", result="evicted") == 2
        answered = (await crowd.client.get(LEASE))["metadata"]["annotations"]
        assert "reberth.dev/move-request" not in answered


async def see_it_refused(one: Daemon, pod: Object) -> None:
    """The rule and the reason are those that the command has where it leads itself."""
    node = pod["spec"]["nodeName"]
    code, said = await move(one, pod["metadata"]["name"], "--to", node)
    assert (code, said) == (1, f"refused: NoFeasibleDestination: {node}: the pod is already there\n")


async def see_it_made(one: Daemon, crowd: Crowd, pod: Object, to: str, holder: str) -> None:
    """It lands where it shall, and the terminal shows how it goes."""
    code, said = await move(one, pod["metadata"]["name"], "--to", to, "--reason", "by hand")
    (past,) = [one for one in await crowd.past() if one["podUID"] == pod["metadata"]["uid"]]
    assert (past["landedOn"], past["policy"], past["reason"]) == (to, "manual", "by hand")
    lines = [line.partition("  ")[2] for line in said.splitlines()]
    assert lines[0] == f"requested from {holder}"
    assert lines[-1].startswith(f"{past['id']}: {past['outcome']}, landed on {to}, Ready after")
    assert lines[1].startswith(f"{past['id']}: {past['pod']} off {past['from']}")
    assert code == 0


async def move(one: Daemon, pod: str, *arguments: str) -> tuple[int | None, str]:
    return await command(one.cluster, "move", f"default/{pod}", *arguments, "--settings", str(one.settings))


async def test_moves_wait_while_extenders_are_unreachable_and_resume_afterwards(
    extender: Extending, tmp_path: Path
) -> None:
    cluster, probes = extender.cluster, extender.cluster.spare_port(FIRST_PORT + 1)
    settings = settings_of(extender, cluster, probes={"port": probes})
    async with imbalance(cluster) as crowd, daemon(cluster, tmp_path, settings, IDLE) as one:
        await one.until("reberth_rescheduler_plan_moves", lambda count: count > 0, mode="recommend")
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 200), ("/plan", 404)):
            assert (await one.ask(path, port=probes))[0] == status
        await processes.kill(*(replica.process for replica in extender.replicas))
        await one.until(BRAKE_ON, lambda on: on == 1, rule="ExtendersUnreachable")
        one.follow(EAGER)
        await one.until("reberth_rescheduler_mode", lambda count: count == 3, mode="apply")
        await see_cycles(one, 2)
        await see_the_brake(one)
        assert await crowd.lost() == 0
        assert await crowd.past() == await crowd.opened() == []
        for replica in extender.replicas:
            replica.start(dies_with_parent=True)
        await one.until(BRAKE_ON, lambda on: on == 0, rule="ExtendersUnreachable")
        await one.until("reberth_rescheduler_outcomes_total", lambda count: count > 0, outcome="Better")
        await one.quiet()


async def see_the_brake(one: Daemon) -> None:
    """It is named wherever somebody looks, and no move was begun to be dropped."""
    plan = await one.plan()
    assert plan is not None
    assert not plan["moves"]
    assert {refused["rule"] for refused in plan["refused"]} == {"ExtendersUnreachable"}
    said = "ExtendersUnreachable: no extender can be reached"
    assert plan["warnings"].count(said) == 1
    assert (await one.remarks(said)).count(said) == 1
    assert '"extenders unreachable"' in one.log
    assert await one.said("reberth_rescheduler_moves_refused_total") == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_new_leader_finishes_moves_of_the_old_one_and_repeats_none(
    extender: Extending, tmp_path: Path, how: signal.Signals
) -> None:
    cluster = extender.cluster
    settings = settings_of(extender, cluster, api=SLOW)
    async with (
        imbalance(cluster) as crowd,
        daemon(cluster, tmp_path, settings, EAGER) as first,
        daemon(cluster, tmp_path, settings_of(extender, cluster), EAGER, number=1) as second,
    ):
        leader, heir = await see_leader(first, second)
        await leader.until("reberth_rescheduler_moves_in_flight", lambda count: count > 0)
        await crowd.evicting()
        leader.send(how)
        killed = time.monotonic()
        await heir.until(LEADING, lambda leading: leading == 1)
        assert time.monotonic() - killed < LEASE_SECONDS + 2 + 10  # ten for a machine that stands still
        leader.send(signal.SIGCONT)  # the frozen one wakes up in the middle of what it was doing
        await heir.quiet()
        if how == signal.SIGSTOP:
            await leader.remarks("standby")
        past = await crowd.past()
        evicted = [move for move in past if "evictedAt" in move]
        assert await crowd.lost() == len(evicted) == len({move["podUID"] for move in evicted})
        assert await crowd.opened() == []
        await crowd.spent()


async def see_leader(*daemons: Daemon) -> list[Daemon]:
    """Give the daemons, the one that leads first."""
    while True:
        for one in daemons:
            if await one.said(LEADING):
                return sorted(daemons, key=lambda each: each is not one)


@pytest.mark.parametrize(
    ("rescheduler", "extenders"),
    [
        (3600.0, (5.0, -5.0)),
        (-5.0, (3600.0, 5.0)),
        (0.0, (DAY, -3600.0)),
        pytest.param(5.0, (-5.0, 3600.0), marks=pytest.mark.soak),
        pytest.param(DAY, (-3600.0, DAY), marks=pytest.mark.soak),
        pytest.param(-3600.0, (DAY, 0.0), marks=pytest.mark.soak),
    ],
)
async def test_with_wrong_clocks_moves_end_as_with_right_ones(
    extender: Extending, tmp_path: Path, rescheduler: float, extenders: tuple[float, float]
) -> None:
    """Each replacement is found, drawn to its destination and Ready at once; all times are true."""
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    async with (
        extenders_ahead(extender, extenders),
        imbalance(cluster, workloads=10) as crowd,
        daemon(cluster, tmp_path, settings, EAGER, env=ahead(rescheduler)) as one,
    ):
        began = time.time()
        await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)
        await one.quiet(cycles=1)
        ended = time.time()
        past = await see_landings(one, crowd)
        assert {move["outcome"] for move in past} == {"Better"}
        assert max(move["timeToReady"] for move in past) < ended - began
        times = [parse_time(move[key]) for move in past for key in ("evictedAt", "closedAt")]
        assert began - 1 < min(times) < max(times) < ended + 1
        offset = await one.said("reberth_rescheduler_clock_offset_seconds")
        offsets = [await offset_of(extender, number) for number in range(2)]
        assert [offset, *offsets] == pytest.approx([-rescheduler, *(-each for each in extenders)], abs=1)


async def offset_of(extender: Extending, number: int) -> float:
    _, text = await extender.ask("/metrics", replica=number)
    (line,) = [line for line in text.splitlines() if line.startswith("reberth_extender_clock_offset_seconds")]
    return float(line.split()[1])


async def test_a_taint_that_passes_from_node_to_node_moves_no_pod_and_one_that_stays_does(
    extender: Extending, tmp_path: Path
) -> None:
    """As the agents of a DaemonSet taint their nodes during its rolling restart."""
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    only_rules: Object = {
        "brokenRules": {"taints": {"for": f"{TAINT_SECONDS}s"}},
        "underUtilisedNodes": {"mode": "off"},
    }
    async with (
        imbalance(cluster, workloads=4, nodes=4) as crowd,
        daemon(cluster, tmp_path, settings, {**EAGER, "policies": only_rules}) as one,
    ):
        await see_cycles(one, 1)
        names = sorted(await crowd.spread())
        nodes = [*names, names[0]]
        began = time.monotonic()
        for name in nodes:
            async with tainted(crowd, name):
                await asyncio.sleep(TAINT_SECONDS / 3)
        assert time.monotonic() - began > TAINT_SECONDS
        assert await crowd.lost() == 0
        began = time.monotonic()
        async with tainted(crowd, nodes[1]):
            await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)
            assert time.monotonic() - began > TAINT_SECONDS
            await one.quiet()
        past = await crowd.past()
        assert {(move["from"], move["outcome"]) for move in past} == {(nodes[1], "Better")}
        assert nodes[1] not in await crowd.spread()
        assert await crowd.lost() == len(past)


async def test_beside_karpenter_its_budgets_are_kept_and_nodes_that_it_would_remove_are_not_filled(
    extender: Extending, tmp_path: Path
) -> None:
    """All nodes are of one pool. Karpenter would remove all empty ones but two."""
    cluster = extender.cluster
    # A kind that was installed a moment ago may be missed at first.
    settings = settings_of(extender, cluster, watch={"longestAbsencePause": 1})
    async with imbalance(cluster) as crowd:
        nodes = sorted(node["metadata"]["name"] for node in (await crowd.client.get(NODES))["items"])
        hot = sorted(await crowd.spread())
        staying = sorted(set(nodes) - set(hot))[:2]
        going = sorted(set(nodes) - set(hot) - set(staying))
        dear = {**EAGER, "prices": {**EAGER["prices"], "node": 10_000}}
        async with (
            pooled(crowd.client, nodes, consolidatable=going),
            daemon(cluster, tmp_path, settings, dear) as one,
        ):
            await one.until(BRAKE_ON, lambda is_on: is_on == 1, rule="NodePoolBudget")
            await one.until("reberth_watch_objects", lambda count: count == len(nodes), resource="nodeclaims")
            await see_cycles(one, 2)
            assert "budget of NodePool default" in await one.remarks("NodePoolBudget")
            assert await crowd.lost() == 0
            await crowd.client.patch(POOL, {"spec": {"disruption": {"budgets": [{"nodes": "10%"}]}}})
            await one.until("reberth_rescheduler_moves_total", lambda count: count > 3)
            await one.quiet()
            assert await one.said("reberth_rescheduler_landings_total", forecast="miss") == 0
            past = await crowd.past()
            assert {move["landedOn"] for move in past if move["outcome"] != "Refused"} == set(staying)
            assert set(await crowd.spread()) == {*hot, *staying}
            plan = await one.plan()
            assert plan is not None
            assert "NotWorthIt" in {each["rule"] for each in plan["refused"]}


@asynccontextmanager
async def tainted(crowd: Crowd, name: str) -> AsyncIterator[None]:
    await crowd.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [AGENT_NOT_READY]}})
    try:
        yield
    finally:
        await crowd.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})


async def test_a_pending_replacement_holds_its_own_workload_while_others_move(
    extender: Extending, tmp_path: Path
) -> None:
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    policy: Object = {**EAGER, "brakes": {"settling": "0s", "pendingReplacement": "1s"}}
    async with imbalance(cluster) as crowd:
        node = min(await crowd.spread())
        async with stuck(crowd, node) as pods, daemon(cluster, tmp_path, settings, policy) as one:
            await one.until("reberth_rescheduler_outcomes_total", lambda count: count > 3, outcome="Better")
            await one.quiet()
            assert await one.said(BRAKE_ON, rule="PendingReplacement") == 0
            plan = await one.plan()
            assert plan is not None
            (said,) = [each for each in plan["warnings"] if "PendingReplacement" in each]
            assert said.startswith("PendingReplacement, for its workload only: default/stuck-")
            _, why = await one.ask(f"/why?pod=default/{pods['bound']['metadata']['name']}")
            assert "PendingReplacement" in why
            left = await crowd.client.get(f"{PODS}?labelSelector=app%3Dstuck")
            assert {pod["metadata"]["uid"] for pod in left["items"]} == {
                pod["metadata"]["uid"] for pod in pods.values()
            }


@asynccontextmanager
async def stuck(crowd: Crowd, node: str) -> AsyncIterator[dict[str, Object]]:
    """A workload of which one pod is on the node, and one fits nowhere: by its history, a replacement."""
    made = deployment("stuck", replicas=2, cpu="100m")
    alone = {"labelSelector": {"matchLabels": {"app": "stuck"}}, "topologyKey": "kubernetes.io/os"}
    made["spec"]["template"]["spec"] |= {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}},
    }
    owner = await crowd.client.create(DEPLOYMENTS, made)
    try:
        found = await crowd.client.wait(f"{PODS}?labelSelector=app%3Dstuck", is_half_bound)
        pods = {"bound" if "nodeName" in pod["spec"] else "pending": pod for pod in found["items"]}
        await keep(crowd.client, HISTORIES, pending_move(owner, pods["pending"]))
        yield pods
    finally:
        await crowd.client.delete(f"{DEPLOYMENTS}/stuck", {"propagationPolicy": "Foreground"})
        await crowd.client.wait(f"{PODS}?labelSelector=app%3Dstuck", lambda found: not found["items"])


def is_half_bound(found: Object) -> bool:
    pods = found["items"]
    return len(pods) == 2 and sum(pod["status"]["phase"] == "Running" for pod in pods) == 1


def pending_move(owner: Object, pod: Object) -> Object:
    """The history of a move whose replacement was pending to its end."""
    workload = WorkloadIdentity("apps/v1", "Deployment", "stuck", owner["metadata"]["uid"])
    born = parse_time(pod["metadata"]["creationTimestamp"])
    past = {
        "id": "m-stuck",
        "pod": "stuck-before",
        "podUID": "before",
        "from": "node-00000",
        "replacementUID": pod["metadata"]["uid"],
        "outcome": "Pending",
        "evictedAt": write_time(born - 1),
        "closedAt": write_time(born),
    }
    identity = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "stuck", "uid": workload.uid}
    return {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "EvictionHistory",
        "metadata": {"name": name_history(workload), "namespace": "default"},
        "spec": {"workload": identity},
        "status": {"past": [past]},
    }


async def test_the_next_leader_sends_no_pod_back_to_where_it_came_from(
    extender: Extending, tmp_path: Path
) -> None:
    """All that the first one knew is gone with it, but for the histories."""
    cluster, settings = extender.cluster, settings_of(extender, extender.cluster)
    rules: Object = {"brokenRules": {"taints": {"for": "0s"}}, "underUtilisedNodes": {"mode": "off"}}
    policy = {**EAGER, "policies": rules, "rest": {"least": "0s", "longest": "0s"}}
    async with imbalance(cluster, workloads=4, nodes=4) as crowd:
        first, *_ = sorted(await crowd.spread())
        async with daemon(cluster, tmp_path, settings, policy) as one, tainted(crowd, first):
            await one.until("reberth_rescheduler_moves_total", lambda count: count > 0)
            await one.quiet()
        past = await crowd.past()
        assert {move["from"] for move in past} == {first}
        landed = {move["landedOn"] for move in past}
        code, _ = await command(cluster, "notes", "clear", "--all")
        assert code == 0  # they are long expired when the two days of the history are over
        nodes = (await crowd.client.get("/api/v1/nodes"))["items"]
        closed = [
            node["metadata"]["name"] for node in nodes if node["metadata"]["name"] not in {first, *landed}
        ]
        async with AsyncExitStack() as stack:
            await cordon(crowd.client, closed, on=True)
            stack.push_async_callback(partial(cordon, crowd.client, closed, on=False))
            for node in sorted(landed):
                await stack.enter_async_context(tainted(crowd, node))
            shown = {**policy, "mode": "recommend"}
            heir = await stack.enter_async_context(daemon(cluster, tmp_path, settings, shown, number=1))
            await see_cycles(heir, 2)
            plan = await heir.plan()
        histories = (await crowd.client.get(HISTORIES.path()))["items"]
        moved = tuple(f"default/{each['spec']['workload']['name']}-" for each in histories)
        assert plan is not None
        assert not [move for move in plan["moves"] if move["pod"].startswith(moved)]
        found = [each["rule"] for each in plan["refused"] if each["pod"].startswith(moved)]
        assert len(found) >= len(past)
        assert set(found) == {"Undoes"}


async def test_a_scheduler_that_is_configured_otherwise_is_found_out_and_stops_all_moves(
    extender: Extending, tmp_path: Path
) -> None:
    cluster = extender.cluster
    told = tmp_path / "told.yaml"
    told.write_text(cluster.design.path(SCHEDULER_FILE).read_text())
    settings = settings_of(
        extender,
        cluster,
        scheduler={"configuration": str(told)},
        drift={"fewest": 8, "last": 12, "perMinute": 10_000},
    )
    async with imbalance(cluster) as crowd, daemon(cluster, tmp_path, settings, IDLE) as one:
        await one.until(LEADING, lambda leading: leading == 1)
        await extender.cluster.schedule_with(packing(extender))
        await add_pods(crowd, "packed")
        await one.until("reberth_rescheduler_brake_on", lambda on: on == 1, rule="SchedulerDrift")
        await one.remarks("your scheduler configuration file does not match")
        one.follow(EAGER)
        await see_cycles(one, 2)
        assert await crowd.lost() == 0
        one.follow(IDLE)
        await see_the_settings_named(one, settings)
        await see_the_file_followed(one, told, cluster.design.path(SCHEDULER_FILE).read_text())
        await add_pods(crowd, "more")
        assert await one.said("reberth_rescheduler_scheduler_agreement_ratio") > 0.6
        await one.until(BRAKE_ON, lambda on: on == 0, rule="SchedulerDrift")
        await extender.schedule()
        for name in ("packed", "more"):
            await crowd.client.delete(f"{DEPLOYMENTS}/{name}", {"propagationPolicy": "Foreground"})


async def see_the_settings_named(one: Daemon, settings: Object) -> None:
    """A change that is used only after a restart is named."""
    one.set({**settings, "log": {"style": "json", "level": "debug"}})
    await one.remarks(f"restart needed for changed fields of {one.settings}: log")
    assert await one.said("reberth_settings_awaiting_restart", kind="ReschedulerSettings") == 1
    one.set(settings)
    await one.until("reberth_settings_awaiting_restart", lambda fields: fields == 0)


async def see_the_file_followed(one: Daemon, told: Path, running: str) -> None:
    """An invalid file is named, beside the drift too; the file of the running scheduler ends the drift."""
    told.write_text(running.replace("kind: KubeScheduler", "parallelism: few\nkind: KubeScheduler"))
    await one.until("reberth_settings_valid", lambda valid: valid == 0, kind="KubeSchedulerConfiguration")
    refused = f"refused, the last valid version stays in force: {told}: parallelism (line "
    assert (await one.remarks(f"; {refused}")).count(refused) > 1
    assert await one.said(BRAKE_ON, rule="SchedulerDrift") == 1
    told.write_text(running)
    await one.until(BRAKE_ON, lambda on: on == 0, rule="SchedulerDrift")
    assert "refused" not in (await one.ask("/readyz"))[1]


IDLE = {**EAGER, "mode": "recommend"}


def packing(extender: Extending) -> dict[str, object]:
    """Our extenders, and a scheduler that fills one node after the other."""
    content = asking_here(MANIFESTS / "kube-scheduler" / "plain.yaml", extender.url)
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    weights = [{"name": "NodeResourcesFit", "weight": 10}]
    return {
        **content,
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"score": {"enabled": weights, "disabled": [{"name": "NodeResourcesFit"}]}},
                "pluginConfig": [fit],
            }
        ],
    }


async def add_pods(crowd: Crowd, name: str, count: int = 14) -> None:
    """Pods that come one after the other, so that each is forecast on what the last has left."""
    await crowd.client.create(DEPLOYMENTS, deployment(name, replicas=0, cpu="200m"))
    for number in range(1, count + 1):
        await crowd.client.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": number}})
        await crowd.client.wait(
            f"{PODS}?labelSelector=app%3D{name}",
            partial(are_bound, number),
        )


def are_bound(count: int, found: Object) -> bool:
    return sum("nodeName" in pod["spec"] for pod in found["items"]) == count


async def see_cycles(one: Daemon, more: int) -> None:
    """Wait for so many more cycles."""
    seen = await one.said(CYCLES)
    await one.until(CYCLES, lambda count: count >= seen + more)
