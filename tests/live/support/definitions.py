"""Kinds that a test defines, and removes again."""

from collections.abc import Collection

from localcluster.client import Client, all_of

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def remove_definitions(client: Client, names: Collection[str]) -> None:
    """Remove kinds, and wait until they are gone: one that is being deleted cannot be defined again."""
    await all_of(client.delete(f"{DEFINITIONS}/{name}") for name in names)
    await client.wait(
        DEFINITIONS, lambda found: not {each["metadata"]["name"] for each in found["items"]} & set(names)
    )
