"""Draw pods that run together, and match labels by the plain definition."""

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from tests.support import builders

Object = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
INDEX = "apps.kubernetes.io/pod-index"
VALUES = {"app": ("web", "web", "web", "db"), "tier": ("front", "back"), INDEX: ("0", "1"), ZONE: ("", "a")}
NAMESPACES = ("default", "shop", "unknown")
NODE_NAMES = tuple(f"n{number}" for number in range(8))
DEDICATED = {"key": "dedicated", "effect": "NoSchedule"}

_SOMETIMES = 0.3
_MOSTLY = 0.85

# Drawn whole from one number: a crowd of many independent choices would be nearly empty, and slow to draw.
dice = st.integers(0, 2**32).map(Random)


def crowd(dice: Random) -> list[Object]:
    """Namespaces, nodes and pods. One namespace is not known, one node is gone."""
    known = [_namespace(dice, name) for name in NAMESPACES[:2]]
    nodes = [_node(dice, name) for name in NODE_NAMES[: dice.randint(2, 8)]]
    return [*known, *nodes, *(_pod(dice, f"pod-{number}") for number in range(dice.choice((0, 8, 15, 20))))]


def labels(dice: Random) -> dict[str, str]:
    return {
        key: dice.choice(values)
        for key, values in VALUES.items()
        if dice.random() < (_MOSTLY if key == "app" else 0.5)
    }


def affinity(dice: Random) -> Object:
    """Affinity with some of the four groups of terms."""
    return {name: _side(dice) for name in ("podAffinity", "podAntiAffinity") if dice.random() < 0.7}


def selector(dice: Random) -> Object | None:
    if dice.random() < _MOSTLY:
        return {"matchLabels": {"app": dice.choice(VALUES["app"])}}
    asked = {"matchLabels": labels(dice)}, {"matchExpressions": [_requirement(dice)]}
    chosen: Object | None = dice.choice((None, {}, *asked))
    return chosen


def topology_key(dice: Random) -> str:
    return dice.choice((HOSTNAME, ZONE, ZONE, RACK))


def _namespace(dice: Random, name: str) -> Object:
    team = {"team": "a"} if dice.random() < 0.5 else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": team}}


def _node(dice: Random, name: str) -> Object:
    """A node that may lack labels, with a taint that some pods put up with."""
    taints = [[DEDICATED], [{**DEDICATED, "effect": "PreferNoSchedule"}], [], []]
    node = builders.node(name, taints=dice.choice(taints))
    drawn = {HOSTNAME: name, ZONE: dice.choice(("", "a", "a", "b")), RACK: dice.choice("rs")}
    labels = {key: value for key, value in drawn.items() if dice.random() < _MOSTLY}
    node["metadata"]["labels"] = {"pool": dice.choice("xxy"), **labels}
    return node


def _pod(dice: Random, name: str) -> Object:
    """A pod that stands somewhere, mostly; it may be leaving, finished, or on a node that is gone."""
    return builders.pod(
        name,
        namespace=dice.choice((*NAMESPACES, *["default"] * 4)),
        node=dice.choice((*NODE_NAMES[:4] * 3, "gone", None)),
        phase=dice.choice(("Running",) * 6 + ("Failed", "Succeeded")),
        labels=labels(dice),
        deleted="2026-11-18T09:15:31Z" if dice.random() < 0.2 else None,
        affinity=affinity(dice) if dice.random() < 0.5 else None,
    )


def _side(dice: Random) -> Object:
    made: Object = {}
    if dice.random() < 0.5:
        made["requiredDuringSchedulingIgnoredDuringExecution"] = _some(dice, _term)
    if dice.random() < 0.7:
        made["preferredDuringSchedulingIgnoredDuringExecution"] = _some(dice, _weighted)
    return made


def _some(dice: Random, draw: Callable[[Random], Object]) -> list[Object]:
    return [draw(dice) for _ in range(dice.choice((1, 1, 1, 2)))]


def _weighted(dice: Random) -> Object:
    return {"weight": dice.randint(1, 100), "podAffinityTerm": _term(dice)}


def _term(dice: Random) -> Object:
    open_to = dice.random() < _SOMETIMES
    return {
        "topologyKey": topology_key(dice),
        "labelSelector": selector(dice),
        "namespaceSelector": _namespace_selector(dice) if open_to else None,
        "namespaces": dice.sample(NAMESPACES, dice.randint(0, 2)) if open_to else [],
    }


def _namespace_selector(dice: Random) -> Object | None:
    absent = {"key": "team", "operator": "DoesNotExist"}
    other = {"key": "team", "operator": "NotIn", "values": ["a"]}
    asked = {"matchLabels": {"team": "a"}}, {"matchExpressions": [absent]}, {"matchExpressions": [other]}
    chosen: Object | None = dice.choice((None, {}, *asked))
    return chosen


def _requirement(dice: Random) -> Object:
    key = dice.choice(sorted(VALUES))
    operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    values = dice.sample(VALUES[key], dice.randint(1, 2)) if operator in {"In", "NotIn"} else None
    return {"key": key, "operator": operator, **({"values": values} if values else {})}


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def labels_of(thing: Object) -> dict[str, str]:
    return thing["metadata"].get("labels") or {}


def counted(objects: list[Object]) -> list[tuple[Object, Object]]:
    """The pods that count, each with its node."""
    by_name = {node["metadata"]["name"]: node for node in of_kind(objects, "Node")}
    return [
        (pod, by_name[pod["spec"]["nodeName"]])
        for pod in of_kind(objects, "Pod")
        if pod["spec"].get("nodeName") in by_name and pod["status"]["phase"] not in {"Succeeded", "Failed"}
    ]


def selects(selector: Object | None, labels: dict[str, str]) -> bool:
    """A missing selector selects nothing, an empty one everything."""
    if selector is None:
        return False
    return all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    ) and all(_holds(each, labels.get(each["key"])) for each in selector.get("matchExpressions") or ())


def is_empty(selector: Object | None) -> bool:
    return selector is not None and not any(selector.values())


def _holds(requirement: Object, value: str | None) -> bool:
    values = requirement.get("values") or ()
    return {
        "In": value is not None and value in values,
        "NotIn": value is None or value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[requirement["operator"]]
