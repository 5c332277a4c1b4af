"""One request to the API server: its wire form, and its name in errors and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

_METHODS = {"create": "POST", "evict": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`verb` and `subject` use the words of RBAC, except for evictions, which are counted separately."""

    verb: str
    subject: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content: str = JSON

    @property
    def method(self) -> str:
        return _METHODS.get(self.verb, "GET")

    @property
    def target(self) -> str:
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"
