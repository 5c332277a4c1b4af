"""Create the objects of a case in a cluster, and remove them again."""

import asyncio
import copy
from collections.abc import Iterable, Sequence
from typing import Any

from localcluster.client import Client, all_of
from tests.support.forecast.cases.cases import Case
from tests.support.forecast.cases.dice import Object

_PLURALS = {
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "Service": "services",
    "ReplicationController": "replicationcontrollers",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "Job": "jobs",
    "EvictionHistory": "evictionhistories",
    "NodePlacementScore": "nodeplacementscores",
}
_VERSIONS = {
    "v1": (
        "Namespace",
        "Node",
        "Pod",
        "Service",
        "ReplicationController",
        "PersistentVolume",
        "PersistentVolumeClaim",
    ),
    "apps/v1": ("ReplicaSet", "StatefulSet"),
    "storage.k8s.io/v1": ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"),
    "batch/v1": ("Job",),
    "reberth.dev/v1alpha1": ("EvictionHistory", "NodePlacementScore"),
}
_VERSION_OF = {kind: version for version, kinds in _VERSIONS.items() for kind in kinds}
_FOR_THE_EXTENDER = (*_VERSIONS["batch/v1"], *_VERSIONS["reberth.dev/v1alpha1"])
_FOR_THE_SCHEDULER = tuple(kind for kind in _VERSION_OF if kind not in _FOR_THE_EXTENDER)
_WITH_STATUS = {
    "Pod",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "EvictionHistory",
    "NodePlacementScore",
}
_WAVES = 4
_NAMESPACED = {
    "Pod",
    "Service",
    "ReplicationController",
    "PersistentVolumeClaim",
    "CSIStorageCapacity",
    "Job",
    "EvictionHistory",
    *_VERSIONS["apps/v1"],
}
NOW = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}


def path_of(made: Object, *parts: str) -> str:
    """Where an object is, or would be."""
    meta = made["metadata"]
    place = collection(made["apiVersion"], made["kind"], meta.get("namespace", ""))
    return "/".join((place, meta["name"], *parts))


def collection(version: str, kind: str, namespace: str = "") -> str:
    root = "/apis" if "/" in version else "/api"
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}/{version}{within}/{_PLURALS[kind]}"


class Stage:
    """One cluster, one case at a time; also with what an extender reads, where there is one."""

    def __init__(self, client: Client, *, for_extender: bool = False) -> None:
        self._client = client
        self._kinds = (*_FOR_THE_SCHEDULER, *(_FOR_THE_EXTENDER if for_extender else ()))
        self._uids: dict[str, str] = {}
        self._namespaces: set[str] = set()

    async def lay_out(self, objects: Iterable[Object]) -> None:
        """Create objects that belong to no case, or come later."""
        await all_of([self._create(one) for one in objects])

    async def enter(self, case: Case) -> None:
        """Create all objects of a case, those that refer to others after them, then what happens to them.

        A pod that is bound comes last: once the scheduler has seen it, it has seen all the others.
        """
        self._uids.clear()
        waves: list[list[Object]] = [[] for _ in range(_WAVES)]
        for one in (*case.objects, *case.probes):
            waves[_wave(one)].append(one)
        for wave in waves:
            await all_of([self._create(one) for one in wave])
        await all_of([self._client.delete(path_of(one)) for one in case.terminating])
        await self._create(case.last)

    async def create_twin(self, pod: Object, name: str) -> Object:
        """Create a pod like this one that waits behind no gate."""
        made = self._complete(pod)
        made["metadata"]["name"] = name
        del made["spec"]["schedulingGates"]
        return await self._client.create(collection("v1", "Pod", made["metadata"]["namespace"]), made)

    async def clear(self) -> None:
        """Delete all that a case may leave, pods first: nothing else keeps them on their nodes."""
        await self._release()
        await self._clear_kind("Pod")
        kinds = [kind for kind in self._kinds if kind not in {"Pod", "Namespace"}]
        await all_of([self._clear_kind(kind) for kind in kinds])

    async def _release(self) -> None:
        """Take the finalizers off what was deleted already."""
        listed = [*await self._list("Pod"), *await self._list("PersistentVolumeClaim")]
        kept = [one for one in listed if one["metadata"].get("finalizers")]
        await all_of([self._client.patch(path_of(one), {"metadata": {"finalizers": None}}) for one in kept])

    async def capture(self) -> Object:
        """List everything that is read, as kubectl would print it."""
        found = await asyncio.gather(*(self._list(kind) for kind in self._kinds))
        items = [item for listed in found for item in listed]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    async def _list(self, kind: str) -> Sequence[Any]:
        version = _VERSION_OF[kind]
        answer = await self._client.get(collection(version, kind))
        return [_printed(version, kind, item) for item in answer["items"]]

    async def _create(self, wanted: Object) -> None:
        wanted = self._complete(wanted)
        if wanted["kind"] == "Namespace":
            await self._keep_namespace(wanted)
            return
        meta = wanted["metadata"]
        place = collection(wanted["apiVersion"], wanted["kind"], meta.get("namespace", ""))
        made = await self._client.create(f"{place}?fieldValidation=Strict", wanted)
        key = f"{wanted['kind']}/{meta.get('namespace', '')}/{meta['name']}"
        self._uids[key] = made["metadata"]["uid"]
        if wanted["kind"] in _WITH_STATUS and "status" in wanted:
            await self._client.patch(path_of(wanted, "status"), {"status": wanted["status"]})

    async def _keep_namespace(self, wanted: Object) -> None:
        """Namespaces stay, for nobody would finish their deletion; their labels change."""
        name = wanted["metadata"]["name"]
        if name not in self._namespaces:
            self._namespaces.add(name)
            await self._client.create(collection("v1", "Namespace"), wanted)
            return
        unset = {"team": None, "quiet": None}
        await self._client.patch(
            path_of(wanted), {"metadata": {"labels": unset | wanted["metadata"]["labels"]}}
        )

    def _complete(self, wanted: Object) -> Object:
        made = copy.deepcopy(wanted)
        for reference in made["metadata"].get("ownerReferences", ()):
            reference["uid"] = self._uids.get(reference["uid"], reference["uid"])
        reference = made.get("spec", {}).get("claimRef", {})
        if "uid" in reference:
            reference["uid"] = self._uids[reference["uid"]]
        return made

    async def _clear_kind(self, kind: str) -> None:
        version = _VERSION_OF[kind]
        places = [*self._namespaces, "default"] if kind in _NAMESPACED else [""]
        await all_of([self._client.delete(collection(version, kind, place), NOW) for place in places])


def _wave(made: Object) -> int:
    """When an object can be made: a reference takes the uid of something that is there."""
    if made["kind"] == "PersistentVolumeClaim" and "ownerReferences" in made["metadata"]:
        return 2
    return {"Pod": 1, "PersistentVolume": 3}.get(made["kind"], 0)


def _printed(version: str, kind: str, item: Object) -> Object:
    """An item of a list does not say what it is, but kubectl's does."""
    meta = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return {"apiVersion": version, "kind": kind, **item, "metadata": meta}
