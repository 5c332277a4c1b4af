"""The error responses of kube-apiserver: `v1.Status`, field by field."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localcluster.faults.request_info import RequestInfo

_NOWHERE = RequestInfo("", "", "", {}, "")


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    code: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Status:
    """A `v1.Status`; `{object}` in the message becomes the object that the request is about."""

    code: int
    reason: str
    """Empty where the API server sends none."""
    message: str
    details: Mapping[str, Any] | None = None
    names_object: bool = False
    """The details name the object of the request."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def reply(self, request: RequestInfo) -> Reply:
        headers = {"Cache-Control": "no-cache, private", "Content-Type": "application/json", **self.headers}
        if self.details and "retryAfterSeconds" in self.details:
            headers["Retry-After"] = str(self.details["retryAfterSeconds"])
        return Reply(self.code, headers, _encode(self.body(request)))

    def event(self) -> bytes:
        """The line of a watch that it ends with."""
        return _encode({"type": "ERROR", "object": self.body(_NOWHERE)})

    def body(self, request: RequestInfo) -> dict[str, Any]:
        details = {**(_naming(request) if self.names_object else {}), **(self.details or {})}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message.replace("{object}", request.object),
            **({"reason": self.reason} if self.reason else {}),
            **({"details": details} if self.names_object or self.details is not None else {}),
            "code": self.code,
        }


@dataclass(frozen=True)
class PlainText:
    """An error from in front of the API machinery, which knows no `v1.Status`."""

    code: int
    text: str
    retry_after: int

    def reply(self, _request: RequestInfo) -> Reply:
        headers = {
            "Cache-Control": "no-cache, private",
            "Content-Type": "text/plain; charset=utf-8",
            "Retry-After": str(self.retry_after),
            "X-Content-Type-Options": "nosniff",
        }
        return Reply(self.code, headers, f"{self.text}\n".encode())


def conflict() -> Status:
    """409: another writer changed the object first."""
    advice = "the object has been modified; please apply your changes to the latest version and try again"
    return Status(409, "Conflict", "Operation cannot be fulfilled on {object}: " + advice, names_object=True)


def already_exists() -> Status:
    """409: to a create."""
    return Status(409, "AlreadyExists", "{object} already exists", names_object=True)


def list_expired() -> Status:
    """410: a list at a resourceVersion that etcd has compacted away."""
    return Status(410, "Expired", "The resourceVersion for the provided list is too old.")


def watch_expired(*, asked: int = 1, oldest: int = 1000) -> Status:
    """410: a watch from a resourceVersion that the cache no longer holds; comes as an event after a 200."""
    return Status(410, "Expired", f"too old resource version: {asked} ({oldest})")


def budget_exhausted(budget: str, *, needs: int, has: int) -> Status:
    """429 without Retry-After: the PodDisruptionBudget allows no eviction now."""
    return _eviction_refused(
        f"The disruption budget {budget} needs {needs} healthy pods and has {has} currently"
    )


def budget_unobserved(budget: str, *, retry_after: int = 10) -> Status:
    """429 with Retry-After: the PodDisruptionBudget is new or edited, and its controller has not seen it."""
    message = f"The disruption budget {budget} is still being processed by the server."
    return _eviction_refused(message, retryAfterSeconds=retry_after)


def too_many_requests(*, retry_after: int = 1) -> Status:
    """429 with Retry-After: a cache of the API server starts anew."""
    return Status(429, "TooManyRequests", "storage is (re)initializing", {"retryAfterSeconds": retry_after})


def overloaded(*, retry_after: int = 1) -> PlainText:
    """429 as plain text: API priority and fairness has no room for the request."""
    return PlainText(429, "Too many requests, please try again later.", retry_after)


def several_budgets() -> Status:
    """500 without a reason: more than one PodDisruptionBudget selects the pod."""
    message = (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )
    return Status(500, "", message)


def internal_error(cause: str = "etcdserver: request timed out") -> Status:
    """500: etcd or a webhook failed."""
    return Status(500, "InternalError", f"Internal error occurred: {cause}", {"causes": [{"message": cause}]})


def database_full() -> Status:
    """500 without a reason: etcd has no space left for a write that adds something."""
    return Status(500, "", "etcdserver: mvcc: database space exceeded")


def watch_list_unsupported() -> Status:
    """500: the server's etcd is too old for WatchList; comes as an event after a 200."""
    feature = "the required storage feature RequestWatchProgress is disabled"
    return Status(500, "InternalError", f"a watch stream was requested by the client but {feature}")


def shutting_down() -> Status:
    """503: the API server is about to stop."""
    headers = {"Retry-After": "1", "X-Content-Type-Options": "nosniff"}
    return Status(503, "ServiceUnavailable", "apiserver is shutting down", headers=headers)


def timed_out(*, retry_after: int | None = None) -> Status:
    """504: the request took too long, and may have been done or not."""
    details = {} if retry_after is None else {"retryAfterSeconds": retry_after}
    return Status(504, "Timeout", "Timeout: request did not complete within the allotted timeout", details)


def version_too_large(*, asked: int, current: int) -> Status:
    """504: a read asks for a resourceVersion that this server's cache has not seen yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Status(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def _eviction_refused(cause: str, **details: int) -> Status:
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return Status(429, "TooManyRequests", message, {"causes": causes, **details})


def _naming(request: RequestInfo) -> dict[str, str]:
    members = {"name": request.name, "group": request.group, "kind": request.resource.partition("/")[0]}
    return {member: value for member, value in members.items() if value}


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
