"""What one plan costs in a fleet of some size, in seconds of CPU and bytes.

    python -m bench.planning.planning NODES ARM

Everything is planned on a snapshot that was taken before, as a daemon plans cycle after cycle.
"""

import argparse
import gc
import json
import time
from pathlib import Path
from statistics import median

from bench.planning.fleet import VERSION, Fleet
from bench.reading.processes import peak, resident
from reberth.cluster.snapshot import Snapshot
from reberth.config.settings import parse
from reberth.forecast.state.profile import parse_scheduler
from rescheduler.model.plan import Plan
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.planner import plan
from rescheduler.planning.policy_file import ReschedulerPolicy

_PLANS = 5
_SCHEDULER = Path(__file__).parent.parent.parent / "manifests" / "kube-scheduler" / "plain.yaml"
ARMS = {"utilisation": "underUtilisedNodes", "preferences": "betterPreferences"}
_POLICIES = ("brokenRules", "betterPreferences", "underUtilisedNodes")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("arm", choices=ARMS)
    arguments = parser.parse_args()
    snapshot = Fleet(arguments.nodes).take()
    gc.collect()
    gc.freeze()  # as a daemon does after its start
    print(json.dumps(measure(snapshot, settings_of(arguments.arm))))  # noqa: T201 - its answer


def measure(snapshot: Snapshot, settings: ReschedulerPolicy) -> dict[str, float]:
    model = SchedulerModel(VERSION, parse_scheduler(_SCHEDULER.read_bytes(), version=VERSION))
    before = resident()
    costs = []
    for _ in range(_PLANS):
        cost, made = _cost(snapshot, settings, model)
        costs.append(cost)
    return {
        "nodes": len(snapshot.nodes.names),
        "pods": len(snapshot.pods.rows),
        "first": costs[0],
        "cpu": median(costs),
        "moves": len(made.moves),
        "proposals": len(made.moves) + len(made.refused),
        "spelt": _spell_out(made),
        "before": before,
        "after": resident(),
        "peak": peak(),
    }


def _cost(snapshot: Snapshot, settings: ReschedulerPolicy, model: SchedulerModel) -> tuple[float, Plan]:
    begun = time.process_time()
    made, _ = plan(snapshot, settings, None, model=model)
    made.refused.count()
    return time.process_time() - begun, made


def _spell_out(made: Plan) -> float:
    begun = time.process_time()
    list(made.refused)
    return time.process_time() - begun


def settings_of(arm: str) -> ReschedulerPolicy:
    """Return default settings with one policy and without rates: only the limit of a cycle ends a plan."""
    policies = {name: {"enabled": name == ARMS[arm]} for name in _POLICIES}
    written = {
        "apiVersion": "reberth.dev/v1alpha1",
        "kind": "ReschedulerPolicy",
        "mode": "apply",
        "policies": policies,
        "limits": {"rates": {"cluster": []}},
    }
    return parse(json.dumps(written).encode(), ReschedulerPolicy)


if __name__ == "__main__":
    main()
