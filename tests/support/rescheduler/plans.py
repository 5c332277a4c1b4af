"""Make plans of plain objects, and apply a plan to them."""

import argparse
import asyncio
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import NEWEST
from reberth.config.settings import parse
from reberth.forecast.state.profile import KubeScheduler, default_scheduler, parse_scheduler
from reberth.values.timestamp import write_time
from rescheduler.commands import plan as plan_command
from rescheduler.model.plan import Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.planner import plan
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support import builders
from tests.support.repository import ROOT

Object = dict[str, Any]

WITH_EXTENDER = ROOT / "manifests" / "kube-scheduler" / "plain.yaml"
VERSION = NEWEST
NOW = 1_795_003_200.0  # 2026-11-18T12:00:00Z
LONG_AGO = "2026-01-01T00:00:00Z"


def drawing_scheduler() -> KubeScheduler:
    """A scheduler that asks our extender."""
    return parse_scheduler(WITH_EXTENDER.read_bytes(), version=VERSION)


MODEL = SchedulerModel(VERSION, drawing_scheduler())
PLAIN_MODEL = SchedulerModel(VERSION, default_scheduler(VERSION))


def policy(**fields: Any) -> ReschedulerPolicy:
    """A policy as a file would give it, whose moves are made; rates are lifted unless they are named."""
    whole = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ReschedulerPolicy", "mode": "apply", **fields}
    limits = {"rates": {"cluster": []}, **whole.get("limits", {})}
    return parse(yaml.safe_dump(whole | {"limits": limits}).encode(), ReschedulerPolicy)


def make_plan(
    objects: Sequence[Object],
    settings: ReschedulerPolicy | None = None,
    memory: PlanMemory | None = None,
    *,
    now: float = NOW,
    model: SchedulerModel = MODEL,
) -> tuple[Plan, PlanMemory]:
    """The plan of some objects, all of which can be read."""
    reading = load_objects(list(objects), now=now, version=VERSION)
    assert not reading.faults
    return plan(reading.snapshot, settings or policy(), memory, model=model)


def carry_out(objects: Sequence[Object], made: Plan, *, now: float = NOW) -> list[Object]:
    """The objects after every move: its pod has become a new one on the first destination, and Ready."""
    moves = {move.uid: move for move in made.moves}
    return [
        _replace(each, moves[uid].destinations[0].node, now)
        if (uid := _uid(each)) in moves and each["kind"] == "Pod"
        else each
        for each in objects
    ]


def replica(name: str, app: str, node: str, **fields: Any) -> Object:
    """A Ready replica that has been there for long."""
    namespace = fields.get("namespace", "default")
    return builders.pod(
        name,
        node=node,
        created=fields.pop("created", LONG_AGO),
        labels={"app": app, **fields.pop("labels", {})},
        owned_by=builders.owner("ReplicaSet", app, uid=f"uid-{namespace}-{app}"),
        status={"conditions": [{"type": "Ready", "status": "True"}]},
        uid=f"uid-{namespace}-{name}",
        **fields,
    )


def moves_of(made: Plan) -> dict[str, str]:
    """Where each moved pod is to go."""
    return {move.pod: move.destinations[0].node for move in made.moves}


def refusals_of(made: Plan) -> dict[str, str]:
    """Which rule keeps each pod where it is."""
    return {refused.pod: refused.rule for refused in made.refused}


def run_command(*arguments: str | Path) -> str:
    """What the command answers."""
    parser = argparse.ArgumentParser()
    plan_command.add_arguments(parser)
    return asyncio.run(plan_command.answer(parser.parse_args(list(map(str, arguments)))))


def _uid(each: Mapping[str, Any]) -> str:
    uid: str = each["metadata"].get("uid", "")
    return uid


def _replace(pod: Object, node: str, now: float) -> Object:
    moved = copy.deepcopy(pod)
    base, _, number = pod["metadata"]["name"].partition(".")
    following = int(number or 0) + 1
    moved["metadata"] |= {
        "name": f"{base}.{following}",
        "uid": f"{_uid(pod).split('.')[0]}.{following}",
        "creationTimestamp": write_time(now),
    }
    moved["spec"]["nodeName"] = node
    return moved
