"""The pages of a federation process."""

import asyncio

import aiohttp

from localcluster.cluster import Cluster
from localcluster.host.ports import HOST

WITHIN = 60.0


async def read_page(cluster: Cluster, path: str, *, number: int = 0) -> str:
    """Nothing unless it answers with 200."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://{HOST}:{cluster.spare_port(number)}{path}") as answer:
                return await answer.text() if answer.status == 200 else ""
        except aiohttp.ClientError:
            return ""


async def wait_for_page(cluster: Cluster, path: str, *, number: int = 0, saying: str = "") -> None:
    async with asyncio.timeout(WITHIN):
        while not (text := await read_page(cluster, path, number=number)) or saying not in text:
            await asyncio.sleep(0.05)
