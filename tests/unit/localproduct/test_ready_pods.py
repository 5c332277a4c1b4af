"""A count of ready pods that misses nothing between two looks."""

import msgspec
import pytest

from localcluster.errors import LocalClusterError
from localproduct.ready_pods import ReadyPods
from reberth.cluster.cache import DELETED
from reberth.records import Pod
from tests.support import builders

HEARD = "MODIFIED"


def pod(name: str, *, ready: bool = True, leaving: bool = False) -> Pod:
    made = builders.pod(name)
    made["metadata"]["uid"] = name
    made["status"] = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    if leaving:
        made["metadata"]["deletionTimestamp"] = "2026-11-18T12:00:00Z"
    return msgspec.convert(made, Pod)


def test_a_pod_counts_while_it_is_ready_and_stays() -> None:
    pods = ReadyPods("shop")
    pods.hear("a", HEARD, pod("shop-1", ready=False))
    assert pods.places == {}
    pods.hear("a", HEARD, pod("shop-1"))
    pods.hear("b", HEARD, pod("shop-2"))
    pods.hear("b", HEARD, pod("other-1"))
    assert pods.places == {"a": 1, "b": 1}
    pods.hear("a", HEARD, pod("shop-1", leaving=True))
    assert pods.places == {"b": 1}
    pods.hear("b", DELETED, pod("shop-2"))
    assert pods.places == {}


def test_the_fewest_ready_pods_are_recorded_between_two_checks() -> None:
    pods = ReadyPods("shop")
    for name in ("shop-1", "shop-2"):
        pods.hear("a", HEARD, pod(name))
    pods.fewest = 2
    pods.hear("a", HEARD, pod("shop-1", leaving=True))
    pods.hear("b", HEARD, pod("shop-3"))
    assert (pods.fewest, pods.places) == (1, {"a": 1, "b": 1})


@pytest.mark.looptime
async def test_a_timeout_reports_the_ready_pods() -> None:
    pods = ReadyPods("shop")
    pods.hear("a", HEARD, pod("shop-1"))
    await pods.become({"a": 1})
    said = "{'a': 2} pods of shop expected within 60 s, found {'a': 1}"
    with pytest.raises(LocalClusterError, match=said):
        await pods.become({"a": 2})
