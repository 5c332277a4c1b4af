import msgspec
import pytest

from reberth.cluster.pods.daemonset_pin import pin, unpin
from reberth.records import Affinity, ObjectMeta, OwnerReference
from tests.support.builders import Object
from tests.support.cluster.strategies import pinned_to

OF_DAEMON_SET = ObjectMeta(owner_references=(OwnerReference(kind="DaemonSet", controller=True),))


def affinity(*terms: Object) -> Affinity:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return msgspec.convert({"nodeAffinity": required}, Affinity)


def fields(*names: str, operator: str = "In") -> Object:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(names)}]}


def test_the_node_is_taken_out_and_put_back() -> None:
    given = msgspec.convert(pinned_to("n1"), Affinity)
    loose, node = unpin(given, OF_DAEMON_SET)
    assert node == "n1"
    assert loose != given
    assert pin(loose, node) == given


def test_two_pins_to_one_node_are_one() -> None:
    assert unpin(affinity(fields("n1"), fields("n1")), OF_DAEMON_SET)[1] == "n1"


@pytest.mark.parametrize(
    "odd",
    [
        Affinity(),
        affinity(),
        affinity({}),
        affinity(fields("n1"), fields("n2")),
        affinity(fields("n1"), {}),
        affinity(fields("n1", "n2")),
        affinity(fields()),
        affinity(fields("")),
        affinity(fields("n1", operator="NotIn")),
        affinity({"matchFields": [*fields("n1")["matchFields"], *fields("n2")["matchFields"]]}),
        msgspec.convert({"nodeAffinity": {}}, Affinity),
    ],
)
def test_only_an_affinity_to_a_single_node_is_unpinned(odd: Affinity) -> None:
    assert unpin(odd, OF_DAEMON_SET) == (odd, None)
    assert pin(odd, None) is odd


@pytest.mark.parametrize(
    "meta",
    [
        ObjectMeta(),
        ObjectMeta(owner_references=(OwnerReference(kind="DaemonSet"),)),
        ObjectMeta(owner_references=(OwnerReference(kind="ReplicaSet", controller=True),)),
    ],
)
def test_only_the_pods_of_a_daemon_set_are_loosened(meta: ObjectMeta) -> None:
    given = msgspec.convert(pinned_to("n1"), Affinity)
    assert unpin(given, meta) == (given, None)


def test_without_affinity_there_is_nothing_to_pin() -> None:
    assert unpin(None, OF_DAEMON_SET) == (None, None)
    assert pin(None, "n1") is None
