"""The kinds of controllers that create a new pod when one of theirs is evicted."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from reberth.cluster.pods.identity import group_of
from reberth.other_projects.table import list_replacing
from reberth.records import WorkloadIdentity


class ControllerKind(NamedTuple):
    """A kind of controller, in any of its versions."""

    group: str
    kind: str

    def __str__(self) -> str:
        """Write it as an entry of replacingKinds."""
        return f"{self.group or 'v1'}/{self.kind}"


BATCH_JOB: Final = ControllerKind("batch", "Job")
BUILT_IN: Final = frozenset({
    ControllerKind("apps", "ReplicaSet"),
    ControllerKind("apps", "StatefulSet"),
    ControllerKind("", "ReplicationController"),
    BATCH_JOB,
})  # fmt: skip
"""Kubernetes' own. A Deployment is not among them: the controller of its pods is a ReplicaSet."""

OTHER_PROJECTS: Final = frozenset(ControllerKind(*named) for named in list_replacing())
"""Those of other projects that are known to replace their pods without being named."""

_LONGEST_SHOWN = 60
_VERSION = r"v[1-9][0-9]*(?:(?:alpha|beta)[1-9][0-9]*)?"
_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_ENTRY = re.compile(
    rf"(?:{_VERSION}|(?P<group>{_DNS_LABEL}(?:\.{_DNS_LABEL})*)(?:/{_VERSION})?)"
    r"/(?P<kind>[A-Z][A-Za-z0-9]{0,62})"
)


def kind_of(controller: WorkloadIdentity) -> ControllerKind:
    return ControllerKind(group_of(controller.api_version), controller.kind)


def parse_kind(text: str) -> ControllerKind:
    """Parse `group/Kind` or `apiVersion/Kind`; a version alone is the core group. Raises ValueError."""
    found = _ENTRY.fullmatch(text)
    if found is None:
        raise ValueError(
            f"replacingKinds: {text!r:.{_LONGEST_SHOWN}} is neither group/Kind nor apiVersion/Kind,"
            " such as apps.kruise.io/CloneSet"
        )
    return ControllerKind(found["group"] or "", found["kind"])


def list_custom(entries: Iterable[str]) -> tuple[ControllerKind, ...]:
    """List the kinds of other projects among the entries of replacingKinds, each once."""
    named = dict.fromkeys(map(parse_kind, entries))
    return tuple(kind for kind in named if kind.group and kind not in BUILT_IN)


def list_unnamed(named: Iterable[ControllerKind]) -> tuple[ControllerKind, ...]:
    """List the known kinds of other projects that are not named: a cluster may well not have them."""
    return tuple(sorted(OTHER_PROJECTS - set(named)))
