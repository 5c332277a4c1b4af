"""Our client against a real API server: records are decoded, errors have their own type."""

import asyncio
import datetime as dt
import json
import socket
from functools import partial
from pathlib import Path

import pytest
import yaml

from localcluster import credentials
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.credentials import Authority
from localcluster.faults import (
    Answer,
    Cut,
    FaultProxy,
    Lines,
    LoseAnswer,
    Match,
    Stall,
    nth,
    status_bodies,
    times,
)
from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
from reberth.cluster import kinds
from reberth.cluster.kinds import PODS, Resource, plain_kind
from reberth.records import Lease, LeaseSpec, ObjectMeta, Pod
from reberth.values import errors
from tests.live.support.eviction_webhook import watching_evictions
from tests.live.support.fault_client import QUICK, direct, through
from tests.support.builders import Object, deployment, pdb, pod

pytestmark = pytest.mark.live

IN_DEFAULT = "/api/v1/namespaces/default/pods"
EXPIRED = Answer(status_bodies.Status(401, "Unauthorized", "Unauthorized"))
LEASES = Resource(plain_kind("Lease", Lease, "coordination.k8s.io"), "leases")


async def make(client: Client, name: str) -> str:
    return str((await client.create(IN_DEFAULT, pod(name)))["metadata"]["uid"])


def names(found: Object) -> set[str]:
    return {item["metadata"]["name"] for item in found["items"]}


async def test_objects_are_got_changed_and_deleted(bare: Cluster) -> None:
    async with bare.client() as client, direct(bare) as api:
        uid = await make(client, "life")
        found = await api.get(PODS, "life", namespace="default")
        assert isinstance(found, Pod)
        assert found.metadata.uid == uid
        patch = {"metadata": {"resourceVersion": found.metadata.resource_version, "annotations": {"a": "b"}}}
        changed = await api.merge(PODS, "life", patch, namespace="default")
        assert changed.metadata.annotations == {"a": "b"}
        with pytest.raises(errors.Conflict, match="the object has been modified"):
            await api.merge(PODS, "life", patch, namespace="default")
        with pytest.raises(errors.Conflict, match="the UID in the precondition"):
            await api.delete(PODS, "life", uid="another", namespace="default")
        await api.delete(PODS, "life", uid=uid, namespace="default")
        with pytest.raises(errors.NotFound) as caught:
            await api.get(PODS, "life", namespace="default")
        assert str(caught.value) == 'get /api/v1/namespaces/default/pods/life: pods "life" not found'


