"""The list of a rebalancer's workloads: its entries, their order, and what selectors match."""

from hypothesis import given
from hypothesis import strategies as st

from federation.api import ObservedWorkload, RebalancedWorkload, ResourceSelector
from federation.rebalancing.entries import Listing, merge_entries, order, select_workloads
from reberth.records import LabelSelector
from tests.support.federation.rebalancers import entry, workload

NAMES = st.lists(st.sampled_from(["web", "web-1", "web.a", "a/b", "Web"]), max_size=6)


def test_entries_are_sorted_by_all_their_parts_joined_with_slashes() -> None:
    """A name with a dash or a dot sorts differently if the parts are joined with spaces."""
    role = RebalancedWorkload("rbac.authorization.k8s.io/v1", "ClusterRole", "demo-role")
    spaced = [RebalancedWorkload("apps/v1", "Deployment", "a", space) for space in ("x", "x-1")]
    found = merge_entries([role, *spaced, workload("demo-deploy-2"), workload("demo-deploy-1")], ())
    assert [each.workload.name for each in found] == ["demo-deploy-1", "demo-deploy-2", "a", "a", "demo-role"]
    assert [each.workload.namespace for each in found][2:4] == ["x-1", "x"]
    assert order(found[-1]) == "rbac.authorization.k8s.io/v1/ClusterRole//demo-role"


@given(wanted=NAMES, known=NAMES, done=NAMES)
def test_every_wanted_workload_is_listed_once_and_succeeded_ones_stay(
    wanted: list[str], known: list[str], done: list[str]
) -> None:
    entries = [entry(name, result="Successful" if name in done else None) for name in dict.fromkeys(known)]
    found = merge_entries(map(workload, wanted), entries)
    names = [each.workload.name for each in found]
    assert len(names) == len(set(names))
    assert set(names) == set(wanted) | (set(known) & set(done))
    assert list(found) == sorted(found, key=order)
    assert all(each in entries or each == ObservedWorkload(each.workload) for each in found)


LISTED: Listing = (
    (workload("web"), {"tier": "front"}),
    (workload("shop"), {"tier": "back"}),
    (RebalancedWorkload("apps/v1", "Deployment", "web", "other"), {"tier": "front"}),
)


def chosen(**selector: object) -> list[tuple[str, str]]:
    one = ResourceSelector("apps/v1", "Deployment", **selector)  # type: ignore[arg-type] # as the test gives them
    return [(each.namespace, each.name) for each in select_workloads([one], lambda _: LISTED)]


def test_a_selector_requires_all_its_parts() -> None:
    assert len(chosen()) == 3
    assert chosen(namespace="other") == [("other", "web")]
    assert chosen(name="web") == [("default", "web"), ("other", "web")]
    front = LabelSelector(match_labels={"tier": "front"})
    assert chosen(label_selector=front, namespace="default") == [("default", "web")]
