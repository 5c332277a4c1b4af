"""`python -m rescheduler plan` for the live cluster: it needs no file and writes nothing."""

import argparse
import json

import pytest

from localcluster.cluster import Cluster
from reberth.values.errors import ReberthError
from rescheduler.commands import plan
from tests.support.builders import deployment

pytestmark = pytest.mark.live

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
BUSY = {
    "metadata": {"name": "busy", "annotations": {"evictionSurgeReplicas": "2"}},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "surging"},
        "maxReplicas": 3,
    },
}


async def ask(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    plan.add_arguments(parser)
    return await plan.answer(parser.parse_args(arguments))


async def test_a_live_cluster_is_planned_without_a_file(
    shared: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(await ask("--kubeconfig", str(shared.kubeconfig), "-o", "json"))
    assert (made["kind"], made["moves"]) == ("Plan", [])
    said = capsys.readouterr().err
    assert "planned without evictionhistories: not installed" in said
    assert "scaledobjects" not in said
    assert "rollouts" not in said


async def test_without_a_right_to_see_pods_there_is_no_plan(shared: Cluster) -> None:
    with pytest.raises(ReberthError, match="nodes cannot be read"):
        await ask("--kubeconfig", str(shared.user("without-rights")))


async def test_a_surge_announced_by_an_autoscaler_is_named(shared: Cluster) -> None:
    async with shared.client() as client:
        await client.create(DEPLOYMENTS, deployment("surging"))
        await client.create(AUTOSCALERS, BUSY)
        pods = "/api/v1/namespaces/default/pods?labelSelector=app%3Dsurging"
        found = await client.wait(pods, lambda f: f["items"] and f["items"][0]["spec"].get("nodeName"))
        name = found["items"][0]["metadata"]["name"]
        told = await ask("--kubeconfig", str(shared.kubeconfig), "--why", name, "-o", "json")
        await client.delete(f"{AUTOSCALERS}/busy")
        await client.delete(f"{DEPLOYMENTS}/surging", {"propagationPolicy": "Foreground"})
        await client.wait(pods, lambda f: not f["items"])
    assert "annotation evictionSurgeReplicas of HorizontalPodAutoscaler busy: a surge is running" in told
