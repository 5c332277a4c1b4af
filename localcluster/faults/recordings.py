"""Recordings of the proxy: the lines of a watch, and the responses to lists and gets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from localcluster.faults import status_bodies
from localcluster.faults.request_info import RequestInfo
from localcluster.faults.status_bodies import Reply

_SELECTORS = ("labelSelector", "fieldSelector")


@dataclass(eq=False)
class Tape:
    """The lines of recorded watches, each with its line feed, to be replayed."""

    lines: list[bytes] = field(default_factory=list)


class Memory:
    """The newest answer to each list and get that came by: what a cache that lags behind still answers."""

    def __init__(self) -> None:
        self._replies: dict[tuple[str, ...], tuple[int, Reply]] = {}

    def __len__(self) -> int:
        return len(self._replies)

    def remember(self, request: RequestInfo, reply: Reply) -> bool:
        """Keep an answer if it is one that a cache could give: a whole object or list, not a page of it."""
        if request.verb not in ("get", "list") or reply.code != 200:
            return False
        metadata = _metadata(reply.body)
        version = metadata.get("resourceVersion", "")
        if not version.isdecimal() or "continue" in metadata or "continue" in request.query:
            return False
        self._replies[_key(request)] = int(version), reply
        return True

    def recall(self, request: RequestInfo) -> Reply | None:
        """Answer as the API server's cache would have; None for requests that go to etcd or are unknown."""
        if not _may_be_cached(request) or (kept := self._replies.get(_key(request))) is None:
            return None
        version, reply = kept
        least = int(request.query["resourceVersion"])
        if least > version:
            return status_bodies.version_too_large(asked=least, current=version).reply(request)
        return reply


def _key(request: RequestInfo) -> tuple[str, ...]:
    return request.verb, request.path, *(request.query.get(selector, "") for selector in _SELECTORS)


def _may_be_cached(request: RequestInfo) -> bool:
    """Not without a resourceVersion, which asks for the newest, not exactly, and by pages from "0" only."""
    version = request.query.get("resourceVersion", "")
    if request.verb not in ("get", "list") or not version.isdecimal() or "continue" in request.query:
        return False
    match = request.query.get("resourceVersionMatch", "")
    paged = "limit" in request.query and version != "0"
    return match == "NotOlderThan" or not (match or paged)


def _metadata(body: bytes) -> Mapping[str, str]:
    try:
        metadata = json.loads(body)["metadata"]
    except (ValueError, LookupError, TypeError):
        return {}
    return metadata if isinstance(metadata, dict) else {}
