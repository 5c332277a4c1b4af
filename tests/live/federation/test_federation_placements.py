"""Placements that a real API server rejects, in policies and bindings, and its messages."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from localcluster.client import Client
from localcluster.cluster import Cluster
from tests.live.support.webhook_hub import LABEL_KEY, guarded, keep, refusal, tidy
from tests.support.builders import Object
from tests.support.federation.crds import example

pytestmark = [pytest.mark.live, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hub(bare: Cluster) -> AsyncIterator[Client]:
    async with guarded(bare) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def client(hub: Client) -> AsyncIterator[Client]:
    yield hub
    await tidy(hub)


GROUP = {"clusterNames": ["m1"]}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
OVERFLOWS = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"


def named(*names: str) -> Object:
    """Groups of these names."""
    return {"clusterAffinities": [{"affinityName": name} | GROUP for name in names]}


def overflowing(*names: str, scheduling: Object | None = None, **term: Any) -> Object:
    """A group that overflows into groups of these names."""
    own = {"affinityName": "own", "overflowAffinities": [{"affinityName": name} | GROUP for name in names]}
    placement: Object = {"clusterAffinities": [own | (term or GROUP)]}
    return placement if scheduling is None else placement | {"replicaScheduling": scheduling}


def spread(*constraints: Object) -> Object:
    return {"spreadConstraints": list(constraints)}


def by(field: str, least: int = 1, most: int = 0) -> Object:
    return {"spreadByField": field, "minGroups": least, "maxGroups": most}


def fields(key: str, operator: str) -> Object:
    return {"fieldSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": ["a"]}]}}


Row = tuple[Object, str, str]
A_16: list[Row] = [
    (
        {"clusterAffinity": GROUP} | named("a"),
        "spec.placement",
        "clusterAffinities cannot co-exist with clusterAffinity",
    ),
    (
        {"clusterAffinity": {}, "clusterAffinities": []},
        "spec.placement",
        "clusterAffinities cannot co-exist with clusterAffinity",
    ),
    (
        named("a", "b", "a"),
        "spec.placement.clusterAffinities",
        "each affinity term in a policy must have a unique name",
    ),
    (named("a", "-x"), "spec.placement.clusterAffinities[1].affinityName", LABEL_KEY),
    (named("x@y"), "spec.placement.clusterAffinities[0].affinityName", LABEL_KEY),
    (named(""), "spec.placement.clusterAffinities[0].affinityName", "should be at least 1 chars long"),
    (named("x" * 33), "spec.placement.clusterAffinities[0].affinityName", "may not be more than 32 bytes"),
]
A_22: list[Row] = [
    (overflowing("b"), "spec.placement.clusterAffinities", OVERFLOWS),
    (
        overflowing("b", scheduling={"replicaSchedulingType": "Duplicated"}),
        "spec.placement.clusterAffinities",
        OVERFLOWS,
    ),
    (
        overflowing(
            "b",
            scheduling={
                "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": [{"targetCluster": GROUP, "weight": 1}]},
            },
        ),
        "spec.placement.clusterAffinities",
        OVERFLOWS,
    ),
]
S_57: list[Row] = [
    (
        spread({"spreadByField": "cluster", "spreadByLabel": "rack"}),
        "spec.placement.spreadConstraints[0]",
        "spreadByLabel should not co-exist with spreadByField",
    ),
    (
        spread(by("cluster", -2)),
        "spec.placement.spreadConstraints[0]",
        "minGroups lower than 0 is not allowed",
    ),
    (
        spread(by("cluster", 1, -1)),
        "spec.placement.spreadConstraints[0]",
        "maxGroups lower than 0 is not allowed",
    ),
    (
        spread(by("cluster", 2, 1)),
        "spec.placement.spreadConstraints[0]",
        "maxGroups lower than minGroups is not allowed",
    ),
    *[
        (
            spread(by("cluster"), by(field), by(field)),
            "spec.placement.spreadConstraints",
            f"multiple {field} spread constraints are not allowed",
        )
        for field in ("cluster", "region", "zone", "provider")
    ],
    *[
        (
            spread(by(field)),
            "spec.placement.spreadConstraints",
            "the cluster spread constraint must be enabled in one of the constraints",
        )
        for field in ("region", "zone", "provider")
    ],
]
OTHERS: list[Row] = [
    (
        {"clusterAffinity": fields("foo", "In")},
        "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0]",
        'unsupported key "foo", must be provider, region, or zone',
    ),
    (
        {"clusterAffinity": fields("provider", "Exists")},
        "spec.placement.clusterAffinity.fieldSelector.matchExpressions[0]",
        'unsupported operator "Exists", must be In or NotIn',
    ),
    (
        {"clusterAffinities": [{"affinityName": "a"} | fields("foo", "In")]},
        "spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0]",
        'unsupported key "foo", must be provider, region, or zone',
    ),
    (
        {"clusterAffinities": [{"affinityName": "a"} | fields("zone", "Gt")]},
        "spec.placement.clusterAffinities[0].fieldSelector.matchExpressions[0]",
        'unsupported operator "Gt", must be In or NotIn',
    ),
    (
        overflowing("b", scheduling=AGGREGATED, clusterNames=[]),
        "spec.placement.clusterAffinities[0].overflowAffinities",
        "overflowAffinities can only be used together with the inline ClusterAffinity",
    ),
    (
        overflowing("b", "b", scheduling=AGGREGATED),
        "spec.placement.clusterAffinities[0].overflowAffinities",
        "overflow affinity name must be unique and must not duplicate the primary group's affinityName",
    ),
    (
        overflowing("own", scheduling=AGGREGATED),
        "spec.placement.clusterAffinities[0].overflowAffinities",
        "overflow affinity name must be unique and must not duplicate the primary group's affinityName",
    ),
    (
        overflowing("b@", scheduling=AGGREGATED),
        "spec.placement.clusterAffinities[0].overflowAffinities[0].affinityName",
        LABEL_KEY,
    ),
    (
        {
            "workloadAffinity": {
                "affinity": {"groupByLabelKey": "a"},
                "antiAffinity": {"groupByLabelKey": "a"},
            }
        },
        "spec.placement.workloadAffinity",
        "affinity and antiAffinity must not use the same groupByLabelKey",
    ),
    (
        {"workloadAffinity": {"affinity": {"groupByLabelKey": "INVALID KEY!"}}},
        "spec.placement.workloadAffinity.affinity.groupByLabelKey",
        LABEL_KEY,
    ),
    (spread(by("rack")), "spec.placement.spreadConstraints[0].spreadByField", "Unsupported value"),
    (
        {"replicaScheduling": {"replicaSchedulingType": "Halved"}},
        "spec.placement.replicaScheduling.replicaSchedulingType",
        "Unsupported value",
    ),
    (
        {
            "replicaScheduling": {
                "weightPreference": {"staticWeightList": [{"targetCluster": GROUP, "weight": 0}]}
            }
        },
        "spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight",
        "should be greater than or equal to 1",
    ),
]


def numbered(number: str, rows: Iterable[Row]) -> list[Any]:
    """Call cases by their number and by what is said of them."""
    return [pytest.param(*row, id=f"{number}: {row[-1]}") for row in rows]


PLACEMENTS = [*numbered("A-16", A_16), *numbered("A-22", A_22), *numbered("S-57", S_57), *OTHERS]

ALLOWED: list[Object] = [
    {},
    {"clusterAffinity": {}},
    {"clusterAffinities": []},
    named("a", "b", "example.com/c"),
    overflowing("b", "c", scheduling=AGGREGATED),
    overflowing("b", scheduling={"weightPreference": {"dynamicWeight": "AvailableReplicas"}}),
    overflowing("b", scheduling=AGGREGATED, exclude=["m9"]),
    {"clusterAffinities": [{"affinityName": "a", "overflowAffinities": []}]},
    {"workloadAffinity": {"affinity": {"groupByLabelKey": "a"}, "antiAffinity": {"groupByLabelKey": "b"}}},
    {"clusterAffinity": fields("zone", "NotIn")},
    spread(by("cluster"), by("region", 2, 2), by("zone"), by("provider")),
    spread({"spreadByLabel": "rack"}, {"spreadByLabel": "row"}),
    spread({}),
    spread(by("cluster", 0)),
    spread(by("cluster", 5, 0)),
]


def with_placement(kind: str, placement: Object) -> Object:
    """An object of the kind that is placed so."""
    one = example(kind)
    one["spec"]["placement"] = placement
    return one


PLACED = ["PropagationPolicy", "ClusterPropagationPolicy", "ResourceBinding", "ClusterResourceBinding"]


@pytest.mark.parametrize("kind", PLACED)
@pytest.mark.parametrize(("placement", "field", "said"), PLACEMENTS)
async def test_a_wrong_placement_is_refused_by_its_field(
    client: Client, kind: str, placement: Object, field: str, said: str
) -> None:
    refused = await refusal(client, with_placement(kind, placement))
    assert refused.status == 422
    assert f"{field}: " in str(refused)
    assert said in str(refused)


@pytest.mark.parametrize("placement", ALLOWED)
@pytest.mark.parametrize("kind", PLACED)
async def test_a_valid_placement_is_accepted(client: Client, kind: str, placement: Object) -> None:
    assert await keep(client, with_placement(kind, placement))
