"""Draw storage classes, claims and volumes as the pods of a case need them."""

from collections.abc import Sequence
from typing import Any

from tests.support.forecast.cases.dice import Dice, Object
from tests.support.forecast.cases.disks import volume_source
from tests.support.forecast.cases.vocabulary import HOSTNAME, OLD_ZONE, REGION, ZONE, ZONES

FINALIZER = "example.com/keep"
_GROUP = "storage.k8s.io/v1"


class Store:
    """All storage of a case. A claim is made for a pod that names it."""

    def __init__(self, dice: Dice, prefix: str, nodes: Sequence[Object]) -> None:
        self.dice = dice
        self.prefix = prefix
        self.nodes = nodes
        self.drivers = [f"{name}.{prefix}.example" for name in ("disk", "share")]
        self.objects: list[Object] = []
        self.leaving: list[Object] = []
        self._claims: dict[str, list[str]] = {}
        self._count = 0
        self._make_classes()

    def used_claim(self, namespace: str) -> str | None:
        """Give a claim that some pod of the namespace has already."""
        claims = self._claims.get(namespace)
        return self.dice.choice(claims) if claims else None

    def bound_claim(self, namespace: str) -> str:
        """Make a claim and the volume that it is bound to."""
        name = self._name("claim")
        alone = self.dice.chance(0.15)
        mode = "ReadWriteOncePod" if alone else self.dice.choice(["ReadWriteOnce", "ReadWriteMany"])
        self._bind(namespace, name, mode)
        self._claims.setdefault(namespace, []).append(name)
        return name

    def _bind(self, namespace: str, name: str, mode: str) -> Object:
        dice, volume = self.dice, self._name("volume")
        klass = dice.choice(["wait", "now", ""])
        made = self._claim(namespace, name, klass, mode, volume=volume)
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace,
            "name": name,
        }
        uid = f"PersistentVolumeClaim/{namespace}/{name}"
        if not dice.often("volumes that are not there", 0.02):
            self._volume(volume, klass, mode, claimRef={**reference, "uid": uid}, phase="Bound")
            if dice.chance(0.5):
                self._attach(volume)
        return made

    def waiting_claim(self, namespace: str) -> str:
        """Make a claim that waits for its first consumer: to be bound to a static volume, or provisioned."""
        dice, name = self.dice, self._name("claim")
        klass = dice.choice(["wait", "picky", "static"])
        made = self._claim(namespace, name, klass, "ReadWriteOnce")
        if dice.chance(0.2):
            made["spec"]["selector"] = {"matchLabels": {"speed": "fast"}}
        if klass != "static" and dice.chance(0.15):
            node = dice.choice(self.nodes)["metadata"]["name"]
            made["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": node}
        if klass == "static" or dice.chance(0.2):
            for number in range(dice.randint(2, 8)):
                kept = {"claimRef": {"namespace": namespace, "name": name}} if dice.chance(0.1) else {}
                self._free_volume(klass, **({} if number else kept))
        return name

    def _free_volume(self, klass: str, **spec: object) -> None:
        """Make a volume that some claim may take: it may be of another kind, or kept for one."""
        dice = self.dice
        mode = dice.weighed({"ReadWriteOnce": 8, "ReadOnlyMany": 1})
        kind = {"volumeMode": "Block"} if dice.chance(0.1) else {}
        phase = dice.weighed({"Available": 9, "Released": 1})
        made = self._volume(self._name("volume"), klass, mode, phase=phase, **kind, **spec)
        if dice.chance(0.5):
            made["metadata"]["labels"]["speed"] = dice.choice(["fast", "slow"])

    def refused_claim(self, namespace: str) -> str:
        """Make a claim with which no node will do: unbound and immediate, lost, or not there at all."""
        name = self._name("claim")
        kind = self.dice.choice(["immediate", "lost", "missing", "kept", "leaving"])
        if kind == "leaving":
            made = self._claim(namespace, name, "now", "ReadWriteOnce", volume="gone")
            made["metadata"]["finalizers"] = [FINALIZER]
            self.leaving.append(made)
        if kind == "kept":  # for a volume, but not bound to it yet
            made = self._claim(namespace, name, "wait", "ReadWriteOnce", volume="gone")
            made["metadata"]["annotations"] = {}
        if kind == "immediate":
            self._claim(namespace, name, "now", "ReadWriteOnce")
        if kind == "lost":
            self._claim(namespace, name, "now", "ReadWriteOnce", volume="gone", phase="Lost")
        return name

    def own_claim(self, pod: Object) -> Object:
        """Give a volume that is made for this pod alone; its claim is there, another's, or still to come."""
        dice, meta = self.dice, pod["metadata"]
        name = f"own{len(pod['spec'].get('volumes', ()))}"
        claim = f"{meta['name']}-{name}"
        is_bound = "nodeName" in pod["spec"]  # an error in its volumes would stop all scheduling
        kind = "there" if is_bound else dice.weighed({"there": 8, "of another": 1, "to come": 1})
        if kind != "to come":
            made = self._bind(meta["namespace"], claim, "ReadWriteOnce")
            owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "controller": True}
            uid = f"Pod/{meta['namespace']}/{meta['name']}" if kind == "there" else "of-another"
            made["metadata"]["ownerReferences"] = [{**owner, "uid": uid}]
        resources = {"requests": {"storage": "1Gi"}}
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self._class("now"),
            "resources": resources,
        }
        return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{self.prefix}-{kind}{self._count}"

    def _class(self, name: str) -> str:
        return f"{self.prefix}-{name}" if name else ""

    def _make_classes(self) -> None:
        dice = self.dice
        for driver in self.drivers:
            spec: Object = {"attachRequired": True, "storageCapacity": dice.chance(0.5)}
            if dice.often("drivers that must be there", 0.3):
                spec["preventPodSchedulingIfMissing"] = True
            self._add(_GROUP, "CSIDriver", driver, spec=spec)
        picked = dice.several(ZONES, 1, 2)
        topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": picked}]}]
        self._make_class("now", self.drivers[0], "Immediate")
        self._make_class("wait", self.drivers[0], "WaitForFirstConsumer")
        self._make_class("picky", self.drivers[1], "WaitForFirstConsumer", allowedTopologies=topologies)
        self._make_class("static", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
        for klass in ("wait", "picky"):
            self._make_capacities(klass)

    def _make_class(self, name: str, provisioner: str, mode: str, **fields: Any) -> None:
        fields = {"provisioner": provisioner, "volumeBindingMode": mode, **fields}
        self._add(_GROUP, "StorageClass", self._class(name), **fields)

    def _make_capacities(self, klass: str) -> None:
        """Draw one for each of some zones, or one for all: of several for a node any may count."""
        zones: list[str | None] = [*self.dice.some(ZONES, 0.7)]
        for zone in [None] if self.dice.chance(0.15) else zones:
            self._capacity(klass, zone)

    def _capacity(self, klass: str, zone: str | None) -> None:
        made: Object = {
            "storageClassName": self._class(klass),
            "nodeTopology": {"matchLabels": {ZONE: zone}} if zone else {},
            "capacity": self.dice.choice(["2Gi", "20Gi", "50Gi"]),
        }
        if self.dice.chance(0.3):
            made["maximumVolumeSize"] = self.dice.choice(["2Gi", "20Gi"])
        self._add(_GROUP, "CSIStorageCapacity", self._name("capacity"), "default", **made)

    def _claim(
        self, namespace: str, name: str, klass: str, mode: str, *, volume: str = "", phase: str = ""
    ) -> Object:
        size = self.dice.choice(["1Gi", "3Gi", "10Gi"])
        spec: Object = {
            "accessModes": [mode],
            "resources": {"requests": {"storage": size}},
            "storageClassName": self._class(klass),
        }
        bound = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
        if volume:
            spec["volumeName"] = volume
        status = {"phase": phase or ("Bound" if volume else "Pending")}
        made = self._add("v1", "PersistentVolumeClaim", name, namespace, spec=spec, status=status)
        made["metadata"]["annotations"] = bound
        return made

    def _volume(self, name: str, klass: str, mode: str, *, phase: str, **spec: object) -> Object:
        dice = self.dice
        labels: Object = {}
        if dice.often("zones of volumes", 0.25):
            key = dice.weighed({ZONE: 4, OLD_ZONE: 1, REGION: 1})
            zones = ["east", "west"] if key == REGION else list(ZONES)
            labels[key] = "__".join(dice.several(zones, 1, 2))
        affinity = self._volume_affinity()
        content: Object = {
            "capacity": {"storage": dice.choice(["2Gi", "10Gi", "20Gi"])},
            "accessModes": [mode],
            "storageClassName": self._class(klass),
            **volume_source(dice, name, self.drivers),
            **spec,
        }
        if "gcePersistentDisk" in content:  # of several zones only those named as Google does are understood
            labels = {key: text.partition("__")[0] for key, text in labels.items()}
        if affinity:
            content["nodeAffinity"] = affinity
        made = self._add("v1", "PersistentVolume", name, spec=content, status={"phase": phase})
        made["metadata"]["labels"] = labels
        return made

    def _volume_affinity(self) -> Object | None:
        dice = self.dice
        if not dice.often("affinity of volumes", 0.3):
            return None
        names = [node["metadata"]["name"] for node in self.nodes]
        expression = dice.weighed(
            {
                (ZONE, tuple(dice.several(ZONES, 1, 2))): 3,
                (HOSTNAME, tuple(dice.several(names, 1, 6))): 2,
            }
        )
        key, values = expression
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
        return {"required": {"nodeSelectorTerms": [term]}}

    def _attach(self, volume: str) -> None:
        node = self.dice.choice(self.nodes)["metadata"]["name"]
        spec = {
            "attacher": self.dice.choice(self.drivers),
            "nodeName": node,
            "source": {"persistentVolumeName": volume},
        }
        self._add(_GROUP, "VolumeAttachment", f"{volume}-on-{node}", spec=spec)

    def _add(self, version: str, kind: str, name: str, namespace: str = "", **fields: object) -> Object:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        made: Object = {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
        self.objects.append(made)
        return made
