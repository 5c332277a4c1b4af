"""Objects of every kind that the federation propagates, and policies that select them."""

from collections.abc import Mapping
from typing import Any

from tests.support.builders import Object


def path_of(api_version: str, plural: str, *, namespaced: bool = True) -> str:
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/default/{plural}" if namespaced else f"{root}/{plural}"


POD: Object = {"containers": [{"name": "main", "image": "web:1"}], "terminationGracePeriodSeconds": 1}
LABELS = {"app": "all"}
OF_PODS = {"app": "workload"}
WORKLOAD: Object = {
    "selector": {"matchLabels": OF_PODS},
    "template": {"metadata": {"labels": OF_PODS}, "spec": POD},
}
JOB: Object = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
# By kind: where it is kept, what it holds, how it is changed.
KINDS: Mapping[str, tuple[str, str, Object, Object]] = {
    "Deployment": (
        "apps/v1",
        "deployments",
        {"spec": {"replicas": 2, **WORKLOAD}},
        {"spec": {"replicas": 3}},
    ),
    "StatefulSet": (
        "apps/v1",
        "statefulsets",
        {"spec": {"replicas": 2, **WORKLOAD}},
        {"spec": {"replicas": 1}},
    ),
    "DaemonSet": ("apps/v1", "daemonsets", {"spec": WORKLOAD}, {"spec": {"minReadySeconds": 1}}),
    "Job": (
        "batch/v1",
        "jobs",
        {"spec": {**JOB, "completions": 2}},
        {"spec": {"activeDeadlineSeconds": 900}},
    ),
    "CronJob": (
        "batch/v1",
        "cronjobs",
        {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": JOB}}},
        {"spec": {"suspend": True}},
    ),
    "Pod": ("v1", "pods", {"spec": POD}, {"metadata": {"labels": {"tide": "high"}}}),
    "Service": (
        "v1",
        "services",
        {"spec": {"selector": LABELS, "ports": [{"port": 80}]}},
        {"spec": {"sessionAffinity": "ClientIP"}},
    ),
    "ConfigMap": ("v1", "configmaps", {"data": {"tide": "low"}}, {"data": {"tide": "high"}}),
    "Secret": ("v1", "secrets", {"stringData": {"tide": "low"}}, {"data": {"tide": "aGlnaA=="}}),
    "Berth": ("example.com/v1", "berths", {"spec": {"length": 40}, "tides": [1]}, {"tides": [1, 2]}),
}
CLUSTER_KINDS: Mapping[str, tuple[str, str, Object, Object]] = {
    "ClusterRole": (
        "rbac.authorization.k8s.io/v1",
        "clusterroles",
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
        {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
    ),
    "Harbour": ("example.com/v1", "harbours", {"spec": {"depth": 9}}, {"spec": {"depth": 10}}),
}
ALL = [(kind, *rest, True) for kind, rest in KINDS.items()] + [
    (kind, *rest, False) for kind, rest in CLUSTER_KINDS.items()
]


def definition(kind: str, *, namespaced: bool) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    return {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [version],
        },
    }


def selecting(name: str, *selectors: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name},
        "spec": {"resourceSelectors": list(selectors), **spec},
    }


def selecting_anywhere(name: str, *selectors: Object, **spec: Any) -> Object:
    return {**selecting(name, *selectors, **spec), "kind": "ClusterPropagationPolicy"}


def on(*names: str) -> Object:
    return {"clusterAffinity": {"clusterNames": list(names)}}
