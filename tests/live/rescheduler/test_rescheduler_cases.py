"""Where other reschedulers evict in vain, again and again: each such case on a real cluster, all at once.

Between evictions and landings stand a real kube-scheduler, the extender and the daemon with its own account.
What the cases are, and what the planner says of them, stands in tests/cases, but for those that are about
no objects. Where each is shown:

    A1  the first plan is right at once        test_the_first_plan_is_the_same_for_every_run_and_caller
    A2 to A8, A10                              test_exactly_the_expected_pods_move_once, and others
    A9  a dry run promises what a budget bars  test_a_budget_that_allows_nothing_is_named_and_not_asked
    A11 a dry run is counted as done           test_recommended_moves_are_not_counted_as_moves
    A12 a signal waits for the cycle's end     test_the_daemon_stops_at_once_on_sigterm;
                                               also test_daemon_storm.py, and bench/daemon
                                               for a plan of 5,000 nodes
"""

import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
import yaml

from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.components import SCHEDULER_FILE
from reberth.values.timestamp import write_time
from tests.live.support.audited import audited
from tests.live.support.case_clusters import Case, bring_up, path_of, read_cases, within
from tests.live.support.daemon_process import HISTORIES, Daemon, command, daemon, ended, install, settings_of
from tests.live.support.extender_process import Extending, extending
from tests.support.builders import Object

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

POLICY: Object = {
    "level": 5,
    "worth": 0,
    "policies": {
        "brokenRules": {"taints": {"for": "0s"}, "nodeAffinity": {"for": "0s"}},
        "underUtilisedNodes": {"hotFor": "0s"},
    },
    "protections": {"minAge": "0s"},
    "limits": {"perWorkload": None, "rates": {"cluster": ["1000 per 1h"]}},
    "brakes": {"settling": "0s"},
}
# Where the pods of each case went, and why others stayed.
MOVED: dict[str, dict[str, str]] = {
    "a10-terminating-pod-marked-for-eviction": {"shop/web-1": "n-2"},
    "a2-preferred-node-full": {},
    "a2-preferred-node-with-room": {"shop/web-1": "ssd-1"},
    "a3-pod-too-large-for-every-target": {},
    "a4-room-for-one-of-four": {"shop/web-1": "ssd-1"},
    "a5-zones-balanced-by-protected-pods": {},
    "a6-anti-affinity-across-namespaces": {"green/web-0": "n-2"},
    "a7-one-toleration-for-two-taints": {"shop/web-1": "n-2"},
    "a8-budget-allows-nothing": {},
}
STAYED = {
    "a2-preferred-node-full": "NoBetterNode",
    "a3-pod-too-large-for-every-target": "NoBetterNode",
    "a4-room-for-one-of-four": "NoFeasibleNode",
    "a8-budget-allows-nothing": "PDB",
}


class Played(NamedTuple):
    """The cases, what was said of them while moves were only recommended, and the daemon that made them."""

    client: Client
    cases: dict[str, Case]
    one: Daemon
    recommended: Object
    asked: list[str]
    counted: float


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def extender() -> AsyncIterator[Extending]:
    async with audited() as cluster, extending(cluster) as extender:
        await extender.schedule()
        await install(cluster)
        yield extender


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(extender: Extending, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Played]:
    """First only recommended, then carried out until nothing moves any more."""
    cluster, cases, folder = extender.cluster, read_cases(), tmp_path_factory.mktemp("cases")
    settings = settings_of(extender, cluster)
    async with cluster.client() as client:
        await bring_up(client, list(cases.values()))
        async with daemon(cluster, folder, settings, {**POLICY, "mode": "recommend"}) as one:
            await one.until("reberth_rescheduler_plan_moves", lambda count: count > 0, mode="recommend")
            recommended, counted = await one.plan(), await one.said("reberth_rescheduler_moves_total")
            assert recommended is not None
            now = write_time(time.time())
            asked = [await ask_for_plan(cluster, folder, now) for _ in range(3)]
            one.follow({**POLICY, "mode": "apply"})
            await one.until("reberth_rescheduler_outcomes_total", lambda count: count > 0)
            await one.quiet()
            yield Played(client, cases, one, recommended, asked, counted)


async def ask_for_plan(cluster: Cluster, folder: Path, now: str) -> str:
    """What the command says of the live cluster."""
    file = folder / "policy.yaml"
    whole = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ReschedulerPolicy", **POLICY, "mode": "apply"}
    file.write_text(yaml.safe_dump(whole))
    configured = str(cluster.design.path(SCHEDULER_FILE))
    told = ("--policy", str(file), "--scheduler-config", configured, "--now", now)
    code, said = await command(cluster, "plan", *told, "-o", "json")
    assert code == 0
    return said


