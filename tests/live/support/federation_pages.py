"""The pages of a federation process."""

import asyncio

import aiohttp

from localcluster.cluster import Cluster
from localcluster.host.ports import HOST

WITHIN = 60.0


async def ask_page(cluster: Cluster, path: str, *, number: int = 0) -> tuple[int, str]:
    """Its status and its text; 0 and nothing if nobody answers."""
    async with aiohttp.ClientSession() as session:
        try:
            async with session.get(f"http://{HOST}:{cluster.spare_port(number)}{path}") as answer:
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""


async def read_page(cluster: Cluster, path: str, *, number: int = 0) -> str:
    """Nothing unless it answers with 200."""
    status, text = await ask_page(cluster, path, number=number)
    return text if status == 200 else ""


async def wait_for_page(cluster: Cluster, path: str, *, number: int = 0, saying: str = "") -> None:
    async with asyncio.timeout(WITHIN):
        while not (text := await read_page(cluster, path, number=number)) or saying not in text:
            await asyncio.sleep(0.05)
