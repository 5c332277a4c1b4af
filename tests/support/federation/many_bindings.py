"""Many clusters and bindings, drawn at random, to be decided: no two bindings alike, of few placements."""

import random
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

from federation.api import Cluster, ResourceBinding
from tests.support.federation.clusters import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    binding,
    cluster,
    groups,
    spread,
    weighted,
)

REQUESTS = [{"cpu": f"{number}00m", "memory": "1Gi"} for number in range(1, 6)]


def draw_clusters(chance: random.Random, names: Sequence[str]) -> list[Cluster]:
    summary = {"allocated": {"cpu": "100", "memory": "200Gi", "pods": 900}}
    return [
        cluster(
            name,
            region=f"region{chance.randrange(8)}",
            provider="any",
            labels={"tier": str(chance.randrange(3))},
            status={
                "resourceSummary": {
                    **summary,
                    "allocatable": {"cpu": chance.randint(200, 900), "memory": "4Ti", "pods": 11_000},
                }
            },
        )
        for name in names
    ]


def list_placements(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        DYNAMIC,
        AGGREGATED,
        DUPLICATED,
        weighted(),
        {**DYNAMIC, **spread(cluster=(2, 5))},
        {**DUPLICATED, **spread(region=(2, 3), cluster=(3, 6))},
        {**DYNAMIC, **groups(near=names[:10], far=names[10:])},
    ]


def draw_bindings(chance: random.Random, count: int, names: Sequence[str]) -> list[ResourceBinding]:
    """Half of them are placed already."""
    return [
        binding(
            chance.randint(1, 200),
            placement,
            at={name: chance.randint(1, 20) for name in chance.sample(names, chance.randint(0, 6))},
            uid=f"uid-{number}",
            replicaRequirements={"resourceRequest": chance.choice(REQUESTS)},
        )
        for number, placement in enumerate(islice(cycle(list_placements(names)), count))
    ]
