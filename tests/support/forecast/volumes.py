"""Builders for claims, volumes and other storage objects, each in one readable line."""

from typing import Any

from tests.support.builders import meta

Object = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DRIVER = "disk.example"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def claim(
    name: str,
    *,
    volume: str | None = None,
    size: str | None = "1Gi",
    access: tuple[str, ...] = ("ReadWriteOnce",),
    storage_class: str | None = "wait",
    namespace: str = "default",
    annotations: dict[str, str] | None = None,
    phase: str | None = None,
    deleted: str | None = None,
    owned_by: Object | None = None,
    **spec: Any,
) -> Object:
    """A claim, bound when it names a volume."""
    metadata = meta(
        name,
        namespace,
        uid=f"uid-of-{namespace}-{name}",
        annotations={**(BOUND if volume else {}), **(annotations or {})},
        deletionTimestamp=deleted,
        ownerReferences=[owned_by] if owned_by else None,
    )
    content = {
        "accessModes": list(access),
        "resources": {"requests": {"storage": size}} if size else {},
        "volumeName": volume,
        "storageClassName": storage_class,
        **spec,
    }
    state = {"phase": phase or ("Bound" if volume else "Pending")}
    return _made("v1", "PersistentVolumeClaim", metadata, spec=content, status=state)


def volume(
    name: str,
    *,
    size: str = "1Gi",
    access: tuple[str, ...] = ("ReadWriteOnce",),
    storage_class: str = "wait",
    near: Object | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    phase: str = "Available",
    deleted: str | None = None,
    **spec: Any,
) -> Object:
    """A volume; a CSI one if nothing else is said."""
    sources = {"gcePersistentDisk", "awsElasticBlockStore", "cinder", "azureDisk", "portworxVolume", "nfs"}
    source = {} if sources & spec.keys() else {"csi": {"driver": DRIVER, "volumeHandle": name}}
    content = {
        "capacity": {"storage": size},
        "accessModes": list(access),
        "storageClassName": storage_class,
        **({"nodeAffinity": {"required": near}} if near else {}),
        **source,
        **spec,
    }
    metadata = meta(name, labels=labels, annotations=annotations, deletionTimestamp=deleted)
    return _made("v1", "PersistentVolume", metadata, spec=content, status={"phase": phase})


def owned(claim_name: str, uid: str | None = None, namespace: str = "default") -> Object:
    """The claimRef of a volume."""
    return {"namespace": namespace, "name": claim_name, **({"uid": uid} if uid else {})}


def near(key: str, *values: str, operator: str = "In") -> Object:
    """A node selector of one requirement."""
    return {"nodeSelectorTerms": [{"matchExpressions": [_requirement(key, operator, values)]}]}


def storage_class(
    name: str = "wait",
    *,
    provisioner: str = DRIVER,
    mode: str | None = "WaitForFirstConsumer",
    allowed: tuple[Object, ...] = (),
) -> Object:
    return _made(
        "storage.k8s.io/v1",
        "StorageClass",
        meta(name),
        provisioner=provisioner,
        volumeBindingMode=mode,
        allowedTopologies=list(allowed),
    )


def topology(key: str, *values: str) -> Object:
    return {"matchLabelExpressions": [{"key": key, "values": list(values)}]}


def csi_driver(name: str = DRIVER, **spec: Any) -> Object:
    return _made("storage.k8s.io/v1", "CSIDriver", meta(name), spec=spec)


def csi_node(name: str, *, migrated: str | None = None, **limits: int | None) -> Object:
    """What the drivers on a node can attach; names of drivers with `__` for dots."""
    drivers: list[Object] = [
        {
            "name": driver.replace("__", "."),
            "nodeID": name,
            "topologyKeys": [],
            "allocatable": None if count is None else {"count": count},
        }
        for driver, count in limits.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else None
    metadata = meta(name, annotations=annotations)
    return _made("storage.k8s.io/v1", "CSINode", metadata, spec={"drivers": drivers})


def attachment(volume_name: str | None, node: str, attacher: str = DRIVER) -> Object:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume_name}}
    return _made("storage.k8s.io/v1", "VolumeAttachment", meta(f"{volume_name}-on-{node}"), spec=spec)


def pool(
    name: str,
    room: str | None,
    *,
    largest: str | None = None,
    near: Object | None = None,
    storage_class: str = "wait",
) -> Object:
    """Room for volumes of a class near some nodes; `near` is a label selector."""
    return _made(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        meta(name, "default"),
        nodeTopology=near,
        storageClassName=storage_class,
        capacity=room,
        maximumVolumeSize=largest,
    )


def claimed(*names: str) -> list[Object]:
    """The volumes of a pod with these claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(names)
    ]


def ephemeral(name: str, **spec: Any) -> list[Object]:
    content = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": content}}}]


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Object:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _made(version: str, kind: str, metadata: Object, **fields: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
