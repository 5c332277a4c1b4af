"""Since when workloads have no ready pod in any cluster."""

from typing import Any

import pytest

from federation.objects.resources import HeldWork
from federation.propagation.outages import Outages, has_ready_copy
from tests.support.federation.objects import WEB, claimed_binding, work


def copy(**status: Any) -> HeldWork:
    identifier = {"ordinal": 0, "version": "v1", "kind": "Deployment", "name": "web"}
    return work({"metadata": {"name": "w"}}, manifestStatuses=[{"identifier": identifier, "status": status}])


def kind(api_version: str, name: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": name, "namespace": "default", "name": "web"}


@pytest.mark.parametrize(
    ("spec", "works", "silent", "is_ready"),
    [
        pytest.param({}, {"m1": copy(readyReplicas=1)}, (), True, id="one is ready"),
        pytest.param({}, {"m1": copy(replicas=3), "m2": copy()}, (), False, id="none is ready"),
        pytest.param({}, {"m1": copy(readyReplicas=3)}, ("m1",), False, id="nobody knows"),
        pytest.param({}, {"m1": copy(readyReplicas=1), "m2": copy(readyReplicas=1)}, ("m1",), True, id="one"),
        pytest.param({}, {}, (), False, id="no copy at all"),
        pytest.param({"replicas": 0}, {"m1": copy()}, (), None, id="scaled to nothing"),
        pytest.param(
            {"resource": kind("apps/v1", "DaemonSet"), "replicas": 0},
            {"m1": copy(numberReady=2)},
            (),
            True,
            id="a DaemonSet",
        ),
        pytest.param({"resource": kind("v1", "ConfigMap")}, {"m1": copy()}, (), None, id="it has no pods"),
    ],
)
def test_a_workload_is_up_where_a_pod_is_ready_of_which_something_is_heard(
    spec: dict[str, Any], works: dict[str, HeldWork], silent: tuple[str, ...], *, is_ready: bool | None
) -> None:
    assert has_ready_copy(claimed_binding(**spec), works, silent) is is_ready


def test_an_outage_lasts_from_the_last_ready_pod_to_the_next_one() -> None:
    outages = Outages()
    assert outages.observe(WEB, is_ready=False, now=1) is None
    assert outages.count == 0, "it has never been up"
    assert outages.observe(WEB, is_ready=True, now=2) is None
    for now in (10, 20):
        assert outages.observe(WEB, is_ready=False, now=now) is None
    other = WEB._replace(name="other")
    outages.observe(other, is_ready=True, now=20)
    outages.observe(other, is_ready=False, now=21)
    assert (outages.count, outages.find_longest(30)) == (2, 20)
    assert outages.observe(WEB, is_ready=True, now=40) == 30
    assert (outages.count, outages.find_longest(40)) == (1, 19)
    assert outages.observe(other, is_ready=None, now=50) is None
    assert (outages.count, outages.find_longest(50)) == (0, 0)
    assert outages.observe(other, is_ready=False, now=60) is None
    assert outages.count == 0, "it is another one of that name"
