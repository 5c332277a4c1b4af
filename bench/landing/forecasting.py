"""The cost of forecasts in a cluster of some size, in seconds of CPU time and bytes.

    python -m bench.landing.forecasting NODES PODS

All forecasts are for the replacement of a bound pod.
"""

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median

from bench.landing import workloads
from bench.landing.workloads import PLAIN, RICH, SORTS, Crowd
from bench.reading.arms import Failed
from bench.reading.processes import resident
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import View, view_snapshot

_CACHES = 5
_OWNERS = 25
"""Of each kind, for each fresh cache."""
_OF_MANY = 100
_SCHEDULER = default_scheduler(workloads.VERSION)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    arguments = parser.parse_args()
    crowd = workloads.gather(arguments.nodes, arguments.pods)
    gc.collect()
    gc.freeze()  # as a daemon does after its start
    print(json.dumps({**measure(crowd), "resident": resident()}))  # noqa: T201 - its answer


def measure(crowd: Crowd) -> dict[str, float]:
    rounds = [_go_round(crowd) for _ in range(_CACHES)]
    return {
        "nodes": len(crowd.snapshot.nodes.names),
        "pods": len(crowd.snapshot.pods.rows),
        **{part: median(each[part] for each in rounds) for part in rounds[0]},
        "memory": _count_bytes(crowd),
    }


def _go_round(crowd: Crowd) -> dict[str, float]:
    """Forecast with two fresh caches: many pods at once, and one after another."""
    many, view = _many(crowd), _start_fresh(crowd)
    cost_of_many = _cost(lambda: _forecast_all(many, view))
    view = _start_fresh(crowd)
    first = _cost(lambda: _forecast_all([crowd.apps[PLAIN][0]], view))
    sorts = {"plain": PLAIN, "rich": RICH}
    return {
        "many": cost_of_many,
        "first": first,
        **{f"{name} new": _forecast_each(_pick(crowd, sort, 0), view) for name, sort in sorts.items()},
        **{f"{name} known": _forecast_each(_pick(crowd, sort, 1), view) for name, sort in sorts.items()},
    }


def _start_fresh(crowd: Crowd) -> View:
    return view_snapshot(SnapshotFacts(crowd.snapshot, workloads.VERSION))


def _many(crowd: Crowd) -> Sequence[int]:
    """Give all pods of a hundred owners, equally many of each kind."""
    return [place for pods in crowd.apps[:_OF_MANY] for place in pods]


def _pick(crowd: Crowd, sort: int, number: int) -> Sequence[int]:
    """Give the pod of this number of some owners, without the first owner: it was forecast before."""
    return [pods[number] for pods in crowd.apps[sort + SORTS :: SORTS]][:_OWNERS]


def _forecast_each(places: Iterable[int], view: View) -> float:
    return median(_cost(partial(_forecast_all, [place], view)) for place in places)


def _forecast_all(places: Iterable[int], view: View) -> None:
    for place in places:
        found = forecast_replacement(place, view, _SCHEDULER)
        if not isinstance(found, Forecast) or not found.scores:
            raise Failed(f"pod {place} of the generated cluster fits nowhere")


def _cost(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _count_bytes(crowd: Crowd) -> int:
    """Count the bytes that the cache holds after forecasts of many pods."""
    tracemalloc.start()
    view = _start_fresh(crowd)
    _forecast_all(_many(crowd), view)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


if __name__ == "__main__":
    main()
