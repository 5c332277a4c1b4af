"""Servers that answer as no honest one does: the members of a federation are not ours."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from federation.hub.object_api import ObjectApi
from localcluster.cluster import Cluster
from localcluster.faults import Bomb, FaultProxy, Match
from reberth.client.api import Api
from reberth.cluster.kinds import NODES
from reberth.protocol.response import LARGEST_OBJECT, LARGEST_PAGE
from reberth.values.errors import ServerFault, Unreadable
from tests.live.support.fault_client import QUICK, access_through


async def list_nodes(api: Api) -> list[object]:
    return [node async for page in api.list_pages(NODES) for node in page.objects]


async def list_parts(api: Api) -> list[object]:
    return [node async for part in api.list_parts(NODES) for node in part.found]


async def read_groups(api: Api) -> object:
    assert isinstance(api, ObjectApi)
    return await api.read_path("/apis", subject="apis")


Read = Callable[[Api], Coroutine[Any, Any, object]]
READS: list[tuple[Read, int]] = [
    (lambda api: api.get(NODES, "n1"), LARGEST_OBJECT),
    (list_nodes, LARGEST_PAGE),
    (list_parts, LARGEST_PAGE),
    (read_groups, LARGEST_OBJECT),
    (lambda api: api.version(), LARGEST_OBJECT),
]


@pytest.mark.parametrize(("read", "most"), READS, ids=["get", "list", "parts", "apis", "version"])
async def test_no_more_is_read_of_an_endless_answer_than_an_honest_one_may_have(
    bare: Cluster, proxy: FaultProxy, read: Read, most: int
) -> None:
    async with ObjectApi(await access_through(proxy, bare, "endless"), QUICK) as api:
        async with proxy.fault(Match(client="endless"), Bomb()):
            with pytest.raises(Unreadable, match=str(most)):
                await read(api)
        async with proxy.fault(Match(client="endless"), Bomb(500)):
            with pytest.raises(ServerFault, match="code 500"):
                await read(api)
        assert bare.design.kubernetes.startswith(f"{await api.version()}.")


async def test_nothing_is_decompressed_that_was_not_asked_for(bare: Cluster, proxy: FaultProxy) -> None:
    """Decompressed it would be more than is read: that would be another error."""
    async with ObjectApi(await access_through(proxy, bare, "compressing"), QUICK) as api:
        async with proxy.fault(Match(client="compressing"), Bomb(inflated=4 * LARGEST_PAGE)):
            with pytest.raises(Unreadable, match="invalid"):
                await read_groups(api)
        assert bare.design.kubernetes.startswith(f"{await api.version()}.")
