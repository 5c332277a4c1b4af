"""The Kubernetes verb, resource and object of a request, read from its method and path."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True)
class RequestInfo:
    """One request; outside of /api and /apis its verb is the method in lower case, and it has no resource."""

    client: str
    method: str
    path: str
    query: Mapping[str, str]
    verb: str
    group: str = ""
    resource: str = ""
    """With its sub-resource: `pods`, `pods/eviction`."""
    namespace: str = ""
    name: str = ""

    @property
    def object(self) -> str:
        """How an API server's messages call it: `pods "web-1"`, `deployments.apps "web"`."""
        plural = self.resource.partition("/")[0]
        kind = f"{plural}.{self.group}" if self.group else plural
        return f'{kind} "{self.name}"' if self.name else kind


def read_request_info(client: str, method: str, *, target: str) -> RequestInfo:
    """Read a request as kube-apiserver does; `target` is the path with its query, as sent."""
    url = urlsplit(target)
    path = unquote(url.path)
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    match path.strip("/").split("/"):
        case ["api", _, *parts] if parts:
            group = ""
        case ["apis", group, _, *parts] if parts:
            pass
        case _:
            return RequestInfo(client, method, path, query, method.lower())
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    return RequestInfo(
        client,
        method,
        path,
        query,
        _verb(method, query, named=bool(name)),
        group,
        "/".join([parts[0], *parts[2:3]]),
        namespace,
        name,
    )


def _verb(method: str, query: Mapping[str, str], *, named: bool) -> str:
    if method == "DELETE":
        return "delete" if named else "deletecollection"
    if method in _VERBS:
        return _VERBS[method]
    if named:
        return "get"
    return "list" if query.get("watch", "false").lower() in ("false", "0") else "watch"
