"""Scheduling goes on while the extender stops, crashes, starts cold, is cut off, slow or renewed."""

import asyncio
import datetime as dt
import itertools
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from localcluster import credentials
from localcluster.client import Client
from localcluster.cluster import Cluster
from localcluster.credentials import Authority, KeyPair
from localcluster.faults import FaultProxy
from localcluster.host import processes
from localcluster.state_dir import running
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.runtime.certificates import ClientTls
from rescheduler.execution.extenders import ObjectVersion, connect_to_extenders
from rescheduler.settings import ExtenderAccess
from tests.live.support.extender_process import HOST, MANIFESTS, Extending, extending
from tests.live.support.written_memory import PODS
from tests.support.builders import pod

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="module")]

BURST = 500
_bursts = itertools.count(1)
TALKATIVE = "-v=5"  # a prioritizer that fails is mentioned only then


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[Cluster]:
    async with running(nodes=15) as cluster:
        yield cluster


@asynccontextmanager
async def burst(cluster: Cluster, pods: int = BURST) -> AsyncIterator[Client]:
    """Pods begin to come; at the end all of them have a node. They stay: there is room for all."""
    name = f"burst-{next(_bursts)}"
    mine = f"{PODS}?labelSelector=burst%3D{name}"
    async with cluster.client() as client:
        made = (pod(f"{name}-{number}", cpu="1m", labels={"burst": name}) for number in range(pods))
        coming = asyncio.create_task(client.create_all(PODS, made))
        some = pods // 10
        placed = f"{mine}&limit={some + 1}&fieldSelector=spec.nodeName%21%3D"
        await client.wait(placed, lambda found: len(found["items"]) >= some, every=0.05)
        yield client
        await coming
        waiting = f"{mine}&limit=1&fieldSelector=spec.nodeName%3D"
        await client.wait(waiting, lambda found: not found["items"], seconds=60)


def complaints(cluster: Cluster, since: int) -> list[str]:
    """Give what kube-scheduler says of calls that failed."""
    text = cluster.log("kube-scheduler").read_text()[since:]
    return [line for line in text.splitlines() if "xtender" in line and ("rror" in line or "fail" in line)]


def words(cluster: Cluster) -> int:
    return len(cluster.log("kube-scheduler").read_text())


async def test_no_call_is_lost_when_a_replica_stops_and_scheduling_survives_a_kill(
    cluster: Cluster,
) -> None:
    async with extending(cluster, replicas=2) as extender:
        await extender.schedule(flags=[TALKATIVE])
        said = words(cluster)
        first, second = extender.replicas
        async with burst(cluster):
            extender.service.remove((HOST, first.port))
            await processes.stop(first.process)
        assert complaints(cluster, said) == []
        assert '"event": "stopping"' in first.log
        assert await extender.said("reberth_extender_requests_total", verb="filter") > 0
        said = words(cluster)
        async with burst(cluster, 100):
            await processes.kill(second.process)
        async with burst(cluster, 10):
            pass  # for these nobody is there to be asked, if the others were placed before the kill
        assert complaints(cluster, said) != []  # so a lost call would have been seen above


async def test_cold_stale_and_slow_answers_are_neutral_and_counted(cluster: Cluster) -> None:
    pki = cluster.design.path("pki")
    pair = Authority(pki).issue("fault-proxy", hosts=[HOST])
    async with FaultProxy(
        cluster.design.url, ca=pki / "ca.crt", certificate=pair.certificate, key=pair.key
    ) as proxy:
        server = await proxy.open("extender")
        await proxy.cut("extender")
        token = {"token": credentials.read_token(cluster.design)}
        way = credentials.write_kubeconfig(cluster.design, "admin", token, server=server, name="extender")
        settings = {"staleAfter": "500ms", "watch": {"firstPause": 0.02, "longestPause": 0.1}}
        async with extending(cluster, settings=settings, kubeconfig=way) as extender:
            assert "mirrors: " in await extender.ready(status=503)
            await extender.schedule()
            await counted(extender, "cold")
            await proxy.mend("extender")
            await extender.ready()
            before = await extender.said("reberth_extender_neutral_answers_total")
            async with burst(cluster, 10):
                pass
            assert await extender.said("reberth_extender_neutral_answers_total") == before
            await proxy.cut("extender")
            async with asyncio.timeout(10):
                while "cannot connect" not in await extender.ready():
                    await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            await counted(extender, "stale")
            await proxy.mend("extender")
            async with asyncio.timeout(10):
                while "cannot connect" in await extender.ready():
                    await asyncio.sleep(0.05)
            extender.replicas[0].set({**settings, "deadline": "0.001ms"})
            async with asyncio.timeout(10):
                while "settings reloaded" not in extender.replicas[0].log:
                    await asyncio.sleep(0.05)
            await counted(extender, "deadline")


async def counted(extender: Extending, cause: str) -> None:
    """Let some pods come; all of them get nodes, and the answers are counted by this cause."""
    async with burst(extender.cluster, 10):
        pass
    for verb in ("filter", "prioritize", "scores"):
        assert await extender.said("reberth_extender_neutral_answers_total", verb=verb, cause=cause) >= 10


