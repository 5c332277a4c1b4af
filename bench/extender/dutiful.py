"""What no extender in Python that answers from a mirror can leave undone, and nothing else.

    python -m bench.extender.dutiful PORT KUBECONFIG

It mirrors all that Reberth's extender mirrors, reads each call with the same decoder, and finds each node
that it names. It decides nothing: the answers are those of the bare floor.
"""

import asyncio
import gc
import sys

from bench.extender.floor import Responder
from extender.answers.memory import ClusterMemory
from extender.answers.wire import read_args
from extender.server.process import MIRRORED
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import mirroring
from reberth.cluster.pods.requests import NEWEST
from reberth.memory.addon_scores import ScoreSettings


class Dutiful(Responder):
    """One connection, whose calls are read."""

    memory = ClusterMemory(ScoreSettings(), version=NEWEST)

    def look_at(self, body: bytes) -> None:
        self.memory.locate(read_args(body).nodes)


async def serve(port: int, kubeconfig: str) -> None:
    async with Api(Access(kubeconfig)) as api, mirroring(api, Dutiful.memory, MIRRORED) as mirror:
        await mirror.synced()
        gc.collect()
        gc.freeze()
        server = await asyncio.get_running_loop().create_server(Dutiful, "127.0.0.1", port)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2]))
