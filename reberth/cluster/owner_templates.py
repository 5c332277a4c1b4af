"""The pod templates that owners keep: as JSON of the fields that are read, and only where there are pods.

Ten old ReplicaSets of a Deployment have no pods and keep no template. What is kept is a copy: the text of a
template that was just read belongs to the whole answer of the API server, and would keep that alive.
"""

from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from reberth.cluster.object_size import LARGE
from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.interning import keep_known
from reberth.records import (
    NO_TEMPLATE,
    ControllerRevision,
    CustomOwner,
    CustomOwnerSpec,
    ObjectMeta,
    PodTemplate,
    RevisionData,
    RevisionSpec,
    ServiceAccount,
    TemplatedOwner,
    TemplatedReplicationController,
)
from reberth.values.text_limits import UNREADABLE

Templated = TypeVar("Templated", TemplatedOwner, TemplatedReplicationController)

_decode = msgspec.json.Decoder(PodTemplate).decode
_encode = msgspec.json.Encoder(order="deterministic").encode
# What is read takes some times the memory of its text: together not more than texts of 5 MiB.
_SMALL = 2**11
_read_small = lru_cache(maxsize=2048)(_decode)
_read_large = lru_cache(maxsize=64)(_decode)
# What the table of kinds of other projects reads of the status of those that replace their pods.
_OF_ROLLOUTS = ("observedGeneration", "currentRevision", "updateRevision")
_NO_CLAIMS = (b"", b"null", b"[]")
_CUT = Raw(_encode(PodTemplate(is_cut=True)))


def keep_template(owner: Templated) -> Templated:
    """Keep the template of an owner that has pods, or wants some."""
    spec = owner.spec
    kept = _keep(spec.template) if spec.replicas != 0 or owner.status.replicas else NO_TEMPLATE
    return replace(owner, spec=replace(spec, template=kept))


def keep_custom(owner: CustomOwner) -> CustomOwner:
    """Keep the template of a kind that may have anything else in its place.

    How such a kind names the claims that it creates is not known: its pods are forecast without the template.
    """
    has_claims = bytes(owner.spec.volume_claim_templates) not in _NO_CLAIMS
    kept = NO_TEMPLATE if has_claims or not _is_of_pods(owner.spec.template) else _keep(owner.spec.template)
    told = owner.status if isinstance(owner.status, dict) else {}
    status = {name: told[name] for name in _OF_ROLLOUTS if isinstance(told.get(name), str | int)}
    return replace(owner, spec=CustomOwnerSpec(kept), status=status or None)


def drop_template(owner: Templated) -> Templated:
    return replace(owner, spec=replace(owner.spec, template=NO_TEMPLATE))


def keep_revision(revision: ControllerRevision) -> ControllerRevision:
    """Keep the template of a revision, unless it is a DaemonSet's: its pods are never moved."""
    controller = find_controller(revision.metadata)
    is_read = controller is not None and controller.kind == "StatefulSet"
    kept = _keep(revision.template) if is_read else NO_TEMPLATE
    return replace(revision, data=RevisionData(RevisionSpec(kept)))


def keep_name(account: ServiceAccount) -> ServiceAccount:
    meta = account.metadata
    named = ObjectMeta(meta.name, meta.namespace, meta.uid, meta.resource_version)
    return ServiceAccount(named)


def read_template(kept: bytes) -> PodTemplate:
    """Read a template that was kept, or one of an object that was written by hand."""
    return _read_small(kept) if len(kept) <= _SMALL else _read_large(kept)


def _is_of_pods(template: Raw) -> bool:
    try:
        return bool(bytes(template)) and bool(_decode(template).spec.containers)
    except UNREADABLE:
        return False


def _keep(template: Raw) -> Raw:
    """An unreadable template is as none: its pods cannot be forecast, and everything else goes on."""
    if not bytes(template):
        return NO_TEMPLATE
    try:
        read = _decode(template)
    except UNREADABLE:
        return _CUT
    kept = keep_known(read.metadata.annotations)
    text = _encode(replace(read, metadata=replace(read.metadata, annotations=kept)))
    return _CUT if len(text) > LARGE else Raw(text)
