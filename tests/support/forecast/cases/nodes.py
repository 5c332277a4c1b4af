"""Draw nodes of all shapes, and the CSI nodes beside them."""

from collections.abc import Iterator

from tests.support.forecast.cases.dice import Dice, Object
from tests.support.forecast.cases.disks import TAKEN_OVER, TAKEN_OVER_ON_NODE
from tests.support.forecast.cases.vocabulary import (
    DISK,
    FEATURES,
    GPU,
    HOSTNAME,
    HUGE,
    IMAGES,
    OLD_ZONE,
    RACK,
    REGION,
    TAINTS,
    ZONE,
    ZONES,
)

_MEBIBYTE = 1 << 20


def make_nodes(dice: Dice, prefix: str) -> list[Object]:
    names = [f"{prefix}-n{number}" for number in range(dice.randint(5, 20))]
    zones = dice.several(ZONES, 1, 3)
    sizes = {image: dice.randint(5, 1500) * _MEBIBYTE for image in IMAGES}
    return [_node(dice, name, zones, sizes) for name in names]


def _node(dice: Dice, name: str, zones: list[str], sizes: dict[str, int]) -> Object:
    room = _room(dice)
    spec: Object = {"providerID": f"fake://{name}"}
    taints = [taint for taint in TAINTS if dice.often("taints", 0.07)]
    if taints:
        spec["taints"] = [dict(taint) for taint in taints]
    if dice.often("unschedulable nodes", 0.1):
        spec["unschedulable"] = True
    status: Object = {"capacity": room, "allocatable": room, "images": list(_images(dice, sizes))}
    features = [feature for feature in FEATURES if dice.chance(0.7)]
    if features:
        status["declaredFeatures"] = features
    metadata = {"name": name, "labels": _labels(dice, name, zones)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


def _room(dice: Dice) -> Object:
    room = {
        "cpu": dice.choice(["2", "4", "8", "3920m", "7910m", "16"]),
        "memory": dice.choice(["4Gi", "8Gi", "16Gi", "7654321Ki", "32000M"]),
        "pods": str(dice.weighed({110: 6, 30: 2, 12: 2, 6: 1})),
    }
    if dice.often("nodes that lack something", 0.05):
        missing = dice.choice(list(room))
        room |= {missing: "0"} if dice.chance(0.5) else {}
        del room[dice.choice(list(room))]
    if dice.chance(0.9):
        room["ephemeral-storage"] = dice.choice(["20Gi", "50Gi", "94477937300"])
    if dice.chance(0.4):
        room[GPU] = dice.choice(["0", "1", "2", "8"])
    if dice.chance(0.4):
        room[HUGE] = dice.choice(["64Mi", "256Mi", "1Gi"])
    return room


def _labels(dice: Dice, name: str, zones: list[str]) -> Object:
    zone = dice.choice(zones)
    labels = {DISK: dice.choice(["ssd", "hdd"]), "cores": dice.choice(["2", "4", "8", "16", "many"])}
    if dice.chance(0.97):
        labels[HOSTNAME] = name
    if not dice.often("nodes without zone", 0.08):
        labels |= {ZONE: zone, REGION: "east" if zone == "z3" else "west"}
    if dice.often("beta zones", 0.1):
        labels[OLD_ZONE] = zone
    if dice.chance(0.75):
        labels[RACK] = dice.choice(["r1", "r2", "r3"])
    return labels


def _images(dice: Dice, sizes: dict[str, int]) -> Iterator[Object]:
    for image, size in sizes.items():
        if dice.often("images", 0.4):
            digest = f"{image.split(':')[0]}@sha256:{size:064x}"
            here = size + dice.choice([0, 0, 0, 7 * _MEBIBYTE])
            yield {"names": [digest, image] if dice.chance(0.5) else [image], "sizeBytes": here}


def make_csi_nodes(dice: Dice, nodes: list[Object], drivers: list[str]) -> list[Object]:
    """One per node, mostly, as the kubelet would register its drivers."""
    return [_csi_node(dice, node, drivers) for node in nodes if dice.chance(0.9)]


def _csi_node(dice: Dice, node: Object, drivers: list[str]) -> Object:
    name = node["metadata"]["name"]
    keys = [key for key in (ZONE, HOSTNAME) if key in node["metadata"]["labels"]]
    metadata: Object = {"name": name}
    if dice.often("disks taken over", 0.5):
        metadata["annotations"] = {TAKEN_OVER_ON_NODE: ",".join(dice.several(list(TAKEN_OVER), 1, 2))}
    registered = [
        _driver(dice, driver, name, keys) for driver in (*drivers, *TAKEN_OVER.values()) if dice.chance(0.9)
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": metadata,
        "spec": {"drivers": registered},
    }


def _driver(dice: Dice, driver: str, node: str, keys: list[str]) -> Object:
    made: Object = {"name": driver, "nodeID": node, "topologyKeys": keys[:1] or None}
    if dice.chance(0.7):
        made["allocatable"] = {"count": dice.randint(1, 5)}
    return made
