"""Real pods are replaced by real controllers, and held against the pod that was foretold."""

import asyncio
from typing import Any, NamedTuple

from localcluster.client import Client
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.replacement.next_pod import NextPod, find_next
from reberth.records import Container
from reberth.values.refusal import Refused
from tests.live.forecast.support.changes import APPS, CORE, ChangeClass, Expected
from tests.support.builders import Object

_READ = tuple(each for each in ALL_RESOURCES if not each.is_optional and "reberth" not in each.kind.group)
_PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets"}


class Replaced(NamedTuple):
    """A pod, what was foretold of its replacement, and the replacement; None if there was none."""

    name: str
    foretold: NextPod | Refused
    shape: PodRow | None


async def replace_all(client: Client, each: ChangeClass, *, count: int) -> list[Replaced]:
    """Bring up the workload of a class, change what it changes, and replace its pods one after another."""
    namespace = each.name
    await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    await client.wait(f"{CORE}/{namespace}/serviceaccounts/default", lambda _: True, seconds=60)
    for path, body in each.before(namespace):
        await client.create(path, body)
    if each.shows:
        await _until_added(client, namespace, each.shows)
    workload = each.workload(count)
    await client.create(
        f"{APPS}/{namespace}/{_PLURALS[workload['kind']]}", {**workload, "metadata": {"name": "web"}}
    )
    await _settle(client, namespace, count)
    await each.change(client, namespace)
    names = [pod["metadata"]["name"] for pod in (await _list_pods(client, namespace))]
    return [await _replace(client, namespace, name, count, blocks=each.blocks) for name in names]


def list_faults(each: ChangeClass, found: list[Replaced]) -> list[str]:
    """List what was foretold wrongly, by the answer that was stated first and by the pod that came."""
    faults = [f"{one.name}: {fault}" for one in found for fault in _compare(each.expected, one)]
    return [f"{each.name}: {fault}" for fault in faults]


async def _replace(client: Client, namespace: str, name: str, count: int, *, blocks: bool) -> Replaced:
    snapshot = await _take(client)
    place = snapshot.pods.named(namespace, name)
    assert place is not None
    row = snapshot.pods.rows[place]
    foretold = find_next(snapshot, row)
    if blocks:
        return Replaced(name, foretold, None)
    known = {each.uid for each in snapshot.pods.rows}
    await client.request("DELETE", f"{CORE}/{namespace}/pods/{name}", {"gracePeriodSeconds": 0})
    await _settle(client, namespace, count)
    after = await _take(client)
    (came,) = [each for each in after.pods.rows if each.namespace == namespace and each.uid not in known]
    return Replaced(name, foretold, came)


def _compare(expected: Expected, one: Replaced) -> list[str]:
    if isinstance(one.foretold, Refused) or expected.refused:
        rule = one.foretold.rule if isinstance(one.foretold, Refused) else None
        return [] if rule == expected.refused else [f"{one.foretold}, and not {expected.refused}"]
    assert one.shape is not None
    spec, came = one.foretold.template.spec, one.shape.template
    faults = (
        []
        if _shape(one.foretold.template) == _shape(came)
        else [f"foretold {_shape(one.foretold.template)}, came {_shape(came)}"]
    )
    containers: dict[str, Container] = {each.name: each for each in spec.containers or ()}
    main = containers["main"]
    cpu = (main.resources.requests or {}).get("cpu") if main.resources else None
    wrong = {
        "cpu": cpu != expected.cpu,
        "containers": tuple(containers) != expected.containers,
        "tolerations": expected.tolerates not in {None, *(each.key for each in spec.tolerations or ())},
        "priority": expected.priority not in {None, spec.priority},
        "image": expected.image not in {None, main.image},
        "overhead": (spec.overhead or {}).get("cpu") != expected.overhead_cpu,
    }
    return [*faults, *(f"wrong {name}: {spec}" for name, is_wrong in wrong.items() if is_wrong)]


def _shape(template: Any) -> Object:
    """All that kube-scheduler reads of a pod, in one order."""
    spec, labels = template.spec, template.labels
    fields: Object = {name: getattr(spec, name) for name in spec.__struct_fields__}
    fields["tolerations"] = sorted(spec.tolerations or (), key=repr)
    fields["volumes"] = sorted(spec.volumes or (), key=repr)
    for name in ("containers", "init_containers"):
        fields[name] = [_plain(each) for each in fields[name] or ()]
    return {
        **{name: value or None for name, value in fields.items()},
        "labels": labels,
        "main": template.main,
    }


def _plain(container: Container) -> Object:
    requests = container.resources.requests if container.resources else None
    return {"name": container.name, "image": container.image, "requests": requests or {}}


async def _take(client: Client) -> Snapshot:
    items = [
        {"apiVersion": each.api_version, "kind": each.kind.name, **item}
        for each in _READ
        for item in (await client.get(each.path()))["items"]
    ]
    reading = load_objects(items, now=0.0, version=NEWEST)
    assert not reading.faults, reading.faults
    return reading.snapshot


async def _until_added(client: Client, namespace: str, container: str) -> None:
    """Wait until a new policy changes pods; the test's limit of time ends it."""
    asked = {"metadata": {"name": "probe"}, "spec": {"containers": [{"name": "main", "image": "img"}]}}
    async with asyncio.timeout(60):
        while True:
            made = await client.create(f"{CORE}/{namespace}/pods?dryRun=All", asked)
            if container in [each["name"] for each in made["spec"]["containers"]]:
                return
            await asyncio.sleep(0.2)


async def _list_pods(client: Client, namespace: str) -> list[Object]:
    pods: list[Object] = (await client.get(f"{CORE}/{namespace}/pods"))["items"]
    return pods


async def _settle(client: Client, namespace: str, count: int) -> None:
    await client.wait(
        f"{CORE}/{namespace}/pods",
        lambda listed: (
            len(listed["items"]) == count
            and all(
                one["status"].get("phase") == "Running" and "deletionTimestamp" not in one["metadata"]
                for one in listed["items"]
            )
        ),
        seconds=90,
        every=0.05,
    )
