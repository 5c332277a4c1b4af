"""Real pods are replaced by real controllers, and held against what was foretold of each replacement.

The second half of the pods of a class is replaced while only its narrow nodes are open: there it shows on
which nodes the replacement fits, and whether it gets a node at all.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Collection, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from localcluster.client import Client, Refused, all_of
from reberth.cluster.kinds import ALL_RESOURCES, Resource
from reberth.cluster.pods.requests import Version
from reberth.cluster.rows import PodRow
from reberth.forecast.replacement.next_pod import NextPod, find_next
from reberth.values.quantity import nanos
from reberth.values.refusal import Refused as NotForetold
from tests.live.forecast.changes.change import APPS, CORE, ChangeClass
from tests.live.forecast.changes.operations import list_pods
from tests.live.forecast.changes.verdicts import Verdict, forget_templates, judge_move, read
from tests.support.builders import Object, node

NODES = "/api/v1/nodes"
_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets"}
_NAME = "web"
_READ = tuple(each for each in ALL_RESOURCES if "reberth" not in each.kind.group)
_OLD_POLICIES = ("admissionregistration.k8s.io/v1/mutating", "admissionregistration.k8s.io/v1beta1/mutating")
_SETTLING = 0.5
"""Seconds in which the scheduler has seen what the API server shows of nodes."""
_UNSCHEDULABLE, _NOT_READY = "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"
_MANY = 1000
_NOTICED = 10.0
"""Seconds in which the API server takes notice of a new rule."""


class Replaced(NamedTuple):
    """A pod, what was foretold of its replacement, and what came: the pod if it came, and its node."""

    name: str
    foretold: NextPod | NotForetold
    verdict: Verdict
    before: Verdict
    """As if the running pod were the next one."""
    is_created: bool
    shape: PodRow | None = None
    node: str | None = None


class Stage:
    """A control plane of its own, with six wide nodes, for one class of change after another."""

    def __init__(self, client: Client, version: Version) -> None:
        self._client = client
        self._version = version
        self._wide = [node(f"n{number:02d}", cpu="64", zone="abc"[number % 3]) for number in range(6)]
        self._served: tuple[Resource[Any], ...] = ()

    async def prepare(self) -> None:
        await self._client.create_all(NODES, self._wide)

    @property
    def _wide_names(self) -> list[str]:
        return [made["metadata"]["name"] for made in self._wide]

    async def replace_all(self, each: ChangeClass, *, count: int) -> list[Replaced]:
        """Bring up the workload of a class, change what it changes, and replace pod after pod."""
        async with self._laid_out(each, count) as narrow:
            await self._bring_up(each, count)
            await each.change(self._client, each.name)
            self._served = await self._find_served()
            names = [pod["metadata"]["name"] for pod in await list_pods(self._client, each.name)]
            if each.blocks:
                await self._until_blocked(each)
            found = [await self._replace(each, name) for name in names[: count // 2]]
            if not each.blocks:
                await self._open(narrow, instead_of=self._wide_names)
            found += [await self._replace(each, name) for name in names[count // 2 :]]
        return found

    @contextlib.asynccontextmanager
    async def _laid_out(self, each: ChangeClass, count: int) -> AsyncIterator[list[str]]:
        """Add the closed narrow nodes of a class; afterwards they are gone, and so are its pods."""
        names = [f"{each.name}-{number:02d}" for number in range(count - count // 2)]
        shape = {"zone": "a", **each.narrow}
        await self._client.create_all(NODES, [node(name, **shape) for name in names])
        await self._open(self._wide_names, instead_of=names)
        try:
            yield names
        finally:
            await self._client.patch(_path_of(each), {"spec": {"replicas": 0}})
            await self._client.wait(f"{CORE}/{each.name}/pods", lambda found: not found["items"], seconds=120)
            await self._client.delete(f"{CORE}/{each.name}")
            await all_of(self._client.delete(f"{NODES}/{name}") for name in names)

    async def _open(self, names: Collection[str], *, instead_of: Collection[str]) -> None:
        """Open these nodes and close those, and let the scheduler take notice."""
        cordons = {**dict.fromkeys(names, False), **dict.fromkeys(instead_of, True)}
        await all_of(
            self._client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": is_closed or None}})
            for name, is_closed in cordons.items()
        )
        await self._client.wait(NODES, lambda found: _are_tainted(found, cordons), seconds=60)
        await asyncio.sleep(_SETTLING)

    async def _bring_up(self, each: ChangeClass, count: int) -> None:
        client, namespace = self._client, each.name
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await client.wait(f"{CORE}/{namespace}/serviceaccounts/default", bool, seconds=60)
        for path, body in each.before(namespace):
            await self._create(path, body)
        if each.shows:
            await self._until_shown(each)
        workload = {**each.workload(count), "metadata": {"name": _NAME}}
        await client.create(_path_of(each).removesuffix(f"/{_NAME}"), workload)
        await client.wait(f"{CORE}/{namespace}/pods", lambda found: _run(found, count), seconds=120)

    async def _create(self, path: str, body: Object) -> None:
        """Create an object; before 1.36 policies that change objects are of an older version."""
        if self._version < (1, 36) and _OLD_POLICIES[0] in path:
            path = path.replace(*_OLD_POLICIES)
            body = {**body, "apiVersion": body["apiVersion"].replace("/v1", "/v1beta1")}
        await self._client.create(path, body)

    async def _find_served(self) -> tuple[Resource[Any], ...]:
        """Find the kinds that are read; those of other projects only if they are installed."""
        found = [(each, await self._list(each)) for each in _READ]
        return tuple(each for each, listed in found if listed is not None)

    async def _replace(self, each: ChangeClass, name: str) -> Replaced:
        await self._until_counted(each.name)
        objects = await self._capture()
        snapshot = read(objects, self._version)
        place = snapshot.pods.named(each.name, name)
        assert place is not None
        replaced = Replaced(
            name,
            find_next(snapshot, snapshot.pods.rows[place]),
            judge_move(snapshot, each.name, name, self._version),
            judge_move(read(forget_templates(objects), self._version), each.name, name, self._version),
            is_created=True,
        )
        if each.blocks:
            return replaced._replace(is_created=await self._may_create(each))
        known = {row.uid for row in snapshot.pods.rows}
        await self._client.delete(f"{CORE}/{each.name}/pods/{name}", {"gracePeriodSeconds": 0})
        pod = await self._find_decided(each.name, known)
        shape = read([pod], self._version).pods.rows[0]
        return replaced._replace(shape=shape, node=pod["spec"].get("nodeName"))

    async def _find_decided(self, namespace: str, known: set[str]) -> Object:
        """Wait for the new pod, until it has a node or is refused by all."""
        found = await self._client.wait(
            f"{CORE}/{namespace}/pods",
            lambda listed: any(_is_decided(pod, known) for pod in listed["items"]),
            seconds=90,
            every=0.1,
        )
        (pod,) = [each for each in found["items"] if _is_decided(each, known)]
        return {"apiVersion": "v1", "kind": "Pod", **pod}

    async def _may_create(self, each: ChangeClass) -> bool:
        """Ask the API server, by a dry run, whether it would create another pod of the template."""
        template = each.workload(1)["spec"]["template"]
        pod = {"metadata": {**template["metadata"], "generateName": "web-"}, "spec": template["spec"]}
        try:
            await self._client.create(f"{CORE}/{each.name}/pods?dryRun=All", pod)
        except Refused as refused:
            if refused.status == HTTPStatus.FORBIDDEN:
                return False
            raise
        return True

    async def _until_blocked(self, each: ChangeClass) -> None:
        """Wait until the API server knows the new rule; where several rules contradict, pods are created."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_NOTICED if each.expected.refused != "CannotForecast" else 1.0):
                while await self._may_create(each):
                    await asyncio.sleep(0.1)

    async def _until_shown(self, each: ChangeClass) -> None:
        """Wait until a new policy changes pods; the test's limit of time ends it."""
        asked = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "img"}]}}
        async with asyncio.timeout(60):
            while True:
                made = await self._client.create(f"{CORE}/{each.name}/pods?dryRun=All", asked)
                if each.shows in json.dumps(made):
                    return
                await asyncio.sleep(0.2)

    async def _until_counted(self, namespace: str) -> None:
        """Wait until the quotas count the pods as they are: a change of a quota has it counted again."""
        path = f"{CORE}/{namespace}/resourcequotas"
        for name in [each["metadata"]["name"] for each in (await self._client.get(path))["items"]]:
            async with asyncio.timeout(60):
                for number in itertools.count(_MANY):
                    asked = sum(map(_count_cpu, await list_pods(self._client, namespace)))
                    if _used(await self._client.get(f"{path}/{name}")) == asked:
                        break
                    again = {"count/configmaps": str(number)}
                    await self._client.patch(f"{path}/{name}", {"spec": {"hard": again}})
                    await asyncio.sleep(0.2)

    async def _capture(self) -> list[Object]:
        return [item for each in self._served for item in await self._list(each) or ()]

    async def _list(self, each: Resource[Any]) -> list[Object] | None:
        try:
            found = await self._client.get(each.path())
        except Refused as refused:
            if refused.status == HTTPStatus.NOT_FOUND and each.is_optional:
                return None
            raise
        return [{"apiVersion": each.api_version, "kind": each.kind.name, **item} for item in found["items"]]


