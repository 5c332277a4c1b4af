"""Images that a node already has, so that a pod starts there sooner."""

from collections.abc import Iterator

import numpy as np

from reberth.columns import Indices, Ints
from reberth.landing.asking import Asked
from reberth.landing.ground import Ground
from reberth.landing.normalising import MOST
from reberth.landing.viewing import View
from reberth.records import ContainerImage, ObjectMeta, PodSpec
from reberth.requests import Version
from reberth.tabulating import seal

_MEBI = 1024**2
_LEAST = 23 * _MEBI
_MOST_OF_ONE = 1000 * _MEBI

# An image's size, as the first node that has it gave it, and the nodes that have it.
Found = tuple[int, Indices]


def score_images(asked: Asked, view: View, feasible: Indices) -> Ints:
    ground = view.ground
    return ground.once(("images of", asked.template), lambda: _score(ground, asked.template.spec))[feasible]


def _score(ground: Ground, spec: PodSpec) -> Ints:
    """Score every node; the score of one does not depend on which others are feasible."""
    sums = np.zeros(ground.size, np.int64)
    known = ground.once("images", lambda: _list_images(ground))
    for name in _name_images(spec, ground.version):
        size, nodes = known.get(_with_tag(name), (0, np.zeros(0, np.int32)))
        sums[nodes] += int(size * (len(nodes) / max(ground.size, 1)))
    containers = len(spec.init_containers or ()) + len(spec.containers or ())
    highest = _MOST_OF_ONE * containers
    return seal(MOST * (np.clip(sums, _LEAST, highest) - _LEAST) // (highest - _LEAST))


def _name_images(spec: PodSpec, version: Version) -> Iterator[str]:
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        yield container.image
    if version >= (1, 36):
        for volume in spec.volumes or ():
            if volume.image is not None:
                yield volume.image.reference or ""


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _list_images(ground: Ground) -> dict[str, Found]:
    """Find who has each image. Nodes that have the same one mostly share its record."""
    records = ground.snapshot.nodes.records
    holders: dict[int, tuple[ContainerImage, list[int]]] = {}
    for node in sorted(range(ground.size), key=lambda place: _age(records[place].metadata)):
        for image in records[node].status.images or ():
            holders.setdefault(id(image), (image, []))[1].append(node)
    found: dict[str, tuple[int, set[int]]] = {}
    for image, nodes in holders.values():
        for name in image.names or ():
            found.setdefault(name, (image.size_bytes, set()))[1].update(nodes)
    return {name: (size, np.array(sorted(nodes), np.int32)) for name, (size, nodes) in found.items()}


def _age(meta: ObjectMeta) -> tuple[str, int]:
    """Order nodes as kube-scheduler may have come to know them; it matters where they differ over a size."""
    return meta.creation_timestamp or "", int(meta.resource_version)
