"""One turn of one commit: seconds of CPU for reading, for a plan and for answers of the extender, as JSON.

    PYTHONPATH=FILES_OF_THE_COMMIT python -P workload.py INPUTS

It imports the programs alone, and of these only what every compared commit has; what it reads was written
before, so all commits read the same bytes. Time is that of the thread.
"""

import gc
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import extender
import reberth
import rescheduler
from extender.answers.memory import ClusterMemory
from extender.answers.settings import AnswerSettings
from extender.answers.verbs import FILTER, PRIORITIZE, Verb
from reberth.cluster import snapshot
from reberth.cluster.cache import ADDED, Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.snapshot import Snapshot
from reberth.config.settings import parse
from reberth.forecast.state.profile import parse_scheduler
from reberth.memory.addon_scores import ScoreSettings, WeightedScore
from reberth.protocol.response import Reader
from rescheduler.model.plan import Plan
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.planner import plan
from rescheduler.planning.policy_file import ReschedulerPolicy

NOW = 1_795_003_200.0  # 2026-11-18T12:00:00Z
_VERSION = (1, 36)
_PLANS, _ROUNDS = 5, 20
_RESOURCES = {each.name: each for each in ALL_RESOURCES}
_LOAD = ScoreSettings((WeightedScore("load", "cpu", weight=2, least=-10, most=10),))
_SETTINGS = AnswerSettings(scores=_LOAD)


def main() -> None:
    inputs, files = Path(sys.argv[1]), Path(os.environ["PYTHONPATH"])
    if not all(Path(str(each.__file__)).is_relative_to(files) for each in (extender, reberth, rescheduler)):
        sys.exit(f"the programs are not those of {files}")
    found = {**read(inputs / "reading"), **answer(inputs), **make_plans(inputs / "planning")}
    print(json.dumps(found))  # noqa: T201 - its answer


def read(folder: Path) -> dict[str, Any]:
    """Decode pods and nodes into columns, as a mirror does that lists them."""
    cache = Cache(version=_VERSION)
    with without_collections():
        spent = {each.name: _fill(cache, each) for each in sorted(folder.iterdir())}
        taking = _cost(lambda: snapshot.take(cache, now=NOW))
    taken = snapshot.take(cache, now=NOW)
    count = len(taken.pods.rows)
    return {"read_pods": count, "a pod read": spent["pods"] / count, "a snapshot": taking}


def answer(inputs: Path) -> dict[str, Any]:
    """Answer the calls of kube-scheduler, again and again."""
    memory = ClusterMemory(_LOAD, version=_VERSION)
    for each in sorted((inputs / "answers").iterdir()):
        _fill(memory, each)
    bodies = [each.read_bytes() for each in sorted((inputs / "calls").iterdir())]
    found: dict[str, Any] = {}
    with without_collections():
        for verb in (FILTER, PRIORITIZE):
            answers = [verb.decide(memory, verb.read(body), _SETTINGS, NOW).body for body in bodies]
            found[f"{verb.name} answers"] = zlib.crc32(b"".join(answers))
            turn = _turn(memory, verb, bodies)
            found[f"{verb.name} answered"] = median(_cost(turn) for _ in range(_ROUNDS)) / len(bodies)
    return found


def _turn(memory: ClusterMemory, verb: Verb, bodies: Iterable[bytes]) -> Callable[[], object]:
    return lambda: [verb.decide(memory, verb.read(body), _SETTINGS, NOW) for body in bodies]


def make_plans(folder: Path) -> dict[str, Any]:
    """Plan again and again for one snapshot, with each policy alone."""
    cache = Cache(version=_VERSION)
    for each in sorted(folder.iterdir()):
        _fill(cache, each)
    taken = snapshot.take(cache, now=NOW)
    found: dict[str, Any] = {}
    with without_collections():
        for policy in ("underUtilisedNodes", "betterPreferences"):
            costs = [_plan(taken, policy) for _ in range(_PLANS)]
            found[f"a plan of {policy}"] = median(seconds for seconds, _ in costs)
            found[f"{policy} moves"] = len(costs[-1][1].moves)
            found[f"{policy} proposals"] = len(costs[-1][1].moves) + len(costs[-1][1].refused)
    return found


def _plan(taken: Snapshot, policy: str) -> tuple[float, Plan]:
    scheduler = (Path(os.environ["PYTHONPATH"]) / "manifests/kube-scheduler/plain.yaml").read_bytes()
    model = SchedulerModel(_VERSION, parse_scheduler(scheduler, version=_VERSION))
    settings = _settings_of(policy)
    begun = time.thread_time()
    made, _ = plan(taken, settings, None, model=model)
    made.refused.count()
    return time.thread_time() - begun, made


def _settings_of(policy: str) -> ReschedulerPolicy:
    """Return default settings with one policy and without rates: only the limit of a cycle ends a plan."""
    every = ("brokenRules", "betterPreferences", "underUtilisedNodes")
    written = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "ReschedulerPolicy",
        "mode": "apply",
        "policies": {name: {"enabled": name == policy} for name in every},
        "limits": {"rates": {"cluster": []}},
    }
    return parse(json.dumps(written).encode(), ReschedulerPolicy)


def _fill(cache: Any, folder: Path) -> float:  # noqa: ANN401 - the mirror of either program
    """Read the lists of a kind, named by its plural; without the time in which they come from the disk."""
    resource, seconds, version = _RESOURCES[folder.name], 0.0, ""
    reader, listing = Reader(resource.kind.record), cache.relist(resource.kind)
    for file in sorted(folder.iterdir()):
        body = file.read_bytes()
        begun = time.thread_time()
        page = reader.read_page("list", body)
        for each in page.found:
            listing.apply(ADDED, each)
        version = page.resource_version
        seconds += time.thread_time() - begun
    listing.finish(version)
    return seconds


def _cost(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    made = work()
    spent = time.thread_time() - begun
    del made  # to throw a result away is no part of the work
    return spent


@contextmanager
def without_collections() -> Iterator[None]:
    """Let the collector overlook what is there already, as a daemon does after its start."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


if __name__ == "__main__":
    main()
