"""Draw a pod's scheduling constraints: affinity, spread, tolerations."""

from collections.abc import Callable

from tests.support.forecast.cases.dice import Dice, Object
from tests.support.forecast.cases.vocabulary import (
    APPS,
    DISK,
    HOSTNAME,
    NAMESPACES,
    RACK,
    REGION,
    TAINTS,
    TIERS,
    VERSIONS,
    ZONE,
    ZONES,
)

_DOMAINS = {ZONE: 8, HOSTNAME: 8, RACK: 4, REGION: 2, "example.com/on-no-node": 0.3}


def tolerations(dice: Dice, likely: float) -> list[Object]:
    made = [_toleration(dice, taint) for taint in TAINTS if dice.chance(likely)]
    if dice.chance(0.04):
        made.append({"operator": "Exists"})
    if dice.chance(0.06):
        made.append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"})
    return made


def _toleration(dice: Dice, taint: Object) -> Object:
    made: Object = {"key": taint["key"]}
    if dice.chance(0.5):
        made["operator"] = "Exists"
    elif "value" in taint:
        made |= {"operator": "Equal", "value": taint["value"]}
    if dice.chance(0.6):
        made["effect"] = taint["effect"]
    return made


def node_affinity(dice: Dice, nodes: list[str], *, hard: float, soft: float) -> Object:
    made: Object = {}
    if dice.often("required node affinity", hard):
        draw = _named_term if dice.chance(0.06) else _node_term
        terms = [draw(dice, nodes) for _ in range(dice.randint(1, 3))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.often("preferred node affinity", soft):
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.randint(1, 100), "preference": _node_term(dice, nodes)}
            for _ in range(dice.randint(1, 4))
        ]
    return made


