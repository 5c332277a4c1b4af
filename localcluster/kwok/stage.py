"""A stage of kwok: which objects it fits, how long it waits, and what it writes."""

from typing import Any

PREFIX = "localcluster.reberth.dev/"
LIFE = f'.metadata.annotations["{PREFIX}life"]'
DELETED = ".metadata.deletionTimestamp"
PHASE = ".status.phase"


def stage(
    name: str,
    kind: str,
    selector: list[Any],
    *,
    status: str | None = None,
    delay: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A stage of kwok; without a new status it deletes."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": selector},
            "next": {"statusTemplate": status} if status else {"delete": True},
        }
        | ({"delay": delay} if delay else {}),
    }


def among(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def not_among(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "NotIn", "values": list(values)}


def absent(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "DoesNotExist"}


def annotation(name: str) -> dict[str, str]:
    return {"expressionFrom": f'.metadata.annotations["{PREFIX}{name}"]'}


def present(key: str) -> dict[str, Any]:
    return {"key": key, "operator": "Exists"}


def faithful_pod(
    name: str, selector: list[Any], status: str | None, delay: int | dict[str, Any]
) -> dict[str, Any]:
    """A stage of a pod with a faithful life; a number is a delay in milliseconds."""
    after = {"durationMilliseconds": delay} if isinstance(delay, int) else delay
    return stage(f"faithful-{name}", "Pod", selector, status=status, delay=after)