async def test_a_password_for_the_servers_name_spoils_nothing(
    bare: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = tmp_path / "netrc"
    passwords.write_text("machine 127.0.0.1 login somebody password secret\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("NETRC", str(passwords))
    async with direct(bare) as api:
        assert (await api.version()).startswith("1.")


async def test_objects_are_created_replaced_and_applied(bare: Cluster) -> None:
    lease = Lease(metadata=ObjectMeta(name="held"), spec=LeaseSpec(holder_identity="one"))
    async with direct(bare) as api:
        made = await api.create(LEASES, lease, namespace="default")
        with pytest.raises(errors.AlreadyExists):
            await api.create(LEASES, lease, namespace="default")
        mine = Lease(metadata=made.metadata, spec=LeaseSpec(holder_identity="two"))
        taken = await api.replace(LEASES, "held", mine, namespace="default")
        assert taken.spec.holder_identity == "two"
        with pytest.raises(errors.Conflict):
            await api.replace(LEASES, "held", mine, namespace="default")
        with pytest.raises(errors.Conflict, match="conflict"):
            await api.apply(LEASES, "held", lease, manager="tests", namespace="default")
        wrong = Lease(metadata=ObjectMeta(name="wrong"), spec=LeaseSpec(lease_duration_seconds=-1))
        with pytest.raises(errors.Invalid) as caught:
            await api.create(LEASES, wrong, namespace="default")
        assert [field for _, _, field in caught.value.causes] == ["spec.leaseDurationSeconds"]
        await api.delete(LEASES, "held", uid=made.metadata.uid, namespace="default")


async def test_lists_come_in_pages(bare: Cluster) -> None:
    async with bare.client() as client, direct(bare, ApiSettings(page_size=3)) as api:
        uids = {await make(client, f"page-{number}") for number in range(8)}
        pages = [page async for page in api.list_pages(PODS, namespace="default")]
        assert len(pages) == 3
        assert {found.metadata.uid for page in pages for found in page.objects} == uids
        for number in range(8):
            await client.delete(f"{IN_DEFAULT}/page-{number}")


async def test_a_pod_is_evicted_only_in_the_version_that_was_asked_for(bare: Cluster) -> None:
    async with bare.client() as client, direct(bare) as api:
        uid = await make(client, "versioned")
        old = (await api.get(PODS, "versioned", namespace="default")).metadata.resource_version
        new = await client.patch(f"{IN_DEFAULT}/versioned", {"metadata": {"labels": {"changed": "yes"}}})
        with pytest.raises(errors.Conflict):
            await api.evict("versioned", namespace="default", uid=uid, version=old)
        assert (await client.get(f"{IN_DEFAULT}/versioned"))["metadata"] == new["metadata"]
        version = new["metadata"]["resourceVersion"]
        await api.evict("versioned", namespace="default", uid=uid, version=version)
        with pytest.raises(errors.NotFound):
            await api.get(PODS, "versioned", namespace="default")


async def test_a_pod_is_evicted_by_its_uid_and_a_budget_refuses_by_its_name(shared: Cluster) -> None:
    async with shared.client() as client, direct(shared) as api:
        await client.create("/apis/apps/v1/namespaces/default/deployments", deployment("guarded", replicas=2))
        await client.create(
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets", pdb("guarded", min_available=2)
        )
        budget = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/guarded"
        await client.wait(budget, lambda found: found.get("status", {}).get("currentHealthy") == 2)
        found = (await client.get(f"{IN_DEFAULT}?labelSelector=app=guarded"))["items"][0]["metadata"]
        name, uid = found["name"], found["uid"]
        with pytest.raises(errors.TooManyRequests) as caught:
            await api.evict(name, namespace="default", uid=uid)
        assert caught.value.has_cause("DisruptionBudget")
        await client.patch(budget, {"spec": {"minAvailable": 1}})
        await client.wait(budget, lambda found: found["status"]["disruptionsAllowed"] == 1)
        await api.evict(name, namespace="default", uid=uid, dry_run=True)
        assert (await api.get(PODS, name, namespace="default")).metadata.deletion_timestamp is None
        await api.evict(name, namespace="default", uid=uid, annotations={"reberth.dev/move": "m1"})
        await client.wait(
            IN_DEFAULT, lambda found: name not in {p["metadata"]["name"] for p in found["items"]}
        )
        await client.delete(budget)
        await client.delete(
            "/apis/apps/v1/namespaces/default/deployments/guarded", {"propagationPolicy": "Foreground"}
        )
        await client.wait(f"{IN_DEFAULT}?labelSelector=app=guarded", lambda found: not found["items"])


async def test_a_webhook_is_told_that_an_eviction_is_a_dry_run(bare: Cluster) -> None:
    """One with side effects, such as a budget of its own, must not count what is only asked."""
    async with bare.client() as client, direct(bare) as api:
        uid = await make(client, "asked")
        async with watching_evictions(bare, client, probe="asked") as reviews:
            await api.evict("asked", namespace="default", uid=uid, dry_run=True)
            assert (await api.get(PODS, "asked", namespace="default")).metadata.deletion_timestamp is None
            await api.evict("asked", namespace="default", uid=uid)
        asked, evicted = reviews
        assert (asked["dryRun"], asked["object"]["deleteOptions"].get("dryRun")) == (True, ["All"])
        assert (evicted["dryRun"], evicted["object"]["deleteOptions"].get("dryRun")) == (False, None)
        with pytest.raises(errors.NotFound):
            await api.get(PODS, "asked", namespace="default")


async def test_reads_are_tried_again_and_writes_are_not(bare: Cluster, proxy: FaultProxy) -> None:
    async with bare.client() as client, await through(proxy, bare, "retries") as api:
        uid = await make(client, "retried")
        mine = Match(client="retries")
        async with proxy.fault(mine, Answer(status_bodies.internal_error()), times(1)) as rule:
            await api.get(PODS, "retried", namespace="default")
            assert (rule.acted, rule.matched) == (1, 2)
        async with proxy.fault(mine, Answer(status_bodies.internal_error())) as rule:
            with pytest.raises(errors.ServerFault):
                await api.merge(PODS, "retried", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
            assert rule.matched == 1
        async with proxy.fault(mine, Answer(status_bodies.budget_unobserved("b"))) as rule:
            with pytest.raises(errors.TooManyRequests) as caught:
                await api.evict("retried", namespace="default", uid=uid)
            assert rule.matched == 1
            assert caught.value.retry_after == 10
        async with proxy.fault(mine, Answer(status_bodies.overloaded(retry_after=1)), times(1)) as rule:
            started = asyncio.get_running_loop().time()
            await api.merge(PODS, "retried", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
            assert rule.matched == 2  # turned away before anybody looked at it
            assert asyncio.get_running_loop().time() - started >= 1
        async with proxy.fault(mine, LoseAnswer(), nth(1)):
            with pytest.raises(errors.Unanswered, match="was lost"):
                await api.delete(PODS, "retried", uid=uid, namespace="default")
        with pytest.raises(errors.NotFound):
            await api.get(PODS, "retried", namespace="default")


async def test_no_answer_is_waited_for_beyond_the_deadline(bare: Cluster, proxy: FaultProxy) -> None:
    settings = ApiSettings(deadline=0.5)
    async with await through(proxy, bare, "deadline", settings) as api:
        async with proxy.fault(Match(client="deadline"), Stall()):
            with pytest.raises(errors.Unanswered, match="no answer within 0.5 s"):
                await api.get(PODS, "any", namespace="default")
        async with proxy.fault(Match(client="deadline"), Cut(Lines(0.5))):
            with pytest.raises(errors.Unanswered):
                await api.version()


async def test_an_expired_token_is_read_again_from_where_it_came(bare: Cluster, proxy: FaultProxy) -> None:
    """The kubeconfig is written anew by somebody; the next 401 makes us read it."""
    server = await proxy.open("renewed")

    def write(token: str) -> Path:
        return credentials.write_kubeconfig(
            bare.design, "admin", {"token": token}, server=server, name="renewed"
        )

    path = write(credentials.read_token(bare.design))
    async with Api(Access(str(path)), QUICK) as api:
        await api.version()
        async with proxy.fault(Match(client="renewed"), EXPIRED, times(1)):
            await asyncio.gather(*(api.version() for _ in range(5)))
        write("no longer known")
        async with proxy.fault(Match(client="renewed"), EXPIRED, times(1)):
            with pytest.raises(errors.Unauthorized):
                await api.version()
        write(credentials.read_token(bare.design))
        await api.version()


async def test_an_unknown_token_raises_unauthorized(bare: Cluster) -> None:
    path = credentials.write_kubeconfig(bare.design, "nobody", {"token": "expired"})
    async with Api(Access(str(path)), QUICK) as api:
        with pytest.raises(errors.Unauthorized, match="get /api/v1/nodes/n: Unauthorized"):
            await api.get(kinds.NODES, "n")


async def test_a_token_from_a_plugin_is_used(bare: Cluster, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": credentials.read_token(bare.design)},
    }
    plugin.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(credential)}\nE\n")
    plugin.chmod(0o755)
    how = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    path = credentials.write_kubeconfig(bare.design, "plugin", {"exec": how})  # type: ignore[dict-item]
    async with Api(Access(str(path)), QUICK) as api:
        assert (await api.version()).startswith("1.")


async def test_a_client_certificate_is_enough(bare: Cluster) -> None:
    path = bare.user("certified", groups=["system:masters"])
    async with Api(Access(str(path)), QUICK) as api:
        pages = [page async for page in api.list_pages(kinds.NODES)]
    assert pages[0].objects == list(pages[0].found)


async def test_a_missing_right_names_user_verb_and_resource(bare: Cluster) -> None:
    path = bare.user("poor")
    async with Api(Access(str(path)), QUICK) as api:
        with pytest.raises(errors.Forbidden, match='User "poor" cannot get resource "nodes"'):
            await api.get(kinds.NODES, "n")


async def test_a_wrong_authority_is_named(bare: Cluster, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger").create()
    content = yaml.safe_load(bare.kubeconfig.read_text())
    content["clusters"][0]["cluster"]["certificate-authority"] = str(stranger.certificate)
    path = tmp_path / "wrong-ca.yaml"
    path.write_text(yaml.safe_dump(content))
    async with Api(Access(str(path)), QUICK) as api:
        with pytest.raises(errors.Unreachable, match="certificate verify failed"):
            await api.version()


async def test_an_expired_client_certificate_is_refused(bare: Cluster) -> None:
    authority = Authority(bare.design.path("pki"))
    pair = authority.issue("late", organizations=["system:masters"], lifetime=dt.timedelta(minutes=-1))
    certificate = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    path = credentials.write_kubeconfig(bare.design, "late", certificate)
    async with Api(Access(str(path)), QUICK) as api:
        with pytest.raises(errors.ApiError) as caught:
            await api.version()
    assert isinstance(caught.value, errors.Unauthorized | errors.Unanswered)


async def test_a_client_certificate_that_was_renewed_on_disk_is_used(bare: Cluster) -> None:
    """The connection is kept alive, and the server looks at the certificate's date with each request."""
    issue = partial(Authority(bare.design.path("pki")).issue, "brief", organizations=["system:masters"])
    pair = issue(lifetime=dt.timedelta(seconds=2))
    certificate = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    path = credentials.write_kubeconfig(bare.design, "brief", certificate)
    async with Api(Access(str(path)), QUICK) as api:
        await api.version()
        await asyncio.sleep(2.1)
        with pytest.raises(errors.Unauthorized):
            await api.get(kinds.NODES, "n")
        issue()
        with pytest.raises(errors.NotFound):
            await api.get(kinds.NODES, "n")


async def test_a_server_that_is_not_there_is_named(bare: Cluster) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    path = credentials.write_kubeconfig(
        bare.design, "admin", {"token": "t"}, server=f"https://127.0.0.1:{port}", name="nowhere"
    )
    async with Api(Access(str(path)), QUICK) as api:
        with pytest.raises(errors.Unreachable, match=f"get /version: cannot connect.*{port}"):
            await api.version()


async def test_a_call_may_be_cancelled_and_the_next_one_works(bare: Cluster, proxy: FaultProxy) -> None:
    async with await through(proxy, bare, "cancelled") as api:
        async with proxy.fault(Match(client="cancelled"), Stall()) as rule:
            call = asyncio.create_task(api.version())
            await proxy.until(lambda: rule.acted == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert await api.version()
