"""The newest pods of each controller that are as they were created: what admission makes of its template.

A pod whose generation is above 1 was changed since: resized in place, given a toleration or another image.
What it asks for now is not what its replacement will ask for.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reberth.cluster.columns import PodPart, read_pods
from reberth.cluster.kinds import POD
from reberth.cluster.rows import AS_CREATED, CHANGED, PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.tables import NamespaceRows
from reberth.cluster.templates import Template
from reberth.forecast.replacement.revisions import REVISION

CLOCK_DIFFERENCE = 60.0
"""Seconds by which API servers may differ: what is younger than a change by no more may be older."""
_NONE: tuple["Sibling", ...] = ()


class Sibling(NamedTuple):
    """A pod that shows what becomes of its template."""

    template: Template
    created: float
    is_whole: bool = True
    """It is as it was created."""
    is_changed: bool = False
    """It was changed since; if it is neither, its objects were written by hand."""

    @property
    def revision(self) -> str:
        return self.template.labels.get(REVISION, "")


def find_sibling(snapshot: Snapshot, row: PodRow, revision: str) -> Sibling:
    """Find the newest pod of the same controller, rather of this revision; without one, the pod itself."""
    controller = row.template.controller
    found = list_as_created(snapshot.of(POD).part(row.namespace)).get(
        controller.uid if controller else "", _NONE
    )
    alike = [each for each in found if each.revision == revision] if revision else found
    if alike or found:
        return (alike or found)[0]
    return Sibling(row.template, row.created, is_whole=False, is_changed=bool(row.marks & CHANGED))


def list_as_created(part: NamespaceRows[PodRow]) -> Mapping[str, tuple[Sibling, ...]]:
    """List the pods that are as created by their controller, newest first, one of each template."""
    if not part.rows:
        return {}
    return part.once("as created", lambda: _list(part.read(read_pods)))


def has_one_size(part: NamespaceRows[PodRow], controller: str) -> bool:
    """Tell whether all pods of a controller request the same: none was resized by itself."""
    if not part.rows:
        return True
    return controller not in part.once(
        "of several sizes", lambda: _list_of_several_sizes(part.read(read_pods))
    )


def _list_of_several_sizes(pods: PodPart) -> frozenset[str]:
    first: dict[str, Template] = {}
    found = set[str]()
    for each in pods.templates:
        if each.controller is not None:
            known = first.setdefault(each.controller.uid, each)
            if (known.main, known.extended) != (each.main, each.extended):
                found.add(each.controller.uid)
    return frozenset(found)


def _list(pods: PodPart) -> Mapping[str, tuple[Sibling, ...]]:
    whole = (pods.marks & AS_CREATED) != 0
    newest = np.full(len(pods.templates), -np.inf)
    np.maximum.at(newest, pods.template[whole], pods.created[whole])
    found = defaultdict[str, list[Sibling]](list)
    for number in np.argsort(-newest, kind="stable").tolist():
        template = pods.templates[number]
        if newest[number] >= 0 and template.controller is not None and not template.is_cut:
            found[template.controller.uid].append(Sibling(template, float(newest[number])))
    return {uid: tuple(siblings) for uid, siblings in found.items()}