def _named_term(dice: Dice, nodes: list[str]) -> Object:
    """Name one node, as the pods of DaemonSets do."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [dice.choice(nodes)]}]}


def _node_term(dice: Dice, nodes: list[str]) -> Object:
    if dice.chance(0.1):
        fields = {"key": "metadata.name", "operator": "NotIn" if dice.chance(0.6) else "In"}
        fields_term: Object = {"matchFields": [{**fields, "values": [dice.choice(nodes)]}]}
        return fields_term if dice.chance(0.5) else {**fields_term, "matchExpressions": [_requirement(dice)]}
    if dice.chance(0.03):
        return {}
    return {"matchExpressions": [_requirement(dice) for _ in range(dice.weighed({1: 6, 2: 3}))]}


_REQUIREMENTS: tuple[Callable[[Dice], Object], ...] = (
    lambda dice: {"key": ZONE, "operator": "In", "values": dice.several(ZONES, 1, 3)},
    lambda dice: {"key": ZONE, "operator": "NotIn", "values": [dice.choice(ZONES)]},
    lambda dice: {"key": DISK, "operator": "In", "values": [dice.choice(["ssd", "hdd"])]},
    lambda dice: {"key": RACK, "operator": dice.choice(["Exists", "DoesNotExist"])},
    lambda dice: {"key": RACK, "operator": "NotIn", "values": dice.several(["r1", "r2", "r3"], 1, 2)},
    lambda dice: {"key": "cores", "operator": dice.choice(["Gt", "Lt"]), "values": [dice.choice("3579")]},
    lambda dice: {"key": "absent", "operator": "DoesNotExist"},  # noqa: ARG005 - nothing is drawn
)


def _requirement(dice: Dice) -> Object:
    return dice.choice(_REQUIREMENTS)(dice)


def label_selector(dice: Dice, labels: Object) -> Object:
    """Select some pods, often those that look like this one."""
    app = labels.get("app", "web") if dice.chance(0.6) else dice.choice(APPS)
    kinds: dict[Callable[[], Object], int] = {
        lambda: {"matchLabels": {"app": app}}: 6,
        lambda: {"matchLabels": {"app": app, "tier": dice.choice(TIERS)}}: 2,
        lambda: {"matchExpressions": [_expression("app", "In", dice.several(APPS, 1, 2))]}: 2,
        lambda: {"matchExpressions": [_expression("app", "NotIn", [dice.choice(APPS)])]}: 1,
        lambda: {
            "matchLabels": {"app": app},
            "matchExpressions": [_expression("version", "Exists"), _expression("absent", "DoesNotExist")],
        }: 1,
        dict: 1,
    }
    return dice.weighed(kinds)()


def _expression(key: str, operator: str, values: list[str] | None = None) -> Object:
    made: Object = {"key": key, "operator": operator}
    return {**made, "values": values} if values else made


def spread(dice: Dice, labels: Object, *, hard: float, soft: float) -> list[Object]:
    """Several keys at times; a pair of key and action may stand once only."""
    made: dict[tuple[str, str], Object] = {}
    for action, feature, likely in (
        ("DoNotSchedule", "hard spread", hard),
        ("ScheduleAnyway", "soft spread", soft),
    ):
        if dice.often(feature, likely):
            for _ in range(dice.weighed({1: 5, 2: 3})):
                key = dice.weighed(_DOMAINS)
                made[key, action] = _constraint(dice, key, action, labels)
    return list(made.values())


def _constraint(dice: Dice, key: str, action: str, labels: Object) -> Object:
    made: Object = {"topologyKey": key, "whenUnsatisfiable": action, "maxSkew": dice.randint(1, 4)}
    if dice.chance(0.93):
        made["labelSelector"] = label_selector(dice, labels)
    if action == "DoNotSchedule" and dice.chance(0.25):
        made["minDomains"] = dice.randint(1, 4)
    if dice.chance(0.3):
        made["nodeAffinityPolicy"] = dice.choice(["Honor", "Ignore"])
    if dice.chance(0.3):
        made["nodeTaintsPolicy"] = dice.choice(["Honor", "Ignore"])
    taken = {one["key"] for one in made.get("labelSelector", {}).get("matchExpressions", ())}
    taken |= set(made.get("labelSelector", {}).get("matchLabels", ()))
    if "labelSelector" in made and "version" not in taken and dice.chance(0.2):
        made["matchLabelKeys"] = ["version"]
    return made


def pod_affinity(dice: Dice, labels: Object, *, kind: str, hard: float, soft: float) -> Object:
    """The terms of affinity or of anti-affinity, as `kind` says for the feature's name."""
    made: Object = {}
    if dice.often(f"required {kind}", hard):
        terms = [_pod_term(dice, labels) for _ in range(dice.weighed({1: 6, 2: 2}))]
        made["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if dice.often(f"preferred {kind}", soft):
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": dice.randint(1, 100), "podAffinityTerm": _pod_term(dice, labels)}
            for _ in range(dice.randint(1, 2))
        ]
    return made


def _pod_term(dice: Dice, labels: Object) -> Object:
    made: Object = {"topologyKey": dice.weighed(_DOMAINS)}
    if dice.chance(0.95):
        made["labelSelector"] = label_selector(dice, labels)
    if dice.chance(0.25):
        made["namespaces"] = dice.several(NAMESPACES, 1, 2)
    if dice.chance(0.25):
        made["namespaceSelector"] = _namespace_selector(dice)
    selector = made.get("labelSelector", {})
    taken = {one["key"] for one in selector.get("matchExpressions", ())} | set(
        selector.get("matchLabels", ())
    )
    if "labelSelector" in made and "version" not in taken and dice.chance(0.2):
        made[dice.choice(["matchLabelKeys", "mismatchLabelKeys"])] = ["version"]
    return made


def _namespace_selector(dice: Dice) -> Object:
    kinds: dict[Callable[[], Object], int] = {
        lambda: {"matchLabels": {"team": dice.choice("ab")}}: 4,
        lambda: {"matchExpressions": [_expression("team", "NotIn", [dice.choice("ab")])]}: 2,
        lambda: {"matchExpressions": [_expression("quiet", "DoesNotExist")]}: 2,
        lambda: {"matchExpressions": [_expression("team", "Exists")]}: 1,
        dict: 2,
    }
    return dice.weighed(kinds)()


def version_label(dice: Dice) -> Object:
    return {"version": dice.choice(VERSIONS)} if dice.chance(0.7) else {}
