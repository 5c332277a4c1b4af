from typing import Any

from federation.api import Cluster
from federation.failover.eviction_causes import EvictionCause, EvictionCauses
from reberth.values.timestamp import write_time
from tests.support.federation.objects import NOW, bare_cluster, claimed_binding, meta

TAINT = {"key": "gone", "effect": "NoExecute"}


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def tainted(*taints: dict[str, Any]) -> Cluster:
    return bare_cluster(spec={"taints": list(taints)})


def tolerating(**toleration: Any) -> dict[str, Any]:
    return {"clusterTolerations": [{"operator": "Exists", **toleration}]}


def test_an_untolerated_taint_evicts_from_the_time_it_was_added() -> None:
    causes = EvictionCauses(Clock())
    one = tainted({**TAINT, "timeAdded": write_time(NOW - 9)})
    message = "cluster(s) had untolerated taint {gone:NoExecute}"
    assert causes.find(claimed_binding(placement={}), one) == EvictionCause(
        NOW - 9, "TaintUntolerated", message
    )
    found = causes.find(claimed_binding(placement=tolerating(tolerationSeconds=20)), one)
    assert found is not None
    assert found.at == NOW + 11


def test_there_is_no_cause_for_tolerated_taints_or_dependencies() -> None:
    causes = EvictionCauses(Clock())
    assert causes.find(claimed_binding(placement={}), bare_cluster()) is None
    assert causes.find(claimed_binding(placement=tolerating()), tainted(TAINT)) is None
    assert causes.find(claimed_binding(), tainted(TAINT)) is None


def test_a_deleted_cluster_evicts_despite_tolerations() -> None:
    one = bare_cluster(metadata=meta("m1", deletionTimestamp="2026-11-18T12:00:00Z"))
    found = EvictionCauses(Clock()).find(claimed_binding(placement=tolerating()), one)
    assert found is not None
    assert (found.at, found.reason) == (0.0, "ClusterTerminating")


def test_a_taint_without_a_time_counts_from_when_it_was_first_seen() -> None:
    clock = Clock()
    causes = EvictionCauses(clock)
    patient = claimed_binding(placement=tolerating(tolerationSeconds=20))
    causes.on_change(tainted(TAINT))
    clock.now += 15
    causes.on_change(tainted(TAINT))
    for one in (tainted(TAINT), tainted({**TAINT, "timeAdded": "soon"})):
        found = causes.find(patient, one)
        assert found is not None
        assert found.at == NOW + 20


def test_a_removed_taint_counts_from_the_start_when_set_again() -> None:
    clock = Clock()
    causes = EvictionCauses(clock)
    causes.on_change(tainted(TAINT))
    causes.on_change(tainted())
    clock.now += 15
    found = causes.find(claimed_binding(placement={}), tainted(TAINT))
    assert found is not None
    assert found.at == NOW + 15
