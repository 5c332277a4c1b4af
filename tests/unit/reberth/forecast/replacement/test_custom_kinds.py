"""The next pod of a controller of another project with a template in its spec, and of a Job."""

import pytest

from reberth.forecast.replacement.refusals import CANNOT_FORECAST
from tests.support.builders import Object, container
from tests.support.forecast.replicas import LABELS, made_of, refused_of, replica, replica_owner, requests_in

KIND = "CloneSet"
REVISED = {**LABELS, "controller-revision-hash": "web-1"}
MARKED = {**REVISED, "apps.kruise.io/cloneset-instance-id": "x2b4z"}


def clone_set(**given: object) -> Object:
    return replica_owner(KIND, **given)


def clone(name: str = "web-1", **given: object) -> Object:
    return replica(name, kind=KIND, **{"labels": MARKED, **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("others", [(), (clone("web-2", cpu="1", generation=2),)])
def test_after_an_in_place_resize_the_template_tells_what_comes(others: tuple[Object, ...]) -> None:
    found = made_of(clone_set(cpu="2"), clone(cpu="1", generation=2), *others)
    assert requests_in(found) == {"cpu": "2"}


def test_some_resized_pods_leave_the_template_true() -> None:
    found = made_of(clone_set(cpu="2"), clone(cpu="1", generation=2), clone("web-2", cpu="2", generation=2))
    assert requests_in(found) == {"cpu": "2"}


def test_what_the_controller_adds_is_learnt_and_hides_nothing() -> None:
    found = made_of(clone_set(cpu="2"), clone(cpu="2"), clone("web-2", cpu="1", generation=2), pod="web-2")
    assert requests_in(found) == {"cpu": "2"}
    assert found.template.labels == MARKED
    assert found.learnt == ("label apps.kruise.io/cloneset-instance-id=x2b4z",)


def test_a_sidecar_is_learnt_from_pods_that_were_updated_in_place() -> None:
    proxied = [container(cpu="2"), container("proxy", cpu="10m")]
    found = made_of(clone_set(cpu="2"), clone(containers=proxied, generation=2))
    assert (requests_in(found), requests_in(found, "proxy")) == ({"cpu": "2"}, {"cpu": "10m"})


def test_where_the_newest_pod_asks_for_something_else_nothing_is_known() -> None:
    refused = refused_of(clone_set(cpu="2"), clone(cpu="1"))
    assert refused.rule == CANNOT_FORECAST
    assert "cpu 1 of container main" in refused.reason


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"spec": {"domain": {"cpu": 2}}}},
        {"template": "a text"},
        {"template": {"spec": {"containers": "many"}}},
        {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
    ],
)
def test_what_is_no_template_of_pods_or_makes_claims_is_not_read(spec: Object) -> None:
    found = made_of(clone_set(cpu="2", owner_spec=spec), clone(cpu="1"))
    assert requests_in(found) == {"cpu": "1"}


def test_a_job_in_a_file_tells_what_its_next_pod_asks_for() -> None:
    found = made_of(replica_owner("Job", cpu="2"), replica(kind="Job", cpu="1", generation=2))
    assert requests_in(found) == {"cpu": "2"}
