"""Paths of the API: what a foreign name may do to them."""

import pytest
from yarl import URL

from reberth.values.api_path import join_path
from reberth.values.errors import ImpossibleName, NotFound

_NAMES = [
    "..",
    ".",
    "",
    "a/b",
    "../namespaces/kube-system/secrets/x",
    "/etc",
    "a%2fb",
    "%2e%2e",
    "a\nb",
    "a\x00b",
    "\ud800",
    "x" * 100_000 + "/",
]


@pytest.mark.parametrize("name", _NAMES, ids=repr)
def test_a_name_that_no_object_can_have_is_not_asked_for(name: str) -> None:
    with pytest.raises(ImpossibleName) as refused:
        join_path("/api/v1", "nodes", name)
    assert isinstance(refused.value, NotFound)
    assert len(str(refused.value)) < 512


@pytest.mark.parametrize("name", ["a?watch=1", "#", "a;b", "a b", "ä", "a&b", "a\\..\\b", "~", "a+b"])
def test_a_name_stays_one_part_of_the_path(name: str) -> None:
    url = URL("https://api" + join_path("/api/v1", "nodes", name))  # as the transport reads it
    assert (url.parts, url.query_string, url.fragment) == (("/", "api", "v1", "nodes", name), "", "")
    assert URL(str(url)) == url


def test_names_as_objects_have_them_are_left_alone() -> None:
    assert join_path("/api/v1", "nodes", "ip-10-0-0-1.eu.internal") == "/api/v1/nodes/ip-10-0-0-1.eu.internal"
    assert join_path("/api/v1", "clusterroles", "system:node") == "/api/v1/clusterroles/system:node"
