"""ImageLocality: a node scores more if it already has the pod's images.

kube-scheduler: `pkg/scheduler/framework/plugins/imagelocality/image_locality.go`: `(*ImageLocality).Score`,
`calculatePriority`, `sumImageScores`, `scaledImageScore`, `normalizedImageName`. Since 1.36 `sumImageScores`
adds the images of volumes; since 1.37 they are among those that `calculatePriority` divides by, too.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import Indices, Ints, group_codes, seal
from reberth.cluster.kinds import NODE
from reberth.cluster.pods.requests import Version
from reberth.forecast.plugins.normalize import MAX_NODE_SCORE
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.view import View
from reberth.records import ContainerImage, ObjectMeta, PodSpec

_MEBI = 1024**2
# `pkg/scheduler/framework/plugins/imagelocality/image_locality.go`: `minThreshold`, `maxContainerThreshold`
# (there: 90 % of the images on Docker Hub have a size in this range)
_MIN_THRESHOLD = 23 * _MEBI
_MAX_CONTAINER_THRESHOLD = 1000 * _MEBI
_SUMS_IMAGE_VOLUMES: Version = (1, 36)
_COUNTS_IMAGE_VOLUMES: Version = (1, 37)

# An image's size as the first node reported it, and the nodes of each record of this image.
ImageNodes = tuple[int, list[Indices]]


class _Shared(NamedTuple):
    """One record of an image that some nodes share: the nodes, and the position of the record in each."""

    image: ContainerImage
    nodes: Indices
    places: Indices


def score_image_locality(incoming: IncomingPod, view: View, feasible: Indices) -> Ints:
    facts, spec = view.facts, incoming.template.spec
    known = facts.once("images", lambda: _list_images(facts))
    names = tuple([name for name in map(_with_tag, _name_images(spec, facts.version)) if name in known])
    count = _count_images(spec, facts.version)
    found = facts.once(
        ("images of", names, count),
        lambda: _score(facts.size, [_settle(known[name], facts) for name in names], count),
    )
    return found.take(feasible)


def _score(size: int, images: Iterable[ImageNodes], count: int) -> Ints:
    """Score every node: a node's score does not depend on which nodes are feasible."""
    sums = np.zeros(size, np.int64)
    for each, parts in images:
        nodes = np.unique(np.concatenate(parts))
        sums[nodes] += int(each * (len(nodes) / max(size, 1)))
    highest = _MAX_CONTAINER_THRESHOLD * count
    return seal(
        MAX_NODE_SCORE
        * (np.clip(sums, _MIN_THRESHOLD, highest) - _MIN_THRESHOLD)
        // (highest - _MIN_THRESHOLD)
    )


def _name_images(spec: PodSpec, version: Version) -> Iterator[str]:
    yield from _name_images_of_containers(spec)
    if version >= _SUMS_IMAGE_VOLUMES:
        yield from _name_images_of_volumes(spec)


def _count_images(spec: PodSpec, version: Version) -> int:
    volumes = _name_images_of_volumes(spec) if version >= _COUNTS_IMAGE_VOLUMES else ()
    return len([*_name_images_of_containers(spec), *volumes])


def _name_images_of_containers(spec: PodSpec) -> Iterator[str]:
    for container in (*(spec.init_containers or ()), *(spec.containers or ())):
        yield container.image


def _name_images_of_volumes(spec: PodSpec) -> Iterator[str]:
    for volume in spec.volumes or ():
        if volume.image is not None:
            yield volume.image.reference or ""


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _list_images(facts: SnapshotFacts) -> dict[str, list[_Shared]]:
    """Find the nodes that have each image. Nodes with the same image mostly share its record."""
    known: dict[str, list[_Shared]] = {}
    for each in _list_shared(facts):
        for name in each.image.names or ():
            known.setdefault(name, []).append(each)
    return known


def _settle(shared: list[_Shared], facts: SnapshotFacts) -> ImageNodes:
    """Take the size that the first node reported, where records of one name differ.

    kube-scheduler keeps the size of the first report: `pkg/scheduler/backend/cache/cache.go`:
    `(*cacheImpl).addNodeImageStates`
    """
    sizes = {each.image.size_bytes for each in shared}
    first = shared[0] if len(sizes) == 1 else min(shared, key=partial(_come, facts))
    return first.image.size_bytes, [each.nodes for each in shared]


def _list_shared(facts: SnapshotFacts) -> Iterator[_Shared]:
    """Give each record with the nodes that share it."""
    rows, records = facts.snapshot.of(NODE).all, facts.snapshot.nodes.records
    objects = np.frombuffer(b"".join([row.images for row in rows]), np.int64)
    counts = np.array([len(row.images) // objects.itemsize for row in rows], np.int64)
    holders, begins = np.repeat(np.arange(len(rows), dtype=np.int32), counts), np.cumsum(counts) - counts
    for _, places in group_codes(objects):
        node = int(holders[places[0]])
        images = records[node].status.images or ()
        yield _Shared(images[places[0] - begins[node]], holders[places], places)


def _come(facts: SnapshotFacts, shared: _Shared) -> tuple[tuple[int, str], int]:
    """Give the order in which kube-scheduler learned of a record."""
    records = facts.snapshot.nodes.records
    pairs = zip(shared.nodes.tolist(), shared.places.tolist(), strict=True)
    return min((_age(records[node].metadata), place) for node, place in pairs)


def _age(meta: ObjectMeta) -> tuple[int, str]:
    """Order nodes as kube-scheduler may have learned of their images; it matters where their sizes differ.

    The images came with the node's resourceVersion; among nodes of one version the older comes first.
    """
    return int(meta.resource_version), meta.creation_timestamp or ""
