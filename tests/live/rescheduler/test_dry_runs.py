"""Replacements are created as a dry run before an eviction, as our real account, and never otherwise."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
import yaml

from localcluster import manifests
from localcluster.client import Client
from localcluster.client import Refused as HttpRefused
from localcluster.cluster import Cluster
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.cluster.kinds import PODS
from reberth.records import Container, ObjectMeta, Pod, PodSpec
from reberth.values import errors
from reberth.values.refusal import Refused
from rescheduler.execution.dry_runs.guard import ACCOUNT, BINDING, NAME, POLICY, DryRunGuard
from rescheduler.moves.outcome import MoveReport
from tests.live.rescheduler.test_moving_rights import installed
from tests.live.support import moves
from tests.live.support.memory_objects import definitions
from tests.live.support.moves import Workload, consistent, move, policy, workload
from tests.support.builders import Object, pod_spec
from tests.support.metrics import read_metric
from tests.support.repository import MANIFESTS

pytestmark = pytest.mark.live

LEASE = {"namespace": "reberth-system", **moves.BRIEF_LEASE}
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PODS_PATH = "/api/v1/namespaces/default/pods"
_NOTICED = 5.0
"""Seconds in which the API server takes notice of a new admission policy."""
ASKED = policy(confirm="dryRun")


@pytest_asyncio.fixture(autouse=True, scope="module", loop_scope="session")
async def defined(shared: Cluster) -> AsyncIterator[None]:
    async with definitions(shared), installed(shared), shared.client() as client:
        shared.user(ACCOUNT)
        paths = await manifests.apply(client, MANIFESTS / "rescheduler" / "dry-runs")
        yield
        await manifests.remove(client, paths)


def count(answer: str) -> float:
    return read_metric("reberth_rescheduler_replacement_dry_runs_total", answer=answer)


async def evict_one(owned: Workload) -> MoveReport | Refused:
    victim = await owned.pick()
    to = [node for node in moves.NODES if node != victim["spec"]["nodeName"]][:2]
    came, said = await move(
        owned.cluster, victim, to, user=ACCOUNT, lease=LEASE, extender="none", asked=ASKED
    )
    print(said)
    return came


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_the_dry_run_is_as_foretold_and_the_pod_is_moved(shared: Cluster, kind: str) -> None:
    before = count("agrees")
    async with workload(shared, f"confirmed-{kind.lower()}", kind=kind) as owned:
        came = await evict_one(owned)
        assert isinstance(came, MoveReport)
        assert came.refused is None
        assert await consistent(owned) == 1
    assert count("agrees") == before + 1


@pytest.mark.parametrize(("way", "rule"), [("change", "CannotForecast"), ("deny", "CannotBeReplaced")])
async def test_what_admission_would_do_today_stops_the_move(shared: Cluster, way: str, rule: str) -> None:
    """It is set up after the pods were created, so that none of them shows it."""
    name = f"to-{way}"
    async with workload(shared, name) as owned, admission(owned.client, name, way):
        came = await evict_one(owned)
        assert isinstance(came, MoveReport)
        assert came.refused
        assert came.refused.rule == rule, came.refused
        assert await consistent(owned) == 0


async def test_the_account_creates_no_pod_but_as_a_dry_run(shared: Cluster) -> None:
    """The API server refuses it, whatever the rescheduler asks for."""
    own = shared.design.kubeconfig(ACCOUNT)
    body: Object = {"metadata": {"name": "mine", "namespace": "default"}, "spec": pod_spec()}
    spec = PodSpec(containers=(Container(name="main", image="img"),))
    async with Api(Access(str(own))) as api:
        assert await DryRunGuard(api).find_trouble() is None
        await asyncio.sleep(_NOTICED)
        assert (await api.try_create(PODS, body, namespace="default")).metadata.name == "mine"
        with pytest.raises(errors.Forbidden, match="the rescheduler creates pods only as a dry run"):
            await api.create(PODS, Pod(ObjectMeta("mine", "default"), spec), namespace="default")
    async with shared.client() as client:
        assert "mine" not in [each["metadata"]["name"] for each in (await client.get(PODS_PATH))["items"]]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("validatingadmissionpolicies", {"spec": {"failurePolicy": "Ignore"}}),
        ("validatingadmissionpolicybindings", {"spec": {"validationActions": ["Audit"]}}),
    ],
)
async def test_a_guard_that_was_changed_switches_dry_runs_off(
    shared: Cluster, kind: str, change: Object
) -> None:
    before, path = count("off"), f"{ADMISSION}/{kind}/{NAME}"
    async with workload(shared, "unguarded") as owned:
        kept = (await owned.client.get(path))["spec"]
        await owned.client.patch(path, change)
        try:
            came = await evict_one(owned)
        finally:
            await owned.client.patch(path, {"spec": kept})
        assert isinstance(came, MoveReport)
        assert came.refused is None
        assert await consistent(owned) == 1
    assert count("off") == before + 1


async def test_another_account_is_not_guarded(shared: Cluster) -> None:
    async with Api(Access(str(shared.kubeconfig))) as api:
        trouble = await DryRunGuard(api).find_trouble()
    assert isinstance(trouble, str)
    assert trouble.startswith("the guard of dry runs is not about ")


def test_the_guard_is_the_one_that_is_shipped() -> None:
    shipped = list(yaml.safe_load_all((MANIFESTS / "rescheduler/dry-runs/10-dry-runs.yaml").read_text()))
    assert [each["spec"] for each in shipped[:2]] == [POLICY, BINDING]
    assert {each["metadata"]["name"] for each in shipped} == {NAME}


@asynccontextmanager
async def admission(client: Client, name: str, way: str) -> AsyncIterator[None]:
    """A policy that changes the pods of this app, or denies them."""
    kind = "Mutating" if way == "change" else "Validating"
    root = f"{ADMISSION}/{kind.lower()}admissionpolicies"
    policies = (root, f"{ADMISSION}/{kind.lower()}admissionpolicybindings")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    matched = {"resourceRules": [rule], "objectSelector": {"matchLabels": {"app": name}}}
    expression = (
        'Object{spec: Object.spec{containers: [Object.spec.containers{name: "more", image: "more"}]}}'
    )
    changing = {
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    denying = {"validations": [{"expression": "false", "message": "no more of these"}]}
    body = changing if way == "change" else denying
    bound = {"policyName": name, **({} if way == "change" else {"validationActions": ["Deny"]})}
    await client.create(
        policies[0], {"metadata": {"name": name}, "spec": {"matchConstraints": matched, **body}}
    )
    await client.create(policies[1], {"metadata": {"name": name}, "spec": bound})
    try:
        await until_seen(client, name)
        yield
    finally:
        for each in policies:
            await client.delete(f"{each}/{name}")


async def until_seen(client: Client, app: str) -> None:
    """Wait until the API server has taken notice of the policy."""
    probe = {"metadata": {"name": "probe", "labels": {"app": app}}, "spec": pod_spec()}
    async with asyncio.timeout(60):
        while True:
            try:
                made = await client.create(f"{PODS_PATH}?dryRun=All", probe)
            except HttpRefused:
                return
            if len(made["spec"]["containers"]) > 1:
                return
            await asyncio.sleep(0.2)