async def test_a_scheduler_that_does_not_call_the_extender_is_reported(cluster: Cluster) -> None:
    async with extending(cluster, settings={"attention": {"pods": 5}}) as extender:
        await cluster.schedule_with({})
        async with burst(cluster, 10):
            pass
        async with asyncio.timeout(5):
            while await extender.said("reberth_extender_pods_placed_unasked", part="avoid") < 10:
                await asyncio.sleep(0.02)
        assert " pods were placed since the last call of /avoid" in await extender.ready()
        assert await extender.said("reberth_extender_last_asked_timestamp_seconds") == 0
        await extender.schedule()
        async with burst(cluster, 1):
            pass
        assert "warning" not in await extender.ready()
        assert await extender.said("reberth_extender_last_asked_timestamp_seconds", part="avoid") > 0


def make_certificates(folder: Path) -> None:
    subprocess.run([MANIFESTS / "extender" / "certificates.sh", folder], check=True, capture_output=True)


def trusting(ca: Path, pair: KeyPair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(ca))
    if pair:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


async def refused(extender: Extending, trust: ssl.SSLContext) -> bool:
    """Tell whether nobody gets an answer who enters like this."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:
        try:
            async with session.get(f"{extender.url_of(extender.replicas[0])}/healthz") as answer:
                return answer.status != 200
        except (aiohttp.ClientError, ssl.SSLError, ConnectionError):
            return True


async def test_only_the_right_certificate_enters_and_a_renewal_costs_no_call(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "certificates"
    make_certificates(folder)
    ca = folder / "ca.crt"
    files = {
        "certFile": str(folder / "tls.crt"),
        "keyFile": str(folder / "tls.key"),
        "clientCAFile": str(ca),
    }
    own = KeyPair(folder / "rescheduler.crt", folder / "rescheduler.key")
    async with extending(cluster, settings={"server": {"tls": files}}, trust=trusting(ca, own)) as extender:
        stranger = Authority(tmp_path / "stranger").create().issue("system:kube-scheduler")
        (tmp_path / "known").mkdir()
        for name in ("ca.crt", "ca.key"):
            (tmp_path / "known" / name).write_bytes((folder / name).read_bytes())
        late = Authority(tmp_path / "known").issue("late", lifetime=dt.timedelta(seconds=-60))
        assert not await refused(extender, trusting(ca, own))
        for pair in (None, stranger, late):
            assert await refused(extender, trusting(ca, pair))
        reasons = (
            "peer did not return a certificate",
            "certificate has expired",
            "unable to get local issuer",
        )
        assert [reason for reason in reasons if reason not in extender.replicas[0].log] == []
        tls = {
            "serverName": "reberth-extender.reberth-system.svc",
            "caFile": str(ca),
            "certFile": str(folder / "scheduler.crt"),
            "keyFile": str(folder / "scheduler.key"),
        }
        await extender.schedule(file="all-nodes.yaml", tls=tls, flags=[TALKATIVE])
        said = words(cluster)
        async with burst(cluster, 200):
            for name in ("tls.crt", "tls.key"):
                (folder / name).unlink()
            make_certificates(folder)
            async with asyncio.timeout(10):
                while "certificate reloaded" not in extender.replicas[0].log:
                    await asyncio.sleep(0.05)
        assert complaints(cluster, said) == []
        assert await extender.said("reberth_extender_requests_total", verb="filter") >= 200
        await see_a_client_renewed(extender, Authority(tmp_path / "known"), tls["serverName"])


async def see_a_client_renewed(extender: Extending, authority: Authority, name: str) -> None:
    """The rescheduler's certificate expires; once it is renewed on disk, extenders answer again."""
    pair = authority.issue("rescheduler", lifetime=dt.timedelta(seconds=2))
    tls = ClientTls(str(authority.certificate), str(pair.certificate), str(pair.key), name)
    (replica,) = extender.replicas
    access = ExtenderAccess(addresses=(f"{HOST}:{replica.port}",), tls=tls)
    async with extender.cluster.client() as client, Api(Access(str(extender.cluster.kubeconfig))) as api:
        node = (await client.get("/api/v1/nodes"))["items"][0]["metadata"]
        asked = [ObjectVersion("nodes", "", node["name"], node["resourceVersion"])]
        async with connect_to_extenders(api, access) as extenders:
            assert await extenders.refuse_unseen(asked) is None
            await asyncio.sleep(2)
            await processes.kill(replica.process)  # an open connection would go on
            replica.start(dies_with_parent=True)
            await extender.ready()
            refused = await extenders.refuse_unseen(asked)
            assert refused is not None
            assert refused.rule == "NotSeen"
            assert "certificate has expired" in replica.log
            authority.issue("rescheduler")
            async with asyncio.timeout(10):
                while await extenders.refuse_unseen(asked):
                    await asyncio.sleep(0.1)
