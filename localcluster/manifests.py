"""What an operator applies, applied: YAML files of a folder, each object created or replaced."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from localcluster.client import Client, Object, Refused
from localcluster.errors import LocalClusterError

_NEEDED = ("apiVersion", "kind", "metadata")


async def apply(client: Client, folder: Path) -> list[str]:
    """Apply the files in the order of their names; the paths of the objects, in the order of applying.

    Returns when every custom resource that was defined is served.
    """
    return [await _put(client, manifest) for manifest in await asyncio.to_thread(_read, folder)]


async def remove(client: Client, paths: Iterable[str]) -> None:
    """Delete what was applied, the last first, and wait until it is gone."""
    for path in reversed(list(paths)):
        collection, _, name = path.rpartition("/")
        await client.delete(path)
        await client.wait(collection, partial(_lacks, name))


def _read(folder: Path) -> list[Object]:
    found = [manifest for file in sorted(folder.glob("*.yaml")) for manifest in read_objects(file)]
    if not found or not all(manifest.keys() >= set(_NEEDED) for manifest in found):
        raise LocalClusterError(f"{folder} should hold manifests (*.yaml), each with {', '.join(_NEEDED)}")
    return found


async def find_path(client: Client, manifest: Object) -> str:
    """Where the object stands, or would."""
    return f"{await _find_collection(client, manifest)}/{manifest['metadata']['name']}"


async def _put(client: Client, manifest: Object) -> str:
    path = await find_path(client, manifest)
    try:
        version = (await client.get(path))["metadata"]["resourceVersion"]
    except Refused as refused:
        if refused.status != 404:
            raise
        await client.create(path.rpartition("/")[0], manifest)
    else:
        meta = {**manifest["metadata"], "resourceVersion": version}
        await client.request("PUT", path, {**manifest, "metadata": meta})
    if manifest["kind"] == "CustomResourceDefinition":
        await client.wait(path, _is_established)
    return path


async def _find_collection(client: Client, manifest: Object) -> str:
    """Where objects of this kind are kept; the API server takes a moment to name one just defined."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    found = await client.wait(root, lambda answer: _find_resource(answer, kind) is not None)
    resource = _find_resource(found, kind)
    namespace = manifest["metadata"].get("namespace", "default")
    within = f"/namespaces/{namespace}" if resource["namespaced"] else ""
    return f"{root}{within}/{resource['name']}"


def _find_resource(answer: Any, kind: str) -> Any:
    """Tell the objects from their subresources, which may be of the same kind."""
    plain = (each for each in answer["resources"] if "/" not in each["name"])
    return next((each for each in plain if each["kind"] == kind), None)


def _is_established(definition: Any) -> bool:
    conditions = definition["status"]["conditions"] or ()  # null when it was just created
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _lacks(name: str, found: Any) -> bool:
    return all(each["metadata"]["name"] != name for each in found["items"])


def read_objects(file: Path) -> list[dict[str, Any]]:
    """The documents of a file, each of them a mapping."""
    try:
        documents = [each for each in yaml.safe_load_all(file.read_text()) if each is not None]
    except OSError as error:
        raise LocalClusterError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, yaml.YAMLError) as error:
        raise LocalClusterError(f"{file} is no YAML: {' '.join(str(error).split())}") from None
    if not all(isinstance(each, Mapping) for each in documents):
        raise LocalClusterError(f"{file} holds something that is no mapping")
    return documents


def read_object(file: Path) -> dict[str, Any]:
    """The one document of a file."""
    documents = read_objects(file)
    if len(documents) != 1:
        raise LocalClusterError(f"{file} holds {len(documents)} documents, one is needed")
    return documents[0]
