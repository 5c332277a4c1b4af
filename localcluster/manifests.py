"""Manifests: YAML files of a folder, read, applied by server-side apply and deleted again."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from localcluster.client import Client, Object
from localcluster.errors import LocalClusterError

_TYPE = ("apiVersion", "kind")
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def apply(client: Client, folder: Path) -> list[str]:
    """Apply the files in the order of their names; the paths of the objects, in the order of applying.

    Nothing is applied if one manifest cannot be. Returns when every CustomResourceDefinition is established.
    """
    return [await _apply(client, manifest) for manifest in await asyncio.to_thread(_read, folder)]


async def remove(client: Client, paths: Iterable[str]) -> None:
    """Delete the objects of these paths, the last one first; wait until each is gone."""
    for path in reversed(list(paths)):
        collection, _, name = path.rpartition("/")
        if collection == _DEFINITIONS:
            await _wait_until_served(client, await client.get(path))
        await client.delete(path)
        await client.wait(collection, partial(_lacks, name))


async def _wait_until_served(client: Client, definition: Object) -> None:
    """Wait until objects of the kind can be listed.

    Deleting a kind deletes its objects first. If their storage is not set up yet, the API server puts the
    deletion off, and tries again only after a back-off that can be longer than anybody waits.
    """
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["served"])
    await client.wait(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}", lambda _: True)


def _read(folder: Path) -> list[Object]:
    found = [manifest for file in sorted(folder.glob("*.yaml")) for manifest in _read_manifests(file)]
    if not found:
        raise LocalClusterError(f"{folder} holds no manifests (*.yaml)")
    return found


def _read_manifests(file: Path) -> Iterator[Object]:
    for document in read_objects(file):
        is_list = document.get("kind") == "List" and isinstance(document.get("items"), list)
        for manifest in document["items"] if is_list else [document]:
            if not _is_manifest(manifest):
                message = f"{file}: every object needs apiVersion, kind and metadata.name"
                raise LocalClusterError(f"{message} (server-side apply does not support generateName)")
            yield manifest


def _is_manifest(found: Any) -> bool:
    if not isinstance(found, Mapping) or not isinstance(meta := found.get("metadata"), Mapping):
        return False
    return all(isinstance(text, str) and text for text in (*map(found.get, _TYPE), meta.get("name")))


async def find_path(client: Client, manifest: Object) -> str:
    """The path of the object in the API, whether it exists or not."""
    return f"{await _find_collection(client, manifest)}/{manifest['metadata']['name']}"


async def _apply(client: Client, manifest: Object) -> str:
    path = await find_path(client, manifest)
    await client.apply(path, manifest)
    if manifest["kind"] == "CustomResourceDefinition":
        await client.wait(path, _is_established)  # its objects may be in the next file
    return path


async def _find_collection(client: Client, manifest: Object) -> str:
    """The collection of a kind; discovery takes a moment to list a new one."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    found = await client.wait(root, lambda answer: _find_resource(answer, kind) is not None)
    resource = _find_resource(found, kind)
    namespace = manifest["metadata"].get("namespace", "default")
    within = f"/namespaces/{namespace}" if resource["namespaced"] else ""
    return f"{root}{within}/{resource['name']}"


def _find_resource(answer: Any, kind: str) -> Any:
    """Find a kind's resource; subresources may have the same kind."""
    plain = (each for each in answer["resources"] if "/" not in each["name"])
    return next((each for each in plain if each["kind"] == kind), None)


def _is_established(definition: Any) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()  # null when it was just created
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
        raise LocalClusterError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from None
    if not all(isinstance(each, Mapping) for each in documents):
        raise LocalClusterError(f"{file} holds a document that is not a mapping")
    return documents


def read_object(file: Path) -> dict[str, Any]:
    """The one document of a file."""
    documents = read_objects(file)
    if len(documents) != 1:
        raise LocalClusterError(f"{file} holds {len(documents)} documents instead of one")
    return documents[0]
