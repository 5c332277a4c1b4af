from typing import Any

import pytest

from federation.objects.names import Key
from federation.propagation.replica_demand import read_replica_demand
from tests.support.federation.objects import as_template

POD: Any = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "replicas"),
    [
        ("apps/v1", "Deployment", {"replicas": 3, "template": {"spec": POD}}, 3),
        ("apps/v1", "StatefulSet", {"template": {"spec": POD}}, 1),
        ("batch/v1", "Job", {"parallelism": 4, "template": {"spec": POD}}, 4),
        ("batch/v1", "Job", {"parallelism": 4, "completions": 2, "template": {"spec": POD}}, 2),
        ("batch/v1", "Job", {"completions": 9, "template": {"spec": POD}}, 1),
        ("v1", "Pod", POD, 1),
    ],
)
def test_replicas_are_read_where_the_kind_has_them(
    api_version: str, kind: str, spec: Any, replicas: int
) -> None:
    wire = {"metadata": {"name": "a"}, "spec": spec}
    found = read_replica_demand(Key(api_version, kind, "default", "a"), as_template(wire))
    assert found.replicas == replicas
    assert found.requirements is not None
    assert found.requirements.resource_request == {"cpu": "100m"}


@pytest.mark.parametrize(
    ("api_version", "kind", "wire"),
    [
        ("apps/v1", "DaemonSet", {"spec": {"template": {"spec": POD}}}),
        ("apps.example.com/v1", "Deployment", {"spec": {"replicas": 3}}),
        ("apps/v1", "Deployment", {}),
        ("v1", "ConfigMap", {"data": {}}),
    ],
)
def test_a_kind_without_replicas_has_no_replica_demand(api_version: str, kind: str, wire: Any) -> None:
    template = as_template({"metadata": {"name": "a"}, **wire})
    assert read_replica_demand(Key(api_version, kind, "default", "a"), template) == (0, None)
