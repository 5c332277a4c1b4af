"""Workloads of somebody who minds his own business, their policies, and the clusters that they name."""

from typing import NamedTuple

from tests.support import builders
from tests.support.builders import Object

SHOP = "shop"
REPLICAS = 4


class Neighbour(NamedTuple):
    """An object, and the clusters that its policy names."""

    api_version: str
    kind: str
    name: str
    clusters: tuple[str, ...]

    @property
    def binding(self) -> str:
        return f"{self.name}-{self.kind.lower()}"

    def write(self) -> Object:
        pod = {"metadata": {"labels": {"app": self.name}}, "spec": {"containers": [{"name": "c"}]}}
        spec: Object = {"replicas": REPLICAS, "template": pod}
        if self.kind == "Service":
            spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
        elif self.kind == "Job":
            spec = {"parallelism": REPLICAS, "template": pod}
        meta = builders.meta(self.name, SHOP, uid=f"uid-{self.kind}-{self.name}", generation=1)
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, "spec": spec}

    def write_policy(self) -> Object:
        """Half of the replicas for each of two clusters."""
        weights = [{"targetCluster": {"clusterNames": [each]}, "weight": 1} for each in self.clusters]
        scheduling = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": weights},
        }
        affinity = {"clusterNames": list(self.clusters)}
        selector = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name}
        name = f"{self.kind.lower()}-{self.name}"
        return {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": builders.meta(name, SHOP, uid=f"uid-policy-{name}"),
            "spec": {
                "resourceSelectors": [selector],
                "placement": {"clusterAffinity": affinity, "replicaScheduling": scheduling},
            },
        }


NEIGHBOURS = (
    Neighbour("apps/v1", "Deployment", "web", ("m1", "m2")),
    Neighbour("apps/v1", "Deployment", "both", ("m1", "evil")),
    Neighbour("v1", "Service", "both", ("m1", "evil")),
    Neighbour("batch/v1", "Job", "both", ("m1", "evil")),
)


def write_cluster(name: str) -> Object:
    served = (
        ("apps/v1", "deployments", "Deployment"),
        ("v1", "services", "Service"),
        ("batch/v1", "jobs", "Job"),
    )
    apis = [
        {"groupVersion": version, "resources": [{"name": plural, "kind": kind}]}
        for version, plural, kind in served
    ]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": builders.meta(name, uid=f"uid-{name}"),
        "spec": {"syncMode": "Push"},
        "status": {"apiEnablements": apis},
    }
