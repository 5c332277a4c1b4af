"""A tenant, and a node, whose objects are as large and as strange as the API server takes them.

Everything here passes the validation of Kubernetes and of our definitions, or is what a kubelet may write of
its own node: texts of any length in annotations and owner references, numbers at the ends of their ranges,
times at the ends of the calendar, selectors that match everybody.
"""

from collections.abc import Callable, Sequence
from functools import partial

from reberth.cluster.pods.identity import name_history
from reberth.cluster.pods.interning import NODE_NOTE
from reberth.records import WorkloadIdentity
from tests.support import builders
from tests.support.builders import Object
from tests.support.hostile.dice import HostileDice
from tests.support.hostile.pods import make_large_pod, make_pod
from tests.support.hostile.values import INT32, LABELS, NODE_OF_TENANT, OWNERS, QUANTITIES, TIMES
from tests.support.large_objects import TENANT, large_budget

_EVIL = WorkloadIdentity("apps/v1", "Deployment", "evil", "uid-d-evil")


class HostileTenant:
    """Draws objects; each has a name of its own."""

    def __init__(self, seed: int) -> None:
        self._dice = HostileDice(seed)

    def draw(self, count: int) -> list[Object]:
        kinds: Sequence[tuple[Callable[[], Object], float]] = (
            *(
                (partial(make_pod, self._dice), 12),
                (self.large_pod, 1),
                (self.node, 2),
                (self.budget, 3),
                (self.claim, 2),
            ),
            *((self.volume, 1), (self.quota, 0.1), (self.autoscaler, 2), (self.scaled_object, 1)),
            *((self.history, 2), (self.score, 2), (self.owner, 2), (self.service, 1), (self.namespace, 1)),
        )
        makers = self._dice.random.choices(
            [each for each, _ in kinds], [weight for _, weight in kinds], k=count
        )
        return [make() for make in makers]

    def large_pod(self) -> Object:
        return make_large_pod(self._dice)

    def node(self) -> Object:
        """What a kubelet may write of its own node."""
        amounts = dict.fromkeys(("cpu", "memory", "pods", f"{TENANT}.example.com/gpu"), "0")
        status = {
            "allocatable": {name: self._dice.one(QUANTITIES) for name in amounts},
            "capacity": {name: self._dice.one(QUANTITIES) for name in amounts},
            "images": [{"names": [self._dice.text(), ""], "sizeBytes": self._dice.one((0, 2**63 - 1))}],
            "conditions": [
                {"type": self._dice.one(("Ready", "x" * 300)), "status": "True", "message": "m" * 10_000}
            ],
        }
        name = self._dice.one((NODE_OF_TENANT, self._dice.name("hostile")))
        labels = {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": "hostile",
            "l": self._dice.one(LABELS),
        }
        notes = {
            NODE_NOTE: self._dice.text(),
        }
        meta = builders.meta(
            name, uid=f"uid-{name}", labels=labels, annotations={**self._dice.annotations(), **notes}
        )
        return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}

    def budget(self) -> Object:
        if self._dice.random.random() < 0.1:
            return {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                **large_budget(self._dice.next_number()),
            }
        status = {
            "disruptionsAllowed": self._dice.one(INT32),
            "currentHealthy": self._dice.one(INT32),
            "desiredHealthy": 1,
            "disruptedPods": self._dice.one(
                (None, {"evil": self._dice.one(TIMES)}, {"x" * 253: "2026-11-18T12:00:00Z"})
            ),
        }
        limit = self._dice.one(({"minAvailable": 0}, {"minAvailable": "100%"}, {"maxUnavailable": 2**31 - 1}))
        return self._object(
            "policy/v1", "PodDisruptionBudget", {"selector": self._dice.selector(), **limit}, status
        )

    def claim(self) -> Object:
        spec = {
            "volumeName": self._dice.one((None, "pv", "nope", "x" * 253)),
            "accessModes": self._dice.one((["ReadWriteMany"], ["ReadWriteOnce"], [])),
            "resources": {"requests": {"storage": self._dice.one(QUANTITIES)}},
            "storageClassName": self._dice.one((None, "", "sc", "x" * 253)),
        }
        status = {"phase": self._dice.one(("Bound", "Pending", "Lost"))}
        return self._object(
            "v1", "PersistentVolumeClaim", spec, status, name=self._dice.one(("c1", self._dice.name("c")))
        )

    def volume(self) -> Object:
        required = {"nodeSelectorTerms": [{"matchExpressions": [self._dice.requirement()]}]}
        spec = {
            "capacity": {"storage": self._dice.one(QUANTITIES)},
            "nodeAffinity": {"required": required},
            "claimRef": {"namespace": TENANT, "name": "c1", "uid": self._dice.text()[:200]},
        }
        made = self._object("v1", "PersistentVolume", spec)
        made["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a__b"}
        return made

    def quota(self) -> Object:
        names = ("requests.cpu", "pods", "count/pods", "requests.example.com/gpu", "limits.memory")
        hard = {name: self._dice.one(QUANTITIES) for name in names}
        used = {name: self._dice.one(QUANTITIES) for name in names}
        return self._object("v1", "ResourceQuota", {"hard": hard}, {"hard": hard, "used": used})

    def autoscaler(self) -> Object:
        target = {
            "apiVersion": self._dice.one(("apps/v1", "", "a/b/c")),
            "kind": "Deployment",
            "name": "evil",
        }
        spec = {"scaleTargetRef": target, "minReplicas": self._dice.one(INT32), "maxReplicas": 2**31 - 1}
        return self._object("autoscaling/v2", "HorizontalPodAutoscaler", spec)

    def scaled_object(self) -> Object:
        target = {
            "name": self._dice.one(("evil", "x" * 2_000)),
            "kind": self._dice.one((None, "Deployment", "Foo")),
        }
        return self._object("keda.sh/v1alpha1", "ScaledObject", {"scaleTargetRef": target})

    def history(self) -> Object:
        """What the definition of EvictionHistories takes from the owner of a namespace."""
        moves = [self._open_move(number) for number in range(self._dice.random.randrange(4))]
        past = [self._past_move(number) for number in range(self._dice.random.randrange(5))]
        status = {"open": moves, "past": past, "givenUpUntil": self._dice.one((None, TIMES[1], TIMES[4]))}
        spec = {
            "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "evil", "uid": "uid-d-evil"}
        }
        name = self._dice.one((name_history(_EVIL), self._dice.name("h")))
        return self._object("reberth.dev/v1alpha1", "EvictionHistory", spec, status, name=name)

    def score(self) -> Object:
        names = ("cpu", "green", "x" * 63)
        scores = [{"name": name, "value": self._dice.random.randint(-100, 100)} for name in names]
        spec = {
            "nodeName": self._dice.one(("n0", "n1", NODE_OF_TENANT)),
            "source": self._dice.one(("load", TENANT)),
        }
        status = {"scores": scores, "validUntil": self._dice.one((None, *TIMES[:4]))}
        return self._object("reberth.dev/v1alpha1", "NodePlacementScore", spec, status)

    def owner(self) -> Object:
        kind = self._dice.one(("Deployment", "ReplicaSet", "StatefulSet"))
        spec = {
            "replicas": self._dice.one(INT32),
            "selector": self._dice.selector(),
            "paused": self._dice.one((None, True)),
        }
        status = {name: self._dice.one(INT32) for name in ("replicas", "readyReplicas", "observedGeneration")}
        made = self._object(
            "apps/v1", kind, spec, status, name=self._dice.one(("evil", "evil-abc", self._dice.name("e")))
        )
        made["metadata"]["ownerReferences"] = self._dice.one(OWNERS)
        return made

    def service(self) -> Object:
        selector = {f"k{number}": self._dice.one(LABELS) for number in range(self._dice.one((0, 1, 500)))}
        return self._object("v1", "Service", {"selector": selector})

    def namespace(self) -> Object:
        made = self._object("v1", "Namespace", {}, name=TENANT)
        made["metadata"]["labels"] = {f"k{number}": self._dice.one(LABELS) for number in range(20)}
        return made

    def _open_move(self, number: int) -> Object:
        return {
            "id": f"m-{number}",
            "pod": self._dice.one(("evil-0", "x" * 253)),
            "podUID": self._dice.one(("uid-evil-0", "uid-shop-web-0", "u" * 128)),
            "controllerUID": self._dice.one(("uid-rs-evil", "uid-shop-web")),
            "from": self._dice.one(("n0", NODE_OF_TENANT, "x" * 253)),
            "destinations": [self._dice.one(("n1", NODE_OF_TENANT))] * self._dice.one((0, 1, 16)),
            "phase": self._dice.one(("Planned", "Noted", "Evicted")),
            "plannedAt": self._dice.one(("1000-01-01T00:00:00Z", *TIMES[1:])),
            "expiresAt": self._dice.one((TIMES[1], TIMES[4])),
            "policy": "x" * 253,
            "reason": "y" * 1024,
        }

    def _past_move(self, number: int) -> Object:
        return {
            "id": f"p-{number}",
            "pod": "evil-0",
            "podUID": "u",
            "from": "n0",
            "outcome": self._dice.one(
                ("Same", "Worse", "Returned", "Pending", "Unknown", "Better", "Refused")
            ),
            "closedAt": self._dice.one(("1000-01-01T00:00:00Z", *TIMES[1:])),
            "evictedAt": "2026-11-18T11:00:00Z",
            "scoreBefore": 2**63 - 1,
            "scoreAfter": -(2**63),
            "timeToReady": 2**63 - 1,
            "blockUntil": self._dice.one((None, TIMES[1], TIMES[4])),
            "landedOn": "n2",
        }

    def _object(
        self, version: str, kind: str, spec: Object, status: Object | None = None, *, name: str = ""
    ) -> Object:
        name = name or self._dice.name(kind.lower())
        meta = builders.meta(name, TENANT, uid=f"uid-{kind}-{name}", annotations=self._dice.annotations())
        return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec, "status": status or {}}
