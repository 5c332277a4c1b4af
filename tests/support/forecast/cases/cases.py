"""Draw a random cluster with pods to place in it, as plain objects; the same seed gives the same case.

A `uid` in a reference is written as `Kind/namespace/name` of its object until the object exists.
"""

from dataclasses import dataclass

from reberth.cluster.pods.requests import NEWEST, Version
from tests.support.forecast.cases import constraints as asks
from tests.support.forecast.cases.containers import make_containers, resized_status
from tests.support.forecast.cases.dice import Dice, Object
from tests.support.forecast.cases.disks import inline_disk
from tests.support.forecast.cases.nodes import make_csi_nodes, make_nodes
from tests.support.forecast.cases.storage import FINALIZER, Store
from tests.support.forecast.cases.vocabulary import (
    APPS,
    IMAGES,
    NAMESPACES,
    PRIORITIES,
    RUNTIMES,
    TIERS,
    ZONE,
    ZONES,
)

GATE = "example.com/not-yet"
_OWNERS = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicationController": "v1",
}


@dataclass(frozen=True)
class Case:
    """What stands in the cluster, what of it is on its way out, and the pods to ask about.

    One pod is made after everything else; it is on a node that nobody knows.
    """

    seed: int
    objects: tuple[Object, ...]
    terminating: tuple[Object, ...]
    probes: tuple[Object, ...]
    last: Object


def make_case(seed: int, *, schedulers: tuple[str, ...] = (), version: Version = NEWEST) -> Case:
    """Draw a case; its pods name one of these schedulers, if there are any, and use what this version has."""
    return _Making(Dice(seed, version=version), seed, schedulers).make()


def base_objects() -> list[Object]:
    """Give what stands in the cluster whatever the case: no pod may drive out another."""
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "globalDefault": value == 0,
            "preemptionPolicy": "Never",
        }
        for name, value in PRIORITIES.items()
    ]
    runtimes = [
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": name,
            **({"overhead": {"podFixed": overhead}} if overhead else {}),
        }
        for name, overhead in RUNTIMES.items()
    ]
    return [*classes, *runtimes]


