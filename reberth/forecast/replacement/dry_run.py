"""The replacement as its controller would create it, for a dry run, and what the answer shows.

The API server then does to it what it would do to the replacement, webhooks included. That is evidence and no
proof: whoever asks is not the controller, and a webhook may tell them apart.

kube-controller-manager: `pkg/controller/controller_utils.go`: `GetPodFromTemplate`;
`pkg/controller/statefulset/stateful_set_utils.go`: `newStatefulSetPod`, `updateIdentity`, `updateStorage`
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from reberth.cluster.pods.interning import OWN_LABELS, split_pod
from reberth.cluster.rows import PodRow
from reberth.cluster.templates import make_bare_template
from reberth.forecast.replacement.likeness import find_difference
from reberth.forecast.replacement.next_pod import NextPod
from reberth.forecast.replacement.refusals import cannot_be_replaced, cannot_forecast
from reberth.forecast.replacement.revisions import REVISION
from reberth.records import Pod, WorkloadIdentity
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused

Json = Mapping[str, Any]

# What the API server decided about the pod, and not about who asks.
_DECIDED = (errors.BadRequest, errors.Forbidden, errors.Invalid, errors.NotFound)
_NO_PERMISSION = re.compile(r'User "[^"]*" cannot ')
_NO_DRY_RUN = "does not support dry run"
# `k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go`: `CheckRequest`.
# Webhooks and admission policies say beside their own words that they have denied it.
_QUOTA = "is forbidden: exceeded quota: "
_OF_OTHERS = ("denied the request", "denied request:")


class WholeTemplate(NamedTuple):
    """The template of a controller with all of its fields, and what a StatefulSet adds."""

    controller: WorkloadIdentity
    template: Json
    service: str = ""
    claims: Sequence[str] = ()
    revision: str = ""


def compose_pod(whole: WholeTemplate, row: PodRow) -> dict[str, Any]:
    """Compose the pod in the place of this one. Its own name may still be taken."""
    is_of_set = whole.controller.kind == "StatefulSet"
    meta, spec = whole.template.get("metadata") or {}, dict(whole.template.get("spec") or {})
    labels = {**(meta.get("labels") or {}), **(_identify(whole, row) if is_of_set else {})}
    if is_of_set:
        spec |= {"hostname": row.name, "subdomain": whole.service, "volumes": _claim(whole, row, spec)}
    made = {
        "generateName": f"{row.name if is_of_set else whole.controller.name}-",
        "namespace": row.namespace,
        "labels": labels,
        "annotations": meta.get("annotations") or {},
        "finalizers": meta.get("finalizers") or [],
        "ownerReferences": [_refer(whole.controller)],
    }
    return {"metadata": made, "spec": spec}


def judge_answer(answer: Pod, foretold: NextPod) -> Refused | None:
    """Refuse if the API server would make of the replacement something else than was foretold."""
    common, _ = split_pod(answer)
    difference = find_difference(make_bare_template(common), foretold.template)
    if difference is None:
        return None
    return cannot_forecast(f"the dry run of the replacement is not as foretold: {difference}")


def judge_refusal(error: ApiError, *, is_of_set: bool) -> Refused | None:
    """Tell what a refused dry run means. A pod of a StatefulSet is created when the old one uses no quota."""
    if is_of_set and _exceeds_quota(error):
        return None
    is_about_us = bool(_NO_PERMISSION.search(error.message)) or _NO_DRY_RUN in error.message
    if isinstance(error, _DECIDED) and not is_about_us:
        return cannot_be_replaced(error.message)
    return cannot_forecast(f"the dry run of the replacement failed: {error.message}")


def _exceeds_quota(error: ApiError) -> bool:
    is_denied_by_others = any(each in error.message for each in _OF_OTHERS)
    return isinstance(error, errors.Forbidden) and _QUOTA in error.message and not is_denied_by_others


def _identify(whole: WholeTemplate, row: PodRow) -> dict[str, str]:
    own = {key: value for key, value in row.own.labels if key in OWN_LABELS and "topology" not in key}
    return {**own, **({REVISION: whole.revision} if whole.revision else {})}


def _claim(whole: WholeTemplate, row: PodRow, spec: Json) -> list[Json]:
    claimed = [
        {"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{row.name}"}} for each in whole.claims
    ]
    return [*claimed, *(each for each in spec.get("volumes") or () if each.get("name") not in whole.claims)]


def _refer(controller: WorkloadIdentity) -> dict[str, Any]:
    """Refer to the controller, without `blockOwnerDeletion`, which needs a right to its finalizers."""
    return {
        "apiVersion": controller.api_version,
        "kind": controller.kind,
        "name": controller.name,
        "uid": controller.uid,
        "controller": True,
    }