def _are_tainted(listed: Object, cordons: Mapping[str, bool]) -> bool:
    """Tell whether the controllers have given these nodes the taints that they shall have, and no others."""
    taints = {
        each["metadata"]["name"]: {taint["key"] for taint in each["spec"].get("taints", ())}
        for each in listed["items"]
    }
    return all(
        (_UNSCHEDULABLE in taints[name]) is is_closed and _NOT_READY not in taints[name]
        for name, is_closed in cordons.items()
    )


def _path_of(each: ChangeClass) -> str:
    return f"{APPS}/{each.name}/{_PLURALS[each.workload(0)['kind']]}/{_NAME}"


def _run(listed: Object, count: int) -> bool:
    return len(listed["items"]) == count and all(
        one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"]
        for one in listed["items"]
    )


def _is_decided(pod: Object, known: set[str]) -> bool:
    """Tell whether a pod is new, and bound or refused by all nodes."""
    conditions = pod["status"].get("conditions", ())
    is_refused = any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
    return pod["metadata"]["uid"] not in known and (bool(pod["spec"].get("nodeName")) or is_refused)


def _count_cpu(pod: Object) -> int:
    return sum(nanos(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"])


def _used(quota: Object) -> int:
    return nanos(quota.get("status", {}).get("used", {}).get("requests.cpu", "-1"))
