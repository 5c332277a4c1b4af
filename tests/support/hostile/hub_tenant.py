"""A tenant of the hub, and whoever writes Clusters, Works or rebalancers there, at their strangest.

Some of it goes beyond our definitions: they may be those of Karmada, which limit less.
"""

from collections.abc import Callable, Sequence

from tests.support import builders
from tests.support.builders import Object
from tests.support.hostile.dice import HostileDice
from tests.support.hostile.json_junk import junk, status
from tests.support.hostile.placements import CLUSTERS, COUNTS, failover, placement
from tests.support.hostile.pods import make_pod
from tests.support.hostile.values import INT32, KEYS, LABELS, QUANTITIES, TIMES
from tests.support.large_objects import TENANT

NEIGHBOURS = "shop"
_WORKLOADS = (
    *(("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet")),
    *(("batch/v1", "Job"), ("batch/v1", "CronJob")),
)
_OTHERS = (
    *(("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "ServiceAccount")),
    *(("rbac.authorization.k8s.io/v1", "Role"), ("rbac.authorization.k8s.io/v1", "RoleBinding")),
)
_KINDS = (*_WORKLOADS, *_OTHERS, ("a/b/c", "D"), ("", ""), ("x" * 300 + "/v1", "K" * 100), ("v1", "Node"))
_LONG_QUANTITIES = (*QUANTITIES, "1" * 1_000, "1" * 64 + "e1.5", "1e99", "-1", "1e1.5")
_CONDITION = {"status": "True", "reason": "Any", "lastTransitionTime": TIMES[1]}
_EVEN_TIMES = (None, *TIMES)


class HubTenant:
    """Draws objects; each has a name of its own."""

    def __init__(self, seed: int) -> None:
        self._dice = HostileDice(seed)

    def claim_all(self) -> Object:
        """A policy that sends whatever the tenant has to an honest member and to a hostile one."""
        selectors = [{"apiVersion": version, "kind": kind} for version, kind in (*_WORKLOADS, *_OTHERS)]
        placement = {"clusterAffinity": {"clusterNames": ["m1", "evil"]}}
        spec = {"resourceSelectors": selectors, "placement": placement, "propagateDeps": True}
        return self._object("policy.karmada.io/v1alpha1", "PropagationPolicy", spec)

    def draw(self, count: int) -> list[Object]:
        makers: Sequence[tuple[Callable[[], Object], float]] = (
            *((self.workload, 6), (self.template, 3), (self.policy, 5), (self.binding, 6)),
            *((self.work, 3), (self.rebalancer, 2), (self.cluster, 1)),
        )
        chosen = self._dice.random.choices(
            [each for each, _ in makers], [weight for _, weight in makers], k=count
        )
        return [make() for make in chosen]

    def workload(self) -> Object:
        version, kind = self._dice.pick(_WORKLOADS)
        pod = {"metadata": {"labels": {"app": "evil"}}, "spec": make_pod(self._dice)["spec"]}
        spec = {
            "replicas": self._dice.pick(COUNTS),
            "parallelism": self._dice.pick((None, *COUNTS)),
            "completions": self._dice.pick((None, *COUNTS)),
            "template": pod,
            "jobTemplate": {"spec": {"template": pod}},
        }
        counts = ("replicas", "readyReplicas", "observedGeneration")
        said = {name: self._dice.pick(INT32) for name in counts}
        return self._object(version, kind, spec, status=said)

    def template(self) -> Object:
        version, kind = self._dice.pick(_OTHERS)
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}] * self._dice.pick((1, 500))
        data = {f"k{number}": "x" * 1_000 for number in range(self._dice.pick((0, 1, 400)))}
        reference = {"kind": self._dice.pick(("Role", "ClusterRole", "X")), "name": self._dice.pick(LABELS)}
        made = self._object(version, kind, {"type": self._dice.pick((None, "LoadBalancer")), "ports": []})
        return {**made, "data": data, "rules": rules, "roleRef": reference, "subjects": None}

    def policy(self) -> Object:
        selectors = [self._selector() for _ in range(self._dice.pick((1, 3, 64, 300)))]
        spec = {
            "resourceSelectors": selectors,
            "propagateDeps": self._dice.pick((None, True)),
            "placement": placement(self._dice),
            "priority": self._dice.pick((None, *INT32)),
            "preemption": self._dice.pick((None, "Always", "Never")),
            "schedulerName": self._dice.pick(("default-scheduler", "x" * 253)),
            "failover": self._dice.pick((None, failover(self._dice))),
            "conflictResolution": self._dice.pick((None, "Abort", "Overwrite")),
            "suspension": self._dice.pick((None, {"dispatching": True})),
        }
        return self._object("policy.karmada.io/v1alpha1", "PropagationPolicy", spec)

    def binding(self) -> Object:
        version, kind = self._dice.pick(_KINDS)
        uid = self._dice.pick(("", "u" * 1_000))
        resource = {"apiVersion": version, "kind": kind, "uid": uid, **self._referred()}
        spec = {
            "resource": resource,
            "replicas": self._dice.pick(COUNTS),
            "clusters": self._targets(),
            "placement": self._dice.pick((None, placement(self._dice))),
            "replicaRequirements": self._dice.pick((None, {"resourceRequest": self._amounts()})),
            "components": self._dice.pick((None, [{"name": "c", "replicas": self._dice.pick(COUNTS)}] * 50)),
            "gracefulEvictionTasks": [self._eviction() for _ in range(self._dice.pick((0, 1, 50)))],
            "requiredBy": self._dice.pick((None, [{"name": "web-deployment", "namespace": NEIGHBOURS}] * 40)),
            "failover": self._dice.pick((None, failover(self._dice))),
            "rescheduleTriggeredAt": self._dice.pick(_EVEN_TIMES),
            "handover": self._dice.pick((None, self._handover())),
            "suspension": self._dice.pick((None, {"scheduling": True})),
            "schedulePriority": self._dice.pick((None, {"priority": self._dice.pick(INT32)})),
        }
        told = self._binding_status()
        made = self._object("work.karmada.io/v1alpha2", "ResourceBinding", spec, status=told)
        said = {"policy.karmada.io/applied-placement": self._dice.pick((None, self._dice.text(), "{}"))}
        made["metadata"]["annotations"] |= {name: text for name, text in said.items() if text is not None}
        return made

    def work(self) -> Object:
        cluster = self._dice.pick(("m1", "evil", "nope"))
        manifests = [self._manifest() for _ in range(self._dice.pick((0, 1, 3, 64)))]
        spec = {"workload": {"manifests": manifests}, "suspendDispatching": self._dice.pick((None, True))}
        made = self._object("work.karmada.io/v1alpha1", "Work", spec, namespace=f"karmada-es-{cluster}")
        made["metadata"]["finalizers"] = self._dice.pick(([], ["karmada.io/execution-controller"]))
        made["metadata"]["annotations"] |= {
            "resourcebinding.karmada.io/name": self._dice.pick(("web-deployment", "nope", "../x")),
            "resourcebinding.karmada.io/namespace": TENANT,
        }
        return made

    def rebalancer(self) -> Object:
        workloads = [self._workload_name() for _ in range(self._dice.pick((0, 1, 200)))]
        selector = {**self._selector(), "namespace": TENANT}
        spec = {
            "workloads": workloads,
            "workloadSelectors": self._dice.pick((None, [selector])),
            "handoverTimeoutSeconds": self._dice.pick((None, *INT32)),
            "maxMovingReplicas": self._dice.pick((None, 1, 2**31 - 1)),
            "ttlSecondsAfterFinished": self._dice.pick((None, 0, *INT32)),
        }
        observed = [{"workload": each, "triggeredAt": self._dice.pick(_EVEN_TIMES)} for each in workloads]
        said = {"observedWorkloads": observed, "finishTime": self._dice.pick(_EVEN_TIMES)}
        return self._object("apps.karmada.io/v1alpha1", "WorkloadRebalancer", spec, status=said, namespace="")

    def cluster(self) -> Object:
        """A Cluster whose agent writes its status; it may name any room, any kinds, any taint."""
        kinds = [{"name": "x", "kind": "X"}] * 50
        apis = [{"groupVersion": self._dice.text()[:400], "resources": kinds}] * 50
        said = {
            "apiEnablements": self._dice.pick((None, apis)),
            "conditions": [{"type": "Ready", **_CONDITION, "message": self._dice.text()[:30_000]}],
            "resourceSummary": {
                **{name: self._amounts() for name in ("allocatable", "allocating", "allocated")},
                "allocatableModelings": [{"grade": self._dice.pick(INT32), "count": self._dice.pick(INT32)}],
            },
        }
        taint = {"key": "k", "value": self._dice.pick(LABELS), "effect": "NoExecute", "timeAdded": TIMES[0]}
        ranges = [{"name": "cpu", "min": "0", "max": self._dice.pick(_LONG_QUANTITIES)}]
        spec = {
            "syncMode": "Pull",
            "taints": self._dice.pick((None, [taint])),
            "region": self._dice.pick(LABELS),
            "resourceModels": [{"grade": self._dice.pick(INT32), "ranges": ranges}],
        }
        made = self._object("cluster.karmada.io/v1alpha1", "Cluster", spec, status=said, namespace="")
        made["metadata"]["name"] = self._dice.pick(("pulled", self._dice.name("pulled")))
        return made

    def _selector(self) -> Object:
        version, kind = self._dice.pick(_KINDS)
        return {
            "apiVersion": version,
            "kind": kind,
            "name": self._dice.pick(("", "web", "x" * 253, "../x")),
            "namespace": self._dice.pick(("", TENANT, NEIGHBOURS)),
            "labelSelector": self._dice.selector(),
        }

    def _referred(self) -> Object:
        namespace = self._dice.pick((TENANT, TENANT, NEIGHBOURS, "kube-system", ""))
        return {"namespace": namespace, "name": self._dice.pick(("evil", "web", "../x", "x" * 253))}

    def _workload_name(self) -> Object:
        version, kind = self._dice.pick(_KINDS)
        name = self._dice.pick(("evil", "../x"))
        return {"apiVersion": version, "kind": kind, "name": name, "namespace": TENANT}

    def _targets(self) -> list[Object]:
        return [
            {"name": self._dice.pick(CLUSTERS), "replicas": self._dice.pick(COUNTS)}
            for _ in range(self._dice.pick((0, 1, 5, 300)))
        ]

    def _amounts(self) -> Object:
        names = ("cpu", "memory", "pods", "x" * 300, "example.com/gpu")
        return {self._dice.pick(names): self._dice.pick(_LONG_QUANTITIES) for _ in range(3)}

    def _eviction(self) -> Object:
        return {
            "fromCluster": self._dice.pick(CLUSTERS),
            "replicas": self._dice.pick((None, *COUNTS)),
            "purgeMode": self._dice.pick((None, "Directly", "Gracefully", "Never")),
            "reason": self._dice.text()[:2_000],
            "producer": self._dice.pick(("", "TaintManager", "x" * 1_000)),
            "gracePeriodSeconds": self._dice.pick((None, *INT32)),
            "creationTimestamp": self._dice.pick(_EVEN_TIMES),
            "preservedLabelState": self._dice.pick((None, {"a": self._dice.text()[:2_000]})),
            "clustersBeforeFailover": self._dice.pick((None, list(CLUSTERS) * 30)),
        }

    def _handover(self) -> Object:
        return {
            "timeoutSeconds": self._dice.pick((None, *INT32)),
            "clusters": self._targets(),
            "until": self._dice.pick(_EVEN_TIMES),
            "origin": self._targets(),
            "originAffinity": self._dice.pick((None, "a", self._dice.text()[:500])),
            "returns": self._dice.pick((None, *INT32)),
            "returnedAt": self._dice.pick(_EVEN_TIMES),
        }

    def _binding_status(self) -> Object:
        copies = [
            {
                "clusterName": self._dice.pick(CLUSTERS),
                "status": status(self._dice),
                "health": self._dice.pick(("Healthy", "x" * 500)),
                "applied": True,
                "creationTimestamp": self._dice.pick(_EVEN_TIMES),
            }
            for _ in range(self._dice.pick((0, 1, 20)))
        ]
        return {
            "schedulerObservedGeneration": self._dice.pick(INT32),
            "schedulerObservingAffinityName": self._dice.pick(("", "a", "nope")),
            "lastScheduledTime": self._dice.pick(_EVEN_TIMES),
            "failback": self._dice.pick((None, {"affinityName": "a", "since": self._dice.pick(TIMES)})),
            "conditions": [
                {"type": self._dice.pick(("Scheduled", "x" * 300)), **_CONDITION, "message": "m" * 30_000}
            ],
            "aggregatedStatus": copies,
        }

    def _manifest(self) -> object:
        version, kind = self._dice.pick(_KINDS)
        name = self._dice.pick((None, "", 5, self._dice.name("w")))
        meta = {"name": name, "namespace": TENANT, "labels": self._dice.pick((None, {"a": "b"}, []))}
        good = {"apiVersion": version, "kind": kind, "metadata": meta, "spec": {"replicas": 1}}
        return self._dice.pick((good, good, good, {**good, "metadata": junk(self._dice)}, junk(self._dice)))

    def _object(
        self, version: str, kind: str, spec: Object, *, status: Object | None = None, namespace: str = TENANT
    ) -> Object:
        name = self._dice.name("evil-" + kind.lower()) if self._dice.random.random() < 0.9 else "evil"
        made = builders.meta(name, namespace, uid=f"uid-{kind}-{name}", annotations=self._dice.annotations())
        made["labels"] = {self._dice.pick(KEYS): self._dice.pick(LABELS)}
        made["creationTimestamp"] = self._dice.pick(TIMES[:4])
        made["generation"] = self._dice.pick((1, 2, 2**63 - 1))
        return {"apiVersion": version, "kind": kind, "metadata": made, "spec": spec, "status": status or {}}
