"""The templates of another project's kind are found by what the API server says of the kind."""

import pytest

from localcluster.client import Client
from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.client.mirror import mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.snapshot import Snapshot, take
from reberth.forecast.replacement.next_pod import NextPod, find_next
from tests.live.support.other_project_objects import define
from tests.support.builders import Object, node, pod_spec
from tests.support.forecast.replicas import requests_in
from tests.support.rescheduler.other_projects import OtherProject

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

GROUP, KIND = "clones.example.com", "StatefulSet"
PROJECT = OtherProject(f"{GROUP}/v1alpha1/{KIND}", "Always", "", {})
SETS = f"/apis/{GROUP}/v1alpha1/namespaces/default/statefulsets"
PODS = "/api/v1/namespaces/default/pods"


async def test_a_resized_pod_of_another_project_is_replaced_by_its_template(
    shared: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with shared.client() as client:
        await define(client, [PROJECT])
        await client.create("/api/v1/nodes", node("clones"))
        await _add(client)
        snapshot = await _look(shared)
    place = snapshot.pods.named("default", "clone")
    assert place is not None
    found = find_next(snapshot, snapshot.pods.rows[place])
    assert isinstance(found, NextPod), found
    assert requests_in(found) == {"cpu": "2"}
    told = [
        vars(each)["fields"]["kind"]
        for each in caplog.records
        if "templates of this kind" in each.getMessage()
    ]
    assert told == [f"{GROUP}/Missing", "no.example.com/Kind"]


async def _look(shared: Cluster) -> Snapshot:
    """Read the cluster as a plan does; a kind that nobody serves is left out."""
    async with Api(Access(str(shared.kubeconfig))) as api:
        custom = await find_custom_resources(
            api,
            [(GROUP, KIND), (GROUP, "Missing"), ("no.example.com", "Kind")],
            unnamed=[(GROUP, "Unnamed"), ("unnamed.example.com", "Kind"), (GROUP, KIND)],
        )
        assert [each.full_name for each in custom] == [f"statefulsets.{GROUP}"]
        cache = Cache(version=NEWEST)
        async with mirroring(api, cache, (*ALL_RESOURCES, *custom)) as mirror:
            for watcher in mirror.watchers.values():
                await watcher.answered()
            return take(cache, now=0.0)


async def _add(client: Client) -> None:
    """An owner, and a pod of it that was resized in place."""
    labels = {"app": "clones"}
    template: Object = {"metadata": {"labels": labels}, "spec": pod_spec(cpu="2")}
    head = {"apiVersion": PROJECT.api_version, "kind": KIND, "metadata": {"name": "one"}}
    made = await client.create(SETS, {**head, "spec": {"template": template}})
    own = [PROJECT.own("one", made["metadata"]["uid"])]
    meta = {"name": "clone", "labels": labels, "ownerReferences": own}
    await client.create(PODS, {"metadata": meta, "spec": pod_spec(cpu="1", nodeName="clones")})
    await client.patch(f"{PODS}/clone", {"spec": {"activeDeadlineSeconds": 99999}})
