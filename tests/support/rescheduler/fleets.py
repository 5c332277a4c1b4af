"""Draw a small cluster from a seed, with all kinds of objects that a plan reads."""

from random import Random
from typing import Any

from tests.support import builders
from tests.support.rescheduler.plans import Object, policy, replica

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
TEAM = {"key": "team", "value": "red", "effect": "NoSchedule"}
ANYTHING = [{"operator": "Exists"}]


def draw_objects(dice: Random) -> list[Object]:
    """Nodes, workloads with their pods, and budgets."""
    nodes = [_node(dice, number) for number in range(dice.randint(2, 8))]
    names = [node["metadata"]["name"] for node in nodes]
    workloads = [_workload(dice, f"app{number}", names) for number in range(dice.randint(1, 8))]
    return [*nodes, *(each for workload in workloads for each in workload)]


def draw_policy(dice: Random, **limits: Any) -> Any:
    """A policy of some aggressiveness; what is named of the limits is set, all else is drawn."""
    low = dice.choice((20, 40, 60))
    high = dice.randint(low, 90)
    around = dice.random() < 0.3
    thresholds = (10, dice.choice((10, 20))) if around else (low, high)
    return policy(
        forecasts=limits.get("forecasts", 500),
        level=dice.randint(1, 5),
        limits={**draw_limits(dice), **limits},
        policies={
            "brokenRules": {"enabled": dice.random() < 0.8, "duplicates": dice.random() < 0.3},
            "betterPreferences": {"enabled": dice.random() < 0.7},
            "underUtilisedNodes": {
                "enabled": dice.random() < 0.8,
                "low": dict.fromkeys(("cpu", "memory"), f"{thresholds[0]}%"),
                "high": dict.fromkeys(("cpu", "memory"), f"{thresholds[1]}%"),
                "aroundMean": around,
                "hotFor": "0s",
            },
        },
    )


def draw_limits(dice: Random) -> Object:
    return {
        "perCycle": dice.choice((1, 2, 5, 100)),
        "perNode": dice.choice((1, 3, None)),
        "perNamespace": dice.choice((1, 5, None)),
        "perWorkload": dice.choice((1, 2, None)),
        "rates": {"cluster": dice.choice(([], ["3 per 10m"]))},
    }


NO_LIMITS: Object = {
    "perCycle": None,
    "perNode": None,
    "perNamespace": None,
    "perWorkload": None,
    "rates": {"cluster": []},
}


def _node(dice: Random, number: int) -> Object:
    return builders.node(
        f"n{number}",
        cpu=dice.choice(("4", "8", "8", "16")),
        memory=dice.choice(("16Gi", "32Gi")),
        pods=dice.choice((8, 110)),
        zone=dice.choice("ab"),
        labels={"disk": dice.choice(("ssd", "hdd"))},
        taints=[TEAM] if dice.random() < 0.15 else (),
        unschedulable=dice.random() < 0.05,
    )


def _workload(dice: Random, app: str, nodes: list[str]) -> list[Object]:
    """Replicas where somebody may have placed them long ago, when other rules held."""
    namespace = dice.choice(("blue", "red"))
    spec = {
        "cpu": dice.choice(("100m", "500m", "1", "2")),
        "memory": dice.choice(("256Mi", "1Gi", "4Gi")),
        "priority": dice.choice((0, 0, 1000)),
        **_draw_rules(dice, app),
    }
    favourites = dice.sample(nodes, dice.randint(1, len(nodes)))
    count = dice.randint(1, 6)
    pods = [
        replica(f"{app}-{number}", app, dice.choice(favourites), namespace=namespace, **spec)
        for number in range(count)
    ]
    return [*pods, *([_budget(dice, app, namespace, count)] if dice.random() < 0.3 else [])]


def _draw_rules(dice: Random, app: str) -> Object:
    rules: Object = {}
    if dice.random() < 0.4:
        rules["affinity"] = _affinity(dice, app)
    if dice.random() < 0.3:
        rules["topologySpreadConstraints"] = [
            {
                "maxSkew": dice.randint(1, 2),
                "topologyKey": dice.choice((ZONE, HOSTNAME)),
                "whenUnsatisfiable": dice.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": {"matchLabels": {"app": app}},
            }
        ]
    if dice.random() < 0.2:
        rules["tolerations"] = ANYTHING
    return rules


def _affinity(dice: Random, app: str) -> Object:
    expression = {"key": "disk", "operator": "In", "values": [dice.choice(("ssd", "hdd"))]}
    term = {
        "topologyKey": dice.choice((ZONE, HOSTNAME)),
        "labelSelector": {"matchLabels": {"app": dice.choice((app, "app0"))}},
    }
    side = dice.choice(("podAffinity", "podAntiAffinity"))
    required, preferred = (
        "requiredDuringSchedulingIgnoredDuringExecution",
        "preferredDuringSchedulingIgnoredDuringExecution",
    )
    return dice.choice(
        (
            {"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}},
            {"nodeAffinity": {preferred: [{"weight": 50, "preference": {"matchExpressions": [expression]}}]}},
            {"podAntiAffinity": {required: [term]}},
            {side: {preferred: [{"weight": 50, "podAffinityTerm": term}]}},
        )
    )


def _budget(dice: Random, app: str, namespace: str, count: int) -> Object:
    healthy = dice.randint(0, count)
    status = {
        "observedGeneration": 0,
        "disruptionsAllowed": count - healthy,
        "currentHealthy": count,
        "desiredHealthy": healthy,
        "expectedPods": count,
    }
    return builders.pdb(app, namespace=namespace, min_available=healthy, status=status)
