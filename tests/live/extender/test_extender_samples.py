"""With 100 nodes or more kube-scheduler samples nodes: a destination list must be long enough."""

import pytest

from localcluster.state_dir import running
from tests.live.support.extender_process import extending
from tests.live.support.written_memory import DEPLOYMENTS, PODS, open_move, sign
from tests.support.builders import deployment

pytestmark = [pytest.mark.live, pytest.mark.soak]

NODES = 300  # 144 of them are looked at
DESTINATIONS = [f"node-{number:05d}" for number in range(5, NODES, NODES // 12)]  # one in the sample: 99.96 %
ROUNDS = 100


async def test_of_a_hundred_pods_among_three_hundred_nodes_nearly_all_land_on_the_list() -> None:
    async with running(nodes=NODES) as cluster, extending(cluster) as extender, cluster.client() as client:
        await extender.schedule()
        await client.create(DEPLOYMENTS, deployment("web", cpu="100m"))
        who = await sign(client, "web")
        landed, last = [], ""
        for _ in range(ROUNDS + 1):
            found = await client.wait(
                f"{PODS}?labelSelector=app%3Dweb",
                lambda answer, last=last: any(
                    item["spec"].get("nodeName") and item["metadata"]["uid"] != last
                    for item in answer["items"]
                ),
                every=0.02,
            )
            (pod,) = [item for item in found["items"] if item["metadata"]["uid"] != last]
            landed.append(pod["spec"]["nodeName"] in DESTINATIONS)
            last = pod["metadata"]["uid"]
            await extender.sees("evictionhistories", await open_move(client, who, pod, DESTINATIONS))
            await client.delete(f"{PODS}/{pod['metadata']['name']}")
        print(f"\n{sum(landed[1:])} of {ROUNDS} landed on one of {len(DESTINATIONS)} destinations")
        assert sum(landed[1:]) >= 0.99 * ROUNDS
