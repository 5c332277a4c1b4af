"""Which pods of other projects are moved, and which are kept by which rule, on a real control plane.

The owners and their rules are those of the table in docs/protections.md. What the rule for StatefulSets says
of single pods is compared with the revision in which the real controller creates them again.
"""

import argparse
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
import yaml

from localcluster.client import Client, all_of
from localcluster.cluster import Cluster
from localcluster.nodes import node
from rescheduler.commands import plan
from tests.live.support.other_project_objects import (
    CANARY,
    FLEET,
    HOME,
    NAMESPACE,
    ROLLOUT,
    SETS_NODE,
    STABLE,
    TARGETS,
    Fleet,
    Rolled,
    add_fleet,
    add_owned_pods,
    define,
    evict,
    read_revision,
    roll_out,
    settle,
    take_down,
)
from tests.support.builders import Object
from tests.support.rescheduler.other_projects import read_other_projects

pytestmark = [
    pytest.mark.live,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.usefixtures("client"),
]

PROJECTS = read_other_projects()
SPARK = [each for each in PROJECTS if each.kind == "Pod"]
FLEETS = (
    Fleet(ROLLOUT, "canary", 1, {**CANARY, "phase": "Paused", "currentStepIndex": 2}),
    Fleet(ROLLOUT, "promoted", 0, STABLE),
    Fleet(ROLLOUT, "leftover", 1, STABLE),
    Fleet(ROLLOUT, "aborted", 1, {**CANARY, "abort": True, "phase": "Degraded"}),
    Fleet(FLEET, "divided", 1, {}),
    Fleet(FLEET, "whole", 0, {}),
)
KEPT_FLEETS = {"canary", "aborted", "divided"}
SETS = (
    Rolled("halted", 2),
    Rolled("raised", 2, 3),
    Rolled("ondelete-pending", deleted=2),
    Rolled("ondelete-done", deleted=4),
)
KEPT_OF_SETS = {"raised-2", *(f"ondelete-pending-{ordinal}" for ordinal in range(4))}
MOVED_WITH: dict[str, list[str]] = {
    name: sorted({value for each in PROJECTS for value in each.settings.get(name, ())})
    for name in ("movableRestartPolicies", "replacingKinds")
}
POLICY: Object = {
    "apiVersion": "reberth.dev/v1alpha1",
    "kind": "ReschedulerPolicy",
    "mode": "apply",
    "policies": {"brokenRules": {"nodeAffinity": {"for": "0s"}}},
    "limits": {"perWorkload": None, "perNode": None, "rates": {"cluster": ["1000 per 1h"]}},
    "brakes": {"settling": "0s"},
}
PROTECTIONS: Object = {"minAge": "0s", "lastReady": False, "namespaces": [NAMESPACE]}


class Judged(NamedTuple):
    """The pods that a plan moves, and the rules that keep the others."""

    moved: set[str]
    kept: dict[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(shared: Cluster) -> AsyncIterator[Client]:
    """All owners with their pods, each on a node that the pods must leave."""
    projects = [*PROJECTS, ROLLOUT, FLEET]
    async with shared.client() as client:
        await client.create("/api/v1/nodes", node(SETS_NODE, labels={HOME: ""}))
        try:
            await define(client, projects)
            await all_of(roll_out(client, each) for each in SETS)
            await all_of(add_owned_pods(client, each, number) for number, each in enumerate(PROJECTS))
            await all_of(add_fleet(client, each) for each in FLEETS)
            pods = 2 * len(PROJECTS) + len(SPARK) + sum(2 + each.new for each in FLEETS) + 4 * len(SETS)
            await settle(client, pods)
            yield client
        finally:
            await take_down(client, projects)


async def judge(shared: Cluster, folder: Path, **protections: Any) -> Judged:
    file = folder / "policy.yaml"
    file.write_text(yaml.safe_dump({**POLICY, "protections": {**PROTECTIONS, **protections}}))
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    arguments = ("--kubeconfig", str(shared.kubeconfig), "--policy", str(file), "-o", "json")
    made = json.loads(await plan.answer(parser.parse_args(arguments)))
    assert {move["destinations"][0]["node"] for move in made["moves"]} <= set(TARGETS)
    kept = {_name(each): each["rule"] for each in made["refused"]}
    return Judged({_name(each) for each in made["moves"]}, kept)


def _name(each: Object) -> str:
    return str(each["pod"]).removeprefix(f"{NAMESPACE}/")


def pods_of(kind: str) -> set[str]:
    return {f"{kind.lower()}-0", f"{kind.lower()}-1"}


async def test_pods_of_other_projects_are_kept_by_the_documented_rule(
    shared: Cluster, tmp_path: Path
) -> None:
    judged = await judge(shared, tmp_path)
    expected = {pod: each.rule for each in PROJECTS for pod in pods_of(each.kind)}
    moved = {pod for pod, rule in expected.items() if not rule}
    assert {pod: judged.kept.get(pod, "") for pod in expected} == expected
    assert judged.moved & expected.keys() == moved


async def test_pods_are_moved_with_the_documented_settings_and_no_others(
    shared: Cluster, tmp_path: Path
) -> None:
    judged = await judge(shared, tmp_path, **MOVED_WITH)
    for each in PROJECTS:
        if each.settings or not each.rule:
            assert pods_of(each.kind) <= judged.moved
        else:
            rules = {judged.kept[pod] for pod in pods_of(each.kind)}
            assert rules <= {"RestartPolicy", "UnknownController"}
            assert not pods_of(each.kind) & judged.moved


async def test_owners_of_replica_sets_are_kept_in_the_middle_of_a_rollout(
    shared: Cluster, tmp_path: Path
) -> None:
    judged = await judge(shared, tmp_path)
    for fleet in FLEETS:
        revisions = [f"old-{number}" for number in range(2)] + [
            f"new-{number}" for number in range(fleet.new)
        ]
        pods = {f"{fleet.name}-{each}" for each in revisions}
        if fleet.name in KEPT_FLEETS:
            assert {pod: judged.kept.get(pod) for pod in pods} == dict.fromkeys(pods, "Rollout")
        else:
            assert pods <= judged.moved, fleet.name


async def test_pods_of_a_stateful_set_are_kept_exactly_if_a_move_would_roll_them_out(
    shared: Cluster, client: Client, tmp_path: Path
) -> None:
    """While a set with OnDelete is being rolled out by hand, all its pods are kept."""
    judged = await judge(shared, tmp_path)
    pods = [f"{each.name}-{ordinal}" for each in SETS for ordinal in range(4)]
    assert {pod for pod in pods if judged.kept.get(pod) == "Rollout"} == KEPT_OF_SETS
    assert set(pods) - KEPT_OF_SETS <= judged.moved
    before = {pod: await read_revision(client, pod) for pod in pods}
    after = {pod: await evict(client, pod) for pod in pods}
    rolled_out = {pod for pod in pods if before[pod] != after[pod]}
    assert rolled_out == {"raised-2", "ondelete-pending-2", "ondelete-pending-3"}
