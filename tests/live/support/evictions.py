"""Workloads of a federation whose members are lost: where they are, what evicts them, what is told of it."""

from typing import Any

from tests.live.support.failing_members import Partitioned
from tests.live.support.hub_and_members import deployment, eventually, policy
from tests.live.support.hub_paths import BINDINGS, DEPLOYMENTS, EVENTS, POLICIES

NOT_READY = "cluster.karmada.io/not-ready"


def works(member: str) -> str:
    return f"/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{member}/works"


def targets(found: Any) -> list[str]:
    return [each["name"] for each in (found or {}).get("spec", {}).get("clusters", ())]


def tasks(found: Any) -> list[dict[str, Any]]:
    return list((found or {}).get("spec", {}).get("gracefulEvictionTasks", ()))


def effects(found: Any) -> set[str]:
    return {each["effect"] for each in found["spec"].get("taints", ()) if each["key"] == NOT_READY}


def is_gone(found: Any) -> bool:
    return found is None


def groups(*names: tuple[str, str]) -> dict[str, Any]:
    return {
        "clusterAffinities": [{"affinityName": name, "clusterNames": [cluster]} for name, cluster in names]
    }


async def apply(place: Partitioned, name: str, replicas: int = 2, **placement: Any) -> None:
    await place.hub.create(DEPLOYMENTS, deployment(name, replicas))
    await place.hub.create(POLICIES, policy(name, **placement))


async def told(place: Partitioned, reason: str, *words: str) -> None:
    await eventually(
        place.hub,
        EVENTS,
        lambda found: any(
            each["reason"] == reason and all(word in each["note"] for word in words)
            for each in found["items"]
        ),
    )


async def remove(place: Partitioned, *names: str) -> None:
    for name in names:
        await place.hub.delete(f"{POLICIES}/{name}")
        await place.hub.delete(f"{DEPLOYMENTS}/{name}")
    for name in names:
        await eventually(place.hub, f"{BINDINGS}/{name}-deployment", is_gone)
    await eventually(place.hub, "/apis/work.karmada.io/v1alpha1/works", lambda one: not one["items"])


def unhealthy_since(one: Any) -> Any:
    told = (one or {}).get("status", {}).get("aggregatedStatus", ())
    return next((each["unhealthySince"] for each in told if "unhealthySince" in each), None)
