"""A report needs the right to list, and nothing else: no kinds of ours, no watches, no writes."""

import argparse
import json
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from localcluster import audit_log
from localcluster.client import Client
from localcluster.state_dir import running
from reberth.values.errors import ReberthError
from rescheduler.commands import report
from tests.live.support.audited import AuditedCluster
from tests.support.builders import deployment

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

LISTER = "lister"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
REPLICAS = 12


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ground(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AuditedCluster]:
    audit = tmp_path_factory.mktemp("audit")
    flags = audit_log.write_audit_flags(audit, [LISTER])
    async with running(nodes=5, flags=flags) as cluster, cluster.client() as client:
        await allow_listing(client)
        await client.create(DEPLOYMENTS, deployment("web", replicas=REPLICAS, cpu="100m"))
        await client.wait(
            PODS, lambda f: sum(bool(p["spec"].get("nodeName")) for p in f["items"]) == REPLICAS
        )
        yield AuditedCluster(cluster, audit)


async def allow_listing(client: Client) -> None:
    meta = {"name": LISTER}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}]
    await client.create(ROLES, {**kind, "kind": "ClusterRole", "metadata": meta, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": LISTER}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": LISTER}
    bound = {"metadata": meta, "roleRef": role, "subjects": [user]}
    await client.create(BINDINGS, {**kind, "kind": "ClusterRoleBinding", **bound})


async def ask(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return await report.answer(parser.parse_args(arguments))


async def test_who_may_list_gets_the_report_and_sends_nothing_else(
    ground: AuditedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(await ask("--kubeconfig", str(ground.cluster.user(LISTER)), "-o", "json"))
    assert made["kind"] == "ClusterReport"
    assert (made["nodes"], made["everything"][0]) == (5, REPLICAS)
    said = capsys.readouterr().err
    assert "planned without evictionhistories: not installed in this cluster" in said
    assert "cannot be read" not in said
    calls = audit_log.read_log(ground.audit)
    assert {call.verb for call in calls if call.resource} == {"list"}
    assert {"nodes", "pods", "poddisruptionbudgets"} <= {call.resource for call in calls}
    assert {call.verb for call in calls} <= {"list", "get"}, "the version and the kinds that are served"


async def test_who_may_not_list_nodes_is_told_so(ground: AuditedCluster) -> None:
    with pytest.raises(ReberthError, match="nodes cannot be read: .*nodes is forbidden"):
        await ask("--kubeconfig", str(ground.cluster.user("nobody")))


async def test_the_one_command_writes_the_page(ground: AuditedCluster) -> None:
    command = [sys.executable, "-m", "kubectl_reberth", "report", "-o", "html"]
    kubeconfig = ["--kubeconfig", str(ground.cluster.user(LISTER))]
    done = subprocess.run([*command, *kubeconfig], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<!doctype html>")
    assert f"{REPLICAS} pods" in done.stdout
