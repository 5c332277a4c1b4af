"""Whatever stands in a field, there is an answer or an error that names the object."""

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import yaml

from federation.objects.hub_file import HubFile
from federation.scheduling import Fleet, decide
from reberth.values.object_error import ObjectError
from tests.support.federation.objects import NOW

OBJECTS = list(
    yaml.safe_load_all("""
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1, labels: {a: b}}
spec:
  provider: p
  region: r
  zones: [z]
  taints: [{key: k, value: v, effect: NoSchedule}]
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment, name: deployments}]}]
  resourceSummary: {allocatable: {pods: 9, cpu: 10}, allocated: {cpu: 250m}}
---
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: web, generation: 2, annotations: {policy.karmada.io/applied-placement: "{}"}}
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, name: web, uid: u}
  replicas: 2
  rescheduleTriggeredAt: "2026-11-18T12:00:02Z"
  replicaRequirements: {resourceRequest: {cpu: 100m}}
  clusters: [{name: m1, replicas: 1}]
  gracefulEvictionTasks: [{fromCluster: m2}]
  placement:
    clusterTolerations: [{key: k, operator: Exists}]
    clusterAffinities:
    - affinityName: a
      clusterNames: [m1]
      exclude: [m3]
      labelSelector: {matchLabels: {a: b}}
      fieldSelector: {matchExpressions: [{key: zone, operator: In, values: [z]}]}
    spreadConstraints:
    - {spreadByField: region, minGroups: 1, maxGroups: 2}
    - {spreadByField: cluster, minGroups: 1, maxGroups: 2}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m1]}, weight: 1}]}
status: {schedulerObservingAffinityName: a, lastScheduledTime: "2026-11-18T12:00:01Z"}
""")
)
ODD = [None, "", "x", 0, -1, 3, 2**31, 2**70, 1.5, True, [], {}, [None], ["x"], {"x": "y"}, {"x": None}]


def paths(part: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = part if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    for key in keys:
        yield (*above, key)
        yield from paths(part[key], (*above, key))


def changed(path: tuple[Any, ...], value: object) -> list[Any]:
    objects: list[Any] = copy.deepcopy(OBJECTS)
    part: Any = objects
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return objects


def answer(objects: list[Any]) -> list[str]:
    hub = HubFile([msgspec.json.encode(objects)])
    try:
        fleet = Fleet(hub.clusters)
        decisions = [decide(each, fleet, now=NOW) for each in hub.bindings.values()]
        return [*map(str, hub.faults), *(decision.message for decision in decisions)]
    except ObjectError as error:
        return [str(error)]


@pytest.mark.parametrize("value", ODD)
def test_there_is_an_answer_or_an_error_that_names_the_object(value: object) -> None:
    for path in paths(OBJECTS):
        assert all(answer(changed(path, value))), path
