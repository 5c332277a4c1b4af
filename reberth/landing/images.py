"""Images that a node already has, so that a pod starts there sooner."""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from reberth.columns import Indices, Ints
from reberth.landing.asking import Asked
from reberth.landing.ground import Ground
from reberth.landing.normalising import MOST
from reberth.landing.viewing import View
from reberth.records import ObjectMeta, PodSpec
from reberth.requests import Version
from reberth.tabulating import seal

_MEBI = 1024**2
_LEAST = 23 * _MEBI
_MOST_OF_ONE = 1000 * _MEBI

# An image's size, as the first node that has it gave it, and the nodes of each record that tells of it.
Found = tuple[int, list[Indices]]


def score_images(asked: Asked, view: View, feasible: Indices) -> Ints:
    ground, spec = view.ground, asked.template.spec
    known = ground.once("images", lambda: _list_images(ground))
    names = tuple([name for name in map(_with_tag, _name_images(spec, ground.version)) if name in known])
    containers = len(spec.init_containers or ()) + len(spec.containers or ())
    key = ("images of", names, containers)
    found = ground.once(key, lambda: _score(ground.size, [known[name] for name in names], containers))
    return found[feasible]


def _score(size: int, images: Iterable[Found], containers: int) -> Ints:
    """Score every node; the score of one does not depend on which others are feasible."""
    sums = np.zeros(size, np.int64)
    for each, parts in images:
        nodes = np.unique(np.concatenate(parts))
        sums[nodes] += int(each * (len(nodes) / max(size, 1)))
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
    nodes = sorted(range(ground.size), key=lambda place: _age(records[place].metadata))
    held = [records[node].status.images or () for node in nodes]
    images = list(chain.from_iterable(held))
    holders = np.repeat(np.array(nodes, np.int32), [len(each) for each in held])
    found: dict[str, Found] = {}
    for first, part in _group(np.fromiter(map(id, images), np.int64, len(images)), holders):
        for name in images[first].names or ():
            found.setdefault(name, (images[first].size_bytes, []))[1].append(part)
    return found


def _group(keys: Ints, values: Indices) -> Iterator[tuple[int, Indices]]:
    """Give the values of each key, and where the key stands first: in that order."""
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.concatenate(([True], np.diff(keys[order]) != 0))[: len(keys)])
    firsts, parts = order[begins], np.split(values[order], begins[1:])
    for place in np.argsort(firsts):
        yield int(firsts[place]), parts[place]


def _age(meta: ObjectMeta) -> tuple[int, str]:
    """Order nodes as kube-scheduler may have come to know them: it matters where they differ over a size.

    What a node says of its images came with its version; nodes of one version are told by their birth.
    """
    return int(meta.resource_version), meta.creation_timestamp or ""
