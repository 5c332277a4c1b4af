"""Where a tenant of the hub wants his workloads to be, and what he says of their failover."""

from tests.support.builders import Object
from tests.support.hostile.dice import HostileDice
from tests.support.hostile.values import INT32, KEYS, LABELS

COUNTS = (0, 1, 2, 100, 2**31 - 1)
CLUSTERS = ("m1", "m2", "evil", "pulled", "nope", "", "x" * 253, "a/b")


def affinity(dice: HostileDice) -> Object:
    fields = [{"key": dice.pick(("provider", "region", "zone", "nope")), "operator": "In", "values": ["x"]}]
    return {
        "labelSelector": dice.selector(),
        "fieldSelector": dice.pick((None, {"matchExpressions": fields})),
        "clusterNames": dice.pick((None, [], [dice.pick(CLUSTERS)], list(CLUSTERS) * 40)),
        "exclude": dice.pick((None, ["m2"], ["x" * 253] * 50)),
    }


def _affinity_group(dice: HostileDice) -> Object:
    overflow = [{"affinityName": "o", **affinity(dice)}]
    return {
        "affinityName": dice.pick(("", "a", "b", "x" * 253)),
        "overflowAffinities": dice.pick((None, overflow)),
        **affinity(dice),
    }


def placement(dice: HostileDice) -> Object:
    weights = [{"targetCluster": affinity(dice), "weight": dice.pick((0, 1, 2**63 - 1))} for _ in range(3)]
    preference = {"staticWeightList": weights, "dynamicWeight": dice.pick((None, "AvailableReplicas", "x"))}
    scheduling = {
        "replicaSchedulingType": dice.pick(("Divided", "Duplicated")),
        "replicaDivisionPreference": dice.pick(("Aggregated", "Weighted")),
        "weightPreference": dice.pick((None, preference)),
    }
    spread = {
        "spreadByField": dice.pick((None, "cluster", "region", "zone", "provider")),
        "spreadByLabel": dice.pick((None, dice.pick(KEYS))),
        "minGroups": dice.pick(COUNTS),
        "maxGroups": dice.pick(COUNTS),
    }
    said: Object = dice.pick(({"clusterAffinity": affinity(dice)}, {}))
    groups = {"clusterAffinities": [_affinity_group(dice) for _ in range(dice.pick((0, 2, 20)))]}
    return {
        **dice.pick((said, groups)),
        "clusterTolerations": dice.pick((None, [toleration(dice)])),
        "spreadConstraints": dice.pick((None, [spread], [spread] * 30)),
        "replicaScheduling": dice.pick((None, scheduling)),
        "workloadAffinity": dice.pick((None, {"affinity": {"groupByLabelKey": dice.pick(KEYS)}})),
    }


def toleration(dice: HostileDice) -> Object:
    return {
        "key": dice.pick((None, "", dice.pick(KEYS))),
        "operator": dice.pick(("Exists", "Equal")),
        "value": dice.pick(LABELS),
        "tolerationSeconds": dice.pick((None, 0, 2**63 - 1, -(2**63))),
    }


def failover(dice: HostileDice) -> Object:
    seconds = dice.pick((None, *INT32))
    long_ones = ("{.status" + ".a" * 500 + "}", "{[" + "9" * 5_000 + "]}", dice.text()[:2_000])
    paths = ("{.status.x}", "{", *long_ones)
    rule = {"aliasLabelName": dice.pick(("a", "x/y", "x" * 300)), "jsonPath": dice.pick(paths)}
    application = {
        "preConditions": dice.pick((None, {"delaySeconds": seconds, "healthyState": "Unhealthy"})),
        "decisionConditions": {"tolerationSeconds": seconds},
        "purgeMode": dice.pick((None, "Directly", "Gracefully", "Never", "Immediately")),
        "gracePeriodSeconds": seconds,
        "statePreservation": dice.pick((None, {"rules": [rule]})),
    }
    return {
        "application": dice.pick((None, application)),
        "cluster": dice.pick((None, {"purgeMode": "Directly", "statePreservation": {"rules": [rule]}})),
        "failback": dice.pick((None, {"stabilizationSeconds": dice.pick(INT32)})),
        "handover": dice.pick((None, {"timeoutSeconds": seconds, "onTimeout": "LetGo"})),
    }
