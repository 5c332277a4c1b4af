"""AdmissionReviews of the API server (admission.k8s.io/v1) and their responses: bytes in, bytes out."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from federation.admission.defaulting import set_defaults
from federation.admission.json_access import text
from federation.admission.json_patch import Change, encode
from federation.admission.permanent_ids import set_permanent_id
from federation.admission.validation import find_ignored_fields, find_refusals
from reberth.records import Record

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
_GROUPS = ("cluster.karmada.io", "config.karmada.io", "policy.karmada.io", "work.karmada.io")
_WRITES = ("CREATE", "UPDATE")
_FORBIDDEN = 403


class ReviewError(ValueError):
    """The body is not an AdmissionReview that can be answered."""


class ReviewedKind(Record, frozen=True):
    kind: str
    group: str = ""
    version: str = ""


class AdmissionRequest(Record, frozen=True):
    """The operation to admit. `object` is empty for a deletion, `old_object` for a creation."""

    uid: str
    kind: ReviewedKind
    operation: str
    namespace: str = ""
    name: str = ""
    sub_resource: str | None = None
    object: Any = None
    old_object: Any = None

    @property
    def concerns_us(self) -> bool:
        """Whether it creates or updates an object of the federation, but not only its status."""
        return self.kind.group in _GROUPS and self.operation in _WRITES and not self.sub_resource


class AdmissionDenial(msgspec.Struct, frozen=True):
    """Why the operation is denied, as a metav1.Status."""

    message: str
    code: int = _FORBIDDEN
    reason: str = "Forbidden"


class AdmissionResponse(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool
    status: AdmissionDenial | None = None
    patch_type: Literal["JSONPatch"] | None = None
    patch: bytes | None = None
    warnings: list[str] | None = None


class _ReviewRequest(Record, frozen=True):
    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


class _ReviewResponse(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    response: AdmissionResponse


_decoder = msgspec.json.Decoder(_ReviewRequest)


def read(body: bytes) -> AdmissionRequest:
    """Decode the review. Raises a ReviewError that names what is wrong with the body."""
    try:
        return _decoder.decode(body).request
    except RecursionError:
        raise ReviewError("the body is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ReviewError(f"the body is not an {KIND} of {API_VERSION}: {error}") from None


def write(answer: AdmissionResponse) -> bytes:
    return msgspec.json.encode(_ReviewResponse(API_VERSION, KIND, answer))


def answer_defaulting(request: AdmissionRequest, *, identity: str, now: float) -> AdmissionResponse:
    """Respond to the mutating webhook: defaults, and a permanent id where one is missing."""
    if at_once := _answer_at_once(request):
        return at_once
    kind, wanted = request.kind.kind, request.object
    namespace = request.namespace or text(wanted, "metadata", "namespace")
    before = request.old_object
    changes: Sequence[Change] = (
        *set_permanent_id(kind, wanted, before, identity=identity),
        *set_defaults(kind, wanted, namespace=namespace, now=now),
    )
    if not changes:
        return AdmissionResponse(request.uid, allowed=True)
    return AdmissionResponse(request.uid, allowed=True, patch_type="JSONPatch", patch=encode(changes))


def answer_validating(request: AdmissionRequest) -> AdmissionResponse:
    """Respond to the validating webhook: refusals, or warnings about fields without effect."""
    if at_once := _answer_at_once(request):
        return at_once
    refusals = list(find_refusals(request.kind.kind, request.object, request.old_object))
    if refusals:
        return _refuse(request, refusals)
    warnings = list(find_ignored_fields(request.kind.kind, request.object))
    return AdmissionResponse(request.uid, allowed=True, warnings=warnings or None)


def _answer_at_once(request: AdmissionRequest) -> AdmissionResponse | None:
    """Respond without reading the object, if it is not one of ours or not an object at all."""
    if not request.concerns_us:
        return AdmissionResponse(request.uid, allowed=True)
    if not isinstance(request.object, dict):
        return _refuse(request, ["request.object: expected an object"])
    return None


def _refuse(request: AdmissionRequest, reasons: Sequence[str]) -> AdmissionResponse:
    return AdmissionResponse(request.uid, allowed=False, status=AdmissionDenial("; ".join(reasons)))
