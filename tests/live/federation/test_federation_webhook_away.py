"""The federation works on while its admission webhook does not answer."""

import pytest

from localcluster.client import Refused
from localcluster.cluster import Cluster
from tests.live.support.accounts import Impersonator
from tests.live.support.webhook_hub import CONFIGURATIONS, aimed, collection_of, defined, register
from tests.support.builders import Object
from tests.support.federation.crds import example

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]

OURS = "system:serviceaccount:reberth-system:reberth-federation"
NOBODY_LISTENS = 1


@pytest.mark.parametrize("kind", ["Work", "ResourceBinding"])
async def test_only_the_federation_may_write_while_the_webhook_is_away(bare: Cluster, kind: str) -> None:
    wanted: Object = example(kind)
    wanted["metadata"] |= {"namespace": "default", "finalizers": None}
    wanted.pop("status", None)
    away = [
        aimed(one, NOBODY_LISTENS, bare.design.path("pki").joinpath("ca.crt").read_bytes())
        for one in CONFIGURATIONS
    ]
    async with (
        defined(bare) as client,
        register(client, away),
        Impersonator(bare.design, OURS, ("system:masters",)) as ours,
    ):
        with pytest.raises(Refused, match="webhook"):
            await client.create(collection_of(wanted), wanted)
        made = await ours.create(collection_of(wanted), wanted)
        path = f"{collection_of(wanted)}/{made['metadata']['name']}"
        await ours.patch(path, {"metadata": {"labels": {"moved": "yes"}}})
        with pytest.raises(Refused, match="webhook"):
            await client.patch(path, {"metadata": {"labels": {"moved": "no"}}})
        await client.delete(path)
