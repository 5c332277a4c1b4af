"""Objects as large as the API server takes them, each with another field at its largest."""

from collections.abc import Callable, Mapping

from tests.support.builders import Object, container, meta, owner, pod

MIB = 2**20
MANY = 4_000
TENANT = "tenant"


def _labels(number: int, count: int = MANY) -> dict[str, str]:
    return {f"l{each}.example.com/x": f"{number}-{each}".ljust(63, "x") for each in range(count)}


def _terms(number: int, count: int = 400) -> list[Object]:
    values = [f"{number}-{each}".ljust(63, "v") for each in range(40)]
    return [
        {"matchExpressions": [{"key": f"k{each}", "operator": "In", "values": values}]}
        for each in range(count)
    ]


def _pod(number: int, **fields: object) -> Object:
    fields = {"namespace": TENANT, "owned_by": owner("ReplicaSet", f"rs-{number}"), "cpu": "1"} | fields
    built = pod(f"p-{number}", **fields)  # type: ignore[arg-type]  # any field
    built["metadata"] |= {"uid": f"pod-{number}", "resourceVersion": str(number + 1)}
    return built


def _owned_by_many(number: int) -> Object:
    built = _pod(number)
    others = [{**owner("X", f"{number}-{each}"), "controller": False} for each in range(MANY)]
    built["metadata"]["ownerReferences"] = [*others, *built["metadata"]["ownerReferences"]]
    return built


def _owned_by_a_long_name(number: int) -> Object:
    return _pod(number, owned_by=owner("K" * (MIB // 2), f"{number}" + "n" * (MIB // 2)))


LARGE_PODS: Mapping[str, Callable[[int], Object]] = {
    "annotation": lambda number: _pod(
        number, annotations={"reberth.dev/automation": f"{number}" + "x" * 2**18}
    ),
    "annotations": lambda number: _pod(number, annotations=_labels(number)),
    "labels": lambda number: _pod(number, labels=_labels(number)),
    "owners": _owned_by_many,
    "owner": _owned_by_a_long_name,
    "affinity": lambda number: _pod(
        number,
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _terms(number)}
            }
        },
    ),
    "tolerations": lambda number: _pod(
        number, tolerations=[{"key": f"{number}-{each}", "operator": "Exists"} for each in range(MANY)]
    ),
    "selector": lambda number: _pod(number, nodeSelector=_labels(number)),
    "containers": lambda number: _pod(
        number, containers=[container(f"c-{number}-{each}", cpu="1") for each in range(MANY)]
    ),
    "resources": lambda number: _pod(
        number,
        containers=[
            {"name": "c", "resources": {"requests": dict.fromkeys(_labels(number), "1") | {"cpu": "1"}}}
        ],
    ),
    "claims": lambda number: _pod(
        number,
        volumes=[
            {"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"{number}-{each}".ljust(253, "c")}}
            for each in range(MANY)
        ],
    ),
    "scheduler": lambda number: _pod(number, schedulerName=f"{number}" + "s" * MIB),
    "images": lambda number: _pod(
        number,
        containers=[container(f"c{each}", image=f"{number}-{each}".ljust(255, "i")) for each in range(2_000)],
    ),
}


def large_budget(number: int) -> Object:
    """A PodDisruptionBudget with an endless selector."""
    values = [f"{number}-{each}".ljust(63, "v") for each in range(10_000)]
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
    named = meta(f"pdb-{number}", TENANT, uid=f"pdb-{number}", resourceVersion=str(number + 1))
    return {"metadata": named, "spec": {"maxUnavailable": 1, "selector": selector}}
