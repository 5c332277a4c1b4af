"""What the controllers of a control plane have seen."""

from localcluster.client import Client
from tests.support.builders import Object

_NAME = "seen"


async def controllers_see(
    client: Client, namespace: str, pods: int, labels: dict[str, str] | None = None
) -> None:
    """Wait until so many pods are in the cache that all controllers share; a budget over them tells it.

    A ReplicaSet that is created earlier misses some pods, makes others, and then deletes those too many.
    """
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    name = "-".join([_NAME, *(labels or {}).values()])
    spec = {"minAvailable": 0, "selector": {"matchLabels": labels or {}}}
    await client.create(path, {"metadata": {"name": name}, "spec": spec})
    await client.wait(f"{path}/{name}", lambda found: _count_expected(found) == pods)
    await client.delete(f"{path}/{name}")


def _count_expected(budget: Object) -> int | None:
    count: int | None = budget.get("status", {}).get("expectedPods")
    return count
