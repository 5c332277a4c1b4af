"""The fault proxy before a real API server: transparent without rules, real faults with them."""

import pytest

from localcluster.cluster import Cluster
from localcluster.faults import Answer, FaultProxy, LoseAnswer, Match, status_bodies
from reberth.cluster import kinds
from reberth.values import errors
from tests.live.support.fault_client import direct, through
from tests.support.builders import pod

pytestmark = pytest.mark.live

PODS = "/api/v1/namespaces/default/pods"


async def test_without_rules_every_byte_is_the_servers(bare: Cluster, proxy: FaultProxy) -> None:
    async with bare.client() as client, await through(proxy, bare, "plain") as api, direct(bare) as straight:
        await client.create(PODS, pod("same"))
        there = await straight.get(kinds.PODS, "same", namespace="default")
        assert await api.get(kinds.PODS, "same", namespace="default") == there
        with pytest.raises(errors.NotFound) as ours:
            await api.get(kinds.PODS, "none", namespace="default")
        with pytest.raises(errors.NotFound) as theirs:
            await straight.get(kinds.PODS, "none", namespace="default")
        assert str(ours.value) == str(theirs.value)
        await client.delete(f"{PODS}/same")


async def test_an_injected_refusal_has_the_form_of_the_servers_own(bare: Cluster, proxy: FaultProxy) -> None:
    """The same request refused by the server and by a rule: the same members, the same reason and code."""
    async with bare.client() as client, await through(proxy, bare, "form") as api:
        created = await client.create(PODS, pod("form"))
        stale = {"metadata": {"resourceVersion": "1"}}
        with pytest.raises(errors.Conflict) as true:
            await api.merge(kinds.PODS, "form", stale, namespace="default")
        async with proxy.fault(Match(client="form", verb="patch"), Answer(status_bodies.conflict())):
            with pytest.raises(errors.Conflict) as injected:
                await api.merge(kinds.PODS, "form", stale, namespace="default")
        assert str(injected.value) == str(true.value)
        assert (injected.value.reason, injected.value.causes) == (true.value.reason, true.value.causes)
        await api.delete(kinds.PODS, "form", uid=created["metadata"]["uid"], namespace="default")


async def test_a_lost_answer_is_a_write_that_happened(bare: Cluster, proxy: FaultProxy) -> None:
    async with bare.client() as client, await through(proxy, bare, "lost") as api:
        await client.create(PODS, pod("lost"))
        async with proxy.fault(Match(client="lost", verb="patch"), LoseAnswer()) as rule:
            with pytest.raises(errors.Unanswered):
                await api.merge(
                    kinds.PODS, "lost", {"metadata": {"labels": {"written": "yes"}}}, namespace="default"
                )
            assert rule.acted == 1
        assert (await client.get(f"{PODS}/lost"))["metadata"]["labels"] == {"written": "yes"}
        await client.delete(f"{PODS}/lost")


async def test_cutting_one_client_off_leaves_others_connected(bare: Cluster, proxy: FaultProxy) -> None:
    async with await through(proxy, bare, "cut") as cut, await through(proxy, bare, "whole") as whole:
        await proxy.cut("cut")
        with pytest.raises(errors.Unreachable):
            await cut.version()
        assert await whole.version()
        await proxy.mend("cut")
        assert await cut.version()
