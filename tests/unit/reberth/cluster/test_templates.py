from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.interning import split_pod
from reberth.cluster.pods.requests import Version
from reberth.cluster.templates import PriorityError, Template, Templates, pack
from tests.support.builders import Object, owner, pod
from tests.support.cluster.strategies import pod_record, pods


def share(templates: Templates, built: Object) -> Template:
    return templates.share(split_pod(pod_record(built))[0])


@given(st.lists(pods(), min_size=2, max_size=6))
def test_equal_pods_share_one_template_and_different_pods_do_not(built: list[Object]) -> None:
    templates = Templates(version=(1, 36))
    commons = [split_pod(pod_record(each))[0] for each in built]
    shared = [templates.share(common) for common in commons]
    for common, template in zip(commons, shared, strict=True):
        assert template.pod == common
        assert [other is template for other in shared] == [other == common for other in commons]


def test_neither_the_order_of_labels_nor_that_of_arrival_matters() -> None:
    templates = Templates(version=(1, 36))
    web = owner("ReplicaSet", "web")
    one = share(templates, pod("web-1", owned_by=web, labels={"app": "web", "tier": "front"}))
    between = share(templates, pod("web-2", owned_by=web, labels={"app": "web"}))
    turned = share(templates, pod("web-3", owned_by=web, labels={"tier": "front", "app": "web"}))
    assert one is turned
    assert one is not between


def test_a_template_has_requests_load_and_controller_of_its_pod() -> None:
    built = pod(
        "web-1",
        namespace="shop",
        owned_by=owner("ReplicaSet", "web"),
        labels={"app": "web"},
        containers=[
            {
                "name": "a",
                "resources": {"requests": {"cpu": "250m", "memory": "1Gi", "example.com/gpu": "2"}},
            },
            {"name": "b"},
        ],
        priority=7,
    )
    template = share(Templates(version=(1, 36)), built)
    assert (template.namespace, template.labels, template.priority) == ("shop", {"app": "web"}, 7)
    assert template.controller == find_controller(pod_record(built).metadata)
    assert template.main == pack(250, 2**30, 0, 1)
    assert template.extended == {"example.com/gpu": 2}
    assert template.load == pack(350, 2**30 + 200 * 2**20)
    assert template.spec is template.pod.spec


def test_a_bare_pod_has_a_template_without_controller() -> None:
    template = share(Templates(version=(1, 36)), pod("one"))
    assert (template.controller, template.labels, template.priority) == (None, {}, 0)


RESIZED: Mapping[Version, int] = {(1, 36): 5000, (1, 37): 4000}


@pytest.mark.parametrize(("version", "cpu"), RESIZED.items())
def test_the_version_of_kubernetes_decides_how_a_resize_counts(version: Version, cpu: int) -> None:
    containers = [
        {"name": name, "resources": {"requests": {"cpu": asked}}} for name, asked in (("a", "1"), ("b", "2"))
    ]
    actual = [
        {"name": name, "resources": {"requests": {"cpu": asked}}} for name, asked in (("a", "3"), ("b", "1"))
    ]
    built = pod("one", containers=containers, status={"containerStatuses": actual})
    assert share(Templates(version=version), built).main == pack(cpu, 0, 0, 1)


@pytest.mark.parametrize("priority", [2**31, -(2**31) - 1, 2**70])
def test_a_priority_beyond_its_range_is_refused(priority: int) -> None:
    with pytest.raises(PriorityError, match="does not fit into 32 bits"):
        share(Templates(version=(1, 36)), pod("one", priority=priority))


def test_a_template_is_dropped_with_its_last_reference() -> None:
    templates = Templates(version=(1, 36))
    kept = share(templates, pod("one"))
    assert len(templates) == 1
    del kept
    assert len(templates) == 0