class _Making:
    """The hand that draws a case: what was drawn so far."""

    def __init__(self, dice: Dice, seed: int, schedulers: tuple[str, ...]) -> None:
        self.dice = dice
        self.seed = seed
        self.schedulers = schedulers
        self.prefix = f"k{seed}"
        self.nodes = make_nodes(self.dice, self.prefix)
        self.names = [node["metadata"]["name"] for node in self.nodes]
        self.store = Store(self.dice, self.prefix, self.nodes)
        self.owners = self._make_owners()

    def make(self) -> Case:
        dice = self.dice
        pods = [self._bound_pod(number) for number in range(dice.randint(30, 75))]
        nominated = [self._nominated_pod(number) for number in range(3) if dice.often("nominated pods", 0.3)]
        probes = [self._probe(number) for number in range(3)]
        leaving = [_keep(dice, pod) for pod in pods if dice.often("terminating pods", 0.12)]
        csi_nodes = make_csi_nodes(dice, self.nodes, self.store.drivers)
        namespaces = [self._namespace(name) for name in NAMESPACES]
        services = [
            self._service(namespace, app) for namespace in NAMESPACES for app in APPS if dice.chance(0.4)
        ]
        objects = [*namespaces, *self.nodes, *csi_nodes, *self.store.objects, *services, *self.owners]
        everything, gone = (*objects, *pods, *nominated), (*leaving, *self.store.leaving)
        return Case(self.seed, everything, gone, tuple(probes), self._last_pod())

    def _last_pod(self) -> Object:
        spec = {"containers": [{"name": "c", "image": "tools:3"}], "nodeName": "nobody-knows"}
        metadata = {"name": f"{self.prefix}-last", "namespace": "default", "labels": {"app": "web"}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _namespace(self, name: str) -> Object:
        labels = {"team": self.dice.choice("ab")} if self.dice.chance(0.7) else {}
        if self.dice.chance(0.3):
            labels["quiet"] = "yes"
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}

    def _service(self, namespace: str, app: str) -> Object:
        selector = {"app": app} | ({"tier": self.dice.choice(TIERS)} if self.dice.chance(0.2) else {})
        spec = {
            "ports": [{"port": 80}],
            "clusterIP": "None",
            **({"selector": selector} if self.dice.chance(0.9) else {}),
        }
        metadata = {"name": f"{self.prefix}-{app}", "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}

    def _make_owners(self) -> list[Object]:
        return [
            self._owner(namespace, app, number)
            for namespace in NAMESPACES
            for app in APPS
            for number in range(2)
            if self.dice.chance(0.5)
        ]

    def _owner(self, namespace: str, app: str, number: int) -> Object:
        kind = self.dice.weighed({"ReplicaSet": 4, "StatefulSet": 2, "ReplicationController": 2})
        labels = {"app": app, "pod-template-hash": f"h{number}"}
        template = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "tools:3"}]},
        }
        selector = labels if kind == "ReplicationController" else {"matchLabels": labels}
        spec: Object = {"replicas": 1, "selector": selector, "template": template}
        if kind == "StatefulSet":
            spec["serviceName"] = app
        metadata = {"name": f"{self.prefix}-{app}-{number}", "namespace": namespace}
        return {"apiVersion": _OWNERS[kind], "kind": kind, "metadata": metadata, "spec": spec}

    def _bound_pod(self, number: int) -> Object:
        dice = self.dice
        pod = self._pod(f"bound-{number}", likely=0.25)
        spec = pod["spec"]
        spec["nodeName"] = dice.choice(self.names)
        if dice.often("claims of bound pods", 0.2):
            namespace = pod["metadata"]["namespace"]
            self._mount(
                spec,
                (dice.chance(0.2) and self.store.used_claim(namespace)) or self.store.bound_claim(namespace),
            )
        if dice.often("claims of their own", 0.06):
            spec.setdefault("volumes", []).append(self.store.own_claim(pod))
        self._add_state(pod)
        return pod

    def _add_state(self, pod: Object) -> None:
        dice, spec = self.dice, pod["spec"]
        if dice.often("resized pods", 0.1):
            pod["status"] = resized_status(dice, spec)
        elif dice.often("finished pods", 0.06):
            pod["status"] = {"phase": dice.choice(["Succeeded", "Failed"])}
            _free_ports(spec)
        elif dice.chance(0.5):
            pod["status"] = {"phase": "Running"}

    def _nominated_pod(self, number: int) -> Object:
        """A pod that waits, with a place kept for it."""
        pod = self._pod(f"nominated-{number}", likely=0.4)
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
        pod["status"] = {"nominatedNodeName": self.dice.choice(self.names)}
        if self.dice.chance(0.1):
            pod["spec"]["schedulerName"] = "somebody-else"
        return pod

    def _probe(self, number: int) -> Object:
        """A pod to be placed; the last one only may leave its mark on the volumes."""
        dice = self.dice
        pod = self._pod(f"probe-{number}", likely=1.0)
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
        namespace = pod["metadata"]["namespace"]
        if dice.often("claims of probes", 0.3):
            self._mount(
                pod["spec"],
                (dice.chance(0.4) and self.store.used_claim(namespace)) or self.store.bound_claim(namespace),
            )
        if number == 2 and dice.often("waiting claims", 0.35):
            for _ in range(dice.weighed({1: 3, 2: 1})):
                self._mount(pod["spec"], self.store.waiting_claim(namespace))
        elif dice.often("nominated probes", 0.1):
            pod["status"] = {"nominatedNodeName": dice.choice([*self.names, "nobody-knows"])}
        if dice.often("claims of their own", 0.06):
            pod["spec"].setdefault("volumes", []).append(self.store.own_claim(pod))
        if dice.often("refused claims", 0.03):
            self._mount(pod["spec"], self.store.refused_claim(namespace))
        return pod

    def _pod(self, name: str, *, likely: float) -> Object:
        """Draw a pod; probes ask for more than the others, whom nobody asks where they would go."""
        dice = self.dice
        namespace = dice.choice(NAMESPACES)
        labels = {"app": dice.choice(APPS), **asks.version_label(dice)}
        if dice.chance(0.5):
            labels["tier"] = dice.choice(TIERS)
        metadata: Object = {"name": f"{self.prefix}-{name}", "namespace": namespace, "labels": labels}
        self._adopt(metadata)
        spec = {**make_containers(dice, heavy=1.0), "terminationGracePeriodSeconds": 30}
        self._constrain(spec, labels, likely)
        self._decorate(spec, likely)
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _adopt(self, metadata: Object) -> None:
        """Some pods have an owner in their namespace, whose labels they carry."""
        owners = [one for one in self.owners if one["metadata"]["namespace"] == metadata["namespace"]]
        if not owners or not self.dice.often("owners", 0.6):
            return
        owner = self.dice.choice(owners)
        name, kind = owner["metadata"]["name"], owner["kind"]
        metadata["labels"] |= owner["spec"]["template"]["metadata"]["labels"]
        reference = {"apiVersion": owner["apiVersion"], "kind": kind, "name": name, "controller": True}
        metadata["ownerReferences"] = [{**reference, "uid": f"{kind}/{metadata['namespace']}/{name}"}]

    def _constrain(self, spec: Object, labels: Object, likely: float) -> None:
        dice = self.dice
        parts = {
            "nodeAffinity": asks.node_affinity(dice, self.names, hard=0.16 * likely, soft=0.35 * likely),
            "podAffinity": asks.pod_affinity(
                dice, labels, kind="affinity", hard=0.06 * likely, soft=0.35 * (0.3 + 0.7 * likely)
            ),
            "podAntiAffinity": asks.pod_affinity(
                dice, labels, kind="anti-affinity", hard=0.06 * likely, soft=0.35 * (0.3 + 0.7 * likely)
            ),
        }
        affinity = {kind: part for kind, part in parts.items() if part}
        if affinity:
            spec["affinity"] = affinity
        constraints = asks.spread(dice, labels, hard=0.2 * likely, soft=0.3 * likely)
        if constraints:
            spec["topologySpreadConstraints"] = constraints
        if dice.often("node selector", 0.12 * likely):
            spec["nodeSelector"] = (
                {ZONE: dice.choice(ZONES)} if dice.chance(0.5) else {"disk": dice.choice(["ssd", "hdd"])}
            )
        tolerated = asks.tolerations(dice, 0.4)
        if tolerated:
            spec["tolerations"] = tolerated

    def _decorate(self, spec: Object, likely: float) -> None:
        dice = self.dice
        if dice.often("priorities", 0.4):
            spec["priorityClassName"] = dice.choice(sorted(PRIORITIES))
        if dice.often("overhead", 0.1):
            spec["runtimeClassName"] = dice.choice(sorted(RUNTIMES))
        if dice.often("inline disks", 0.15):
            spec.setdefault("volumes", []).append({"name": "disk", **inline_disk(dice)})
        if dice.often("image volumes", 0.1):
            volume = {"name": "image", "image": {"reference": dice.choice(IMAGES)}}
            spec.setdefault("volumes", []).append(volume)
        if dice.often("user namespaces", 0.06 * likely):
            spec["hostUsers"] = False
        elif dice.often("host network", 0.06 * likely):
            spec["hostNetwork"] = True
            _match_ports(spec)
        if self.schedulers:
            spec["schedulerName"] = dice.choice(self.schedulers)

    def _mount(self, spec: Object, claim: str) -> None:
        volumes = spec.setdefault("volumes", [])
        if all(one.get("persistentVolumeClaim", {}).get("claimName") != claim for one in volumes):
            volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim}})


def _keep(dice: Dice, pod: Object) -> Object:
    """Let some terminating pods stay for a finalizer, the others for their grace period."""
    if dice.chance(0.3):
        pod["metadata"]["finalizers"] = [FINALIZER]
    return pod


def _free_ports(spec: Object) -> None:
    """Let a pod that ends have no port of its node: kube-scheduler forgets whoever else has it then.

    Two pods of one node have the same port only if somebody bound them by hand, as is done here.
    """
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.pop("ports", None)


def _match_ports(spec: Object) -> None:
    """On the host's network every port is one of the host."""
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for port in container.get("ports", ()):
            port["hostPort"] = port["containerPort"]
