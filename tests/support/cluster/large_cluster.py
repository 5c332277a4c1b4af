"""Generate a large cluster as an API server would write it: pods of about 7 KB with managedFields, fat nodes.

Everything is derived from numbers, so two calls give the same bytes. Pages are generated one by one: a
thousand megabytes of JSON are never in memory together.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

Json = dict[str, Any]

START = "2026-11-18T09:15:31Z"
TOKEN_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [
                {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
            ]
        }
    },
]
TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for key in ("not-ready", "unreachable")
]
CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def uid_of(*parts: object) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, parts))))


def managed_fields(names: list[str]) -> list[Json]:
    """Write what the API server remembers of who wrote which field: a third of a real pod."""
    container = {
        f"f:{field}": {} for field in ("image", "imagePullPolicy", "name", "terminationMessagePath")
    } | {
        ".": {},
        "f:env": {".": {}}
        | {f'k:{{"name":"VARIABLE_{i}"}}': {".": {}, "f:name": {}, "f:value": {}} for i in range(6)},
        "f:livenessProbe": {f"f:{field}": {} for field in ("failureThreshold", "httpGet", "periodSeconds")},
        "f:readinessProbe": {f"f:{field}": {} for field in ("failureThreshold", "httpGet", "periodSeconds")},
        "f:resources": {
            ".": {},
            "f:limits": {".": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
        },
    }
    spec = {
        "f:containers": {f'k:{{"name":"{name}"}}': container for name in names},
        "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
        "f:securityContext": {}, "f:terminationGracePeriodSeconds": {},
    }  # fmt: skip
    meta: Json = {
        "f:generateName": {},
        "f:labels": {".": {}, "f:app": {}, "f:pod-template-hash": {}},
        "f:ownerReferences": {".": {}},
    }
    condition: Json = {".": {}} | {
        f"f:{field}": {} for field in ("lastProbeTime", "lastTransitionTime", "status", "type")
    }
    status = {
        "f:conditions": {f'k:{{"type":"{kind}"}}': condition for kind in CONDITIONS},
        "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}, "f:podIP": {}, "f:startTime": {},
    }  # fmt: skip
    entry = {"operation": "Update", "apiVersion": "v1", "time": START, "fieldsType": "FieldsV1"}
    return [
        entry | {"manager": "kube-controller-manager", "fieldsV1": {"f:metadata": meta, "f:spec": spec}},
        entry | {"manager": "kubelet", "fieldsV1": {"f:status": status}, "subresource": "status"},
    ]


def container(name: str, app: int, *, cpu: str, memory: str) -> Json:
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
        "failureThreshold": 3,
    }
    return {
        "name": name,
        "image": f"registry.example.com/team-{app % 40}/{name}-{app % 700}:v1.{app % 30}.0",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "env": [{"name": f"VARIABLE_{i}", "value": f"value-{app}-{i}"} for i in range(6)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [
            {"name": "kube-api-access-@TAIL@", "readOnly": True, "mountPath": "/var/run/secrets"}
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def container_status(spec: Json) -> Json:
    return {
        "name": spec["name"],
        "state": {"running": {"startedAt": START}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": spec["image"],
        "imageID": f"{spec['image']}@sha256:{'0a1b2c3d' * 8}",
        "containerID": "containerd://@UID@@UID@",
        "started": True,
        "allocatedResources": spec["resources"]["requests"],
        "resources": spec["resources"],
        "user": {"linux": {"uid": 1000, "gid": 1000, "supplementalGroups": [1000]}},
    }


def workload(app: int) -> Json:
    """Write one ReplicaSet's pod with @MARKS@ where its replicas differ; 12 % carry a sidecar."""
    name, namespace = f"service-{app}-7d9c6b5f8", f"team-{app % 300}"
    containers = [container("main", app, cpu=f"{100 + app % 9 * 50}m", memory=f"{128 + app % 7 * 64}Mi")]
    if app % 8 == 0:
        containers.append(container("proxy", app, cpu="50m", memory="64Mi"))
    labels = {
        "app": f"service-{app}",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/part-of": f"product-{app % 50}",
        "pod-template-hash": "7d9c6b5f8", "team": namespace, "topology.kubernetes.io/region": "r1",
        "topology.kubernetes.io/zone": "@ZONE@",
    }  # fmt: skip
    owner = {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid_of("rs", app),
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-@TAIL@",
            "generateName": f"{name}-",
            "namespace": namespace,
            "uid": "@UID@",
            "resourceVersion": "@VERSION@",
            "generation": 1,
            "creationTimestamp": START,
            "labels": labels,
            "annotations": {"checksum/config": "f00d" * 16, "prometheus.io/scrape": "true"},
            "ownerReferences": [owner],
            "managedFields": managed_fields([each["name"] for each in containers]),
        },
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": f"service-{app}", "defaultMode": 420}},
                {"name": "scratch", "emptyDir": {}},
                {
                    "name": "kube-api-access-@TAIL@",
                    "projected": {"sources": TOKEN_SOURCES, "defaultMode": 420},
                },
            ],
            "containers": containers,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": "@NODE@",
            "securityContext": {},
            "affinity": spread_out(f"service-{app}") if app % 5 == 0 else {},
            "schedulerName": "default-scheduler",
            "tolerations": TOLERATIONS,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": START}
                for kind in CONDITIONS
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.2.3",
            "startTime": START,
            "containerStatuses": [container_status(each) for each in containers],
            "qosClass": "Burstable",
        },
    }


