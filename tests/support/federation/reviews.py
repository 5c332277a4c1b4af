"""AdmissionReviews as the API server sends them, and the response in an answer."""

import json
from typing import Any

from tests.support.builders import Object
from tests.support.federation.crds import CRDS

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def review(wanted: Any, *, before: Any = None, operation: str = "CREATE", **request: Any) -> Object:
    """What the API server asks about an object of ours."""
    spec = CRDS[wanted["kind"]]["spec"] if isinstance(wanted, dict) and wanted.get("kind") in CRDS else None
    kind = (
        {"group": spec["group"], "version": spec["versions"][0]["name"], "kind": spec["names"]["kind"]}
        if spec
        else {"group": "policy.karmada.io", "version": "v1alpha1", "kind": "PropagationPolicy"}
    )
    if spec and spec["scope"] == "Namespaced" and isinstance(wanted.get("metadata"), dict):
        wanted = {**wanted, "metadata": {"namespace": "default", **wanted["metadata"]}}
    asked = {
        "uid": UID,
        "kind": kind,
        "resource": {"group": kind["group"], "version": kind["version"], "resource": "any"},
        "namespace": "default",
        "operation": operation,
        "object": wanted,
        "oldObject": before,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked | request}


def response(body: bytes) -> Object:
    """The answer's response; the rest of it is always the same."""
    answer: Object = json.loads(body)
    assert {key: answer[key] for key in ("apiVersion", "kind")} == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
    }
    found: Object = answer["response"]
    assert found["uid"]
    return found
