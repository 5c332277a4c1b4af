"""Health of many objects, as the federation asks for it: by a script, by the table, by a built-in rule.

    python -m bench.interpreters.asking SIZE

Prints, as JSON, what a process of its own measured of itself.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from bench.reading.processes import resident
from federation.api import ResourceInterpreterCustomization
from federation.interpreters.kind_rules import KindRules
from federation.objects.health import find_health
from federation.objects.names import Key
from federation.objects.template import ResourceTemplate, read_template, read_whole
from federation.propagation.replica_demand import read_replica_demand

GAME, CLONES = (
    Key("example.com/v1", "Game", "default", "web"),
    Key("apps.kruise.io/v1", "CloneSet", "default", "web"),
)
DEPLOYMENT = Key("apps/v1", "Deployment", "default", "web")
SCRIPTS = {
    "healthInterpretation": """
function InterpretHealth(o)
  local status = o.status or {}
  for _, each in ipairs(status.conditions or {}) do
    if each.type == "Progressing" and each.status ~= "True" then return false end
  end
  return status.observedGeneration == o.metadata.generation and status.availableReplicas == o.spec.replicas
end""",
    "replicaResource": """
local kube = require("kube")
function GetReplicas(o) return o.spec.replicas, kube.accuratePodRequirements(o.spec.template) end""",
}
LOOPS = 1000
_ENDLESS = "function InterpretHealth(o) while true do pcall(error) end end"
_GENERATION = 2


class Figures(msgspec.Struct, frozen=True):
    """What was measured; rates are readings a second of CPU."""

    script: float
    script_beside_loops: float
    table: float
    built_in: float
    slowest: float
    """The longest CPU time between two answers of a script that works, beside the loops."""
    objects: int
    grown: int
    """Bytes of RSS that the objects took, and their answers."""
    lua: int


def customization(name: str, kind: str, **scripts: str) -> ResourceInterpreterCustomization:
    spec = {
        "target": {"apiVersion": GAME.api_version, "kind": kind},
        "customizations": {field: {"luaScript": source} for field, source in scripts.items()},
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceInterpreterCustomization)


def load(loops: int = 0) -> KindRules:
    rules = KindRules()
    bad = (customization(f"b{at}", f"Bad{at}", healthInterpretation=_ENDLESS) for at in range(loops))
    rules.load([customization("a", GAME.kind, **SCRIPTS), *bad])
    return rules


def write_object(key: Key, number: int) -> bytes:
    """Write an object of 1.4 KB with three conditions, as a member's API server does."""
    conditions = [
        {"type": name, "status": "True", "reason": f"{name}Reason", "message": "x" * 90}
        for name in ("Available", "Progressing", "Ready")
    ]
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), 3)
    container = {
        "name": "main",
        "image": "registry.example.com/web:1",
        "resources": {"requests": {"cpu": "1"}},
    }
    return msgspec.json.encode({
        "apiVersion": key.api_version,
        "kind": key.kind,
        "metadata": {
            "name": f"{key.name}-{number}",
            "namespace": key.namespace,
            "uid": f"{number:036}",
            "resourceVersion": str(number),
            "generation": _GENERATION,
            "labels": {"app": f"{key.name}-{number}", "tier": "backend"},
        },
        "spec": {"replicas": 3, "template": {"spec": {"containers": [container]}}},
        "status": {"observedGeneration": _GENERATION, **counts, "conditions": conditions},
    })  # fmt: skip


def rate(ask: Callable[[], object], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        ask()
    return times / (time.process_time() - began)


def ask_health(key: Key, rules: KindRules) -> Callable[[], str]:
    found = read_whole(key, read_template(write_object(key, 0)))
    said = find_health(key.api_version, key.kind, found, rules.health)
    if said != "Healthy":
        raise ValueError(f"{key.kind} is {said}")
    return lambda: find_health(key.api_version, key.kind, found, rules.health)


def find_slowest(rules: KindRules, ask: Callable[[], str], kinds: Iterable[str]) -> float:
    """Ask other kinds, and one that works after each; return the longest CPU time until it answers."""
    slowest, since = 0.0, time.process_time()
    for kind in kinds:
        rules.health[GAME.api_version, kind]({"metadata": {"generation": 1}})
        if ask() != "Healthy":
            raise ValueError("the script that works does not answer")
        now = time.process_time()
        slowest, since = max(slowest, now - since), now
    return slowest


Held = tuple[ResourceTemplate, str, Any]


def hold(rules: KindRules, count: int) -> tuple[list[Held], int]:
    """Read many objects, and the health and the replicas of each; return what is kept, and its bytes."""
    before = resident()
    kept = []
    for number in range(count):
        template = read_template(write_object(GAME, number))
        health = find_health(*GAME[:2], read_whole(GAME, template), rules.health)
        kept.append((template, health, read_replica_demand(GAME, template, rules)))
    return kept, resident() - before


def measure(size: int) -> Figures:
    rules, beside = load(), load(LOOPS)
    lua = beside.interpreters.memory
    kept, grown = hold(rules, size)
    if {health for _, health, _ in kept} != {"Healthy"}:
        raise ValueError("not all objects are Healthy")
    ask = ask_health(GAME, beside)
    slowest = max(find_slowest(beside, ask, [f"Bad{at}" for at in range(LOOPS)]) for _ in range(3))
    return Figures(
        script=rate(ask_health(GAME, rules), 50_000),
        script_beside_loops=rate(ask, 50_000),
        table=rate(ask_health(CLONES, rules), 50_000),
        built_in=rate(ask_health(DEPLOYMENT, rules), 50_000),
        slowest=slowest,
        objects=size,
        grown=grown,
        lua=lua,
    )


if __name__ == "__main__":
    json.dump(msgspec.to_builtins(measure(int(sys.argv[1]))), sys.stdout)