def template_of(pod: Json) -> Json:
    """Write the template from which the API server has made this pod."""
    copied, added = "topology.kubernetes.io/", ("nodeName", "priority", "preemptionPolicy", "tolerations")
    labels = {key: text for key, text in pod["metadata"]["labels"].items() if not key.startswith(copied)}
    spec = {name: value for name, value in pod["spec"].items() if name not in added}
    volumes = [each for each in spec.get("volumes", ()) if "projected" not in each]
    return {"metadata": {"labels": labels}, "spec": {**spec, "volumes": volumes}}


def spread_out(app: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def pod_texts(count: int, *, replicas: int, nodes: int) -> Iterator[str]:
    for app in range(-(-count // replicas)):
        text = json.dumps(workload(app), separators=(",", ":"))
        for replica in range(min(replicas, count - app * replicas)):
            yield fill_in(text, app * replicas + replica, nodes=nodes)


def fill_in(text: str, number: int, *, nodes: int) -> str:
    marks = {
        "@TAIL@": f"{number * 7919 % 0xFFFFF:05x}",
        "@UID@": uid_of("pod", number),
        "@VERSION@": str(1_000_000 + number),
        "@NODE@": f"node-{number * 7 % nodes:04d}",
        "@ZONE@": "abc"[number % 3],
    }
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text


def pod_pages(count: int, *, replicas: int = 10, nodes: int = 5000, page: int = 500) -> Iterator[bytes]:
    """Write the pods as lists, as `limit` and `continue` would deliver them."""
    return as_pages("Pod", pod_texts(count, replicas=replicas, nodes=nodes), page=page)


def as_pages(kind: str, texts: Iterable[str], *, page: int = 500) -> Iterator[bytes]:
    """Write objects as lists of so many; of none, one that is empty."""
    left = iter(texts)
    some = list(islice(left, page))
    yield as_list(kind, some)
    while some := list(islice(left, page)):
        yield as_list(kind, some)


def as_list(kind: str, texts: list[str]) -> bytes:
    head = f'{{"kind":"{kind}List","apiVersion":"v1","metadata":{{"resourceVersion":"9000000"}},"items":['
    return (head + ",".join(texts) + "]}").encode()


def node(number: int) -> Json:
    name = f"node-{number:04d}"
    labels = {
        "beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": "m6i.4xlarge",
        "topology.kubernetes.io/zone": "abc"[number % 3], "topology.kubernetes.io/region": "r1",
    } | {f"vendor.example.com/label-{i}": f"value-{i}" for i in range(12)}  # fmt: skip
    conditions = [
        {
            "type": kind, "status": "True" if kind == "Ready" else "False", "reason": f"Kubelet{kind}",
            "message": f"kubelet reports {kind}", "lastHeartbeatTime": START, "lastTransitionTime": START,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]  # fmt: skip
    images = [
        {
            "names": [
                f"registry.example.com/team-{i % 40}/main-{i}@sha256:{i:064x}",
                f"registry.example.com/team-{i % 40}/main-{i}:v1.{i % 30}.0",
            ],
            "sizeBytes": 20_000_000 + i,
        }
        for i in ((number * 13 + k * 17) % 700 for k in range(50))
    ]
    amounts = {
        "cpu": "15890m",
        "ephemeral-storage": "95551679124",
        "hugepages-2Mi": "0",
        "memory": "61219316Ki",
        "pods": "110",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name, "uid": uid_of("node", number), "resourceVersion": str(5_000_000 + number),
            "creationTimestamp": START, "labels": labels,
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
        },
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": f"aws:///r1/i-{number:017x}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": conditions, "images": images},
    }  # fmt: skip


def node_pages(count: int, *, page: int = 500) -> Iterator[bytes]:
    for first in range(0, count, page):
        yield as_list("Node", [json.dumps(node(number)) for number in range(first, min(first + page, count))])