async def list_past(client: Client, case: Case) -> list[tuple[str, Object]]:
    """The moves of a case with the namespaces of their pods; none is open.

    One that was dropped before its eviction moved nothing: where the machine is slow an extender may be late.
    """
    found = (await client.get(HISTORIES))["items"]
    ours = [each for each in found if each["metadata"]["namespace"] in case.namespaces]
    assert not [move for each in ours for move in each["status"].get("open", ())]
    past = [(each["metadata"]["namespace"], move) for each in ours for move in each["status"].get("past", ())]
    return [(namespace, move) for namespace, move in past if move["outcome"] != "Refused"]


@pytest.mark.parametrize("name", MOVED)
async def test_exactly_the_expected_pods_move_once(played: Played, name: str) -> None:
    past = await list_past(played.client, played.cases[name])
    went = {(namespace, move["pod"]): move["landedOn"] for namespace, move in past}
    expected = {tuple(pod.split("/")): node for pod, node in MOVED[name].items()}
    assert len(past) == len(went)
    assert went == {
        (within(name, namespace), pod): within(name, node) for (namespace, pod), node in expected.items()
    }
    assert {move["outcome"] for _, move in past} <= {"Better"}


@pytest.mark.parametrize("name", MOVED)
async def test_no_pod_is_gone_but_those_that_were_moved(played: Played, name: str) -> None:
    case = played.cases[name]
    left: Counter[str] = Counter()
    for namespace in case.namespaces:
        pods = (await played.client.get(path_of("Pod", namespace)))["items"]
        living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        assert all(pod["status"].get("phase") == "Running" for pod in living)
        left.update(f"{namespace}/{pod['metadata']['name']}" for pod in living)
    before = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in case.pods}
    assert len(before - left.keys()) == len(MOVED[name])
    assert left.total() == len(before)


@pytest.mark.parametrize(("name", "rule"), STAYED.items(), ids=STAYED)
async def test_a_pod_that_stays_is_refused_with_its_rule(played: Played, name: str, rule: str) -> None:
    plan = await played.one.plan()
    assert plan is not None
    namespaces = played.cases[name].namespaces
    refused = [each for each in plan["refused"] if each["pod"].partition("/")[0] in namespaces]
    assert rule in {each["rule"] for each in refused}


async def test_a_budget_that_allows_nothing_is_named_and_not_asked(played: Played) -> None:
    """Neither really nor as a dry run: whoever recommends promises nothing either."""
    (namespace,) = played.cases["a8-budget-allows-nothing"].namespaces
    for plan in (played.recommended, await played.one.plan()):
        assert plan is not None
        said = [each for each in plan["refused"] if each["pod"].startswith(namespace)]
        assert len({each["pod"] for each in said}) == 14
        assert any("PDB web allows 0" in each["reason"] for each in said)
        assert not [move for move in plan["moves"] if move["pod"].startswith(namespace)]
    assert await played.one.said("reberth_rescheduler_evictions_total", answer="PDB") == 0


async def test_the_first_plan_is_the_same_for_every_run_and_caller(played: Played) -> None:
    plans: list[Any] = [yaml.safe_load(text) for text in played.asked]
    first, *others = plans
    assert all(other == first for other in others)
    recommended = {(move["pod"], move["destinations"][0]["node"]) for move in played.recommended["moves"]}
    assert {(move["pod"], move["destinations"][0]["node"]) for move in first["moves"]} == recommended
    assert len(recommended) >= sum(map(len, MOVED.values())) - 1


async def test_recommended_moves_are_not_counted_as_moves(played: Played) -> None:
    assert {move["mode"] for move in played.recommended["moves"]} == {"recommend"}
    assert played.counted == 0
    moves = sum(map(len, MOVED.values()))
    assert await played.one.said("reberth_rescheduler_moves_total", result="evicted") == moves
    assert await played.one.said("reberth_rescheduler_returns_total") == 0
    assert await played.one.said("reberth_rescheduler_landings_total", forecast="hit") == moves


async def test_the_daemon_stops_at_once_on_sigterm(played: Played) -> None:
    await played.one.quiet()
    played.one.send(signal.SIGTERM)
    assert await ended(played.one.running) < 2  # a second, and one for a machine that is busy
