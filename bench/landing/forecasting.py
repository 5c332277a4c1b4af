"""What forecasts cost in a cluster of some size, in seconds of CPU and bytes.

    python -m bench.landing.forecasting NODES PODS

Everything is asked about the next incarnation of pods that stand somewhere.
"""

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median

from bench.landing import crowding
from bench.landing.crowding import PLAIN, RICH, SORTS, Crowd
from bench.reading.arms import Failed
from bench.reading.processes import resident
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import View, view_snapshot

_GROUNDS = 5
_OWNERS = 25
"""Of a sort, on each ground."""
_OF_MANY = 100
_SCHEDULER = default_scheduler(crowding.VERSION)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    arguments = parser.parse_args()
    crowd = crowding.gather(arguments.nodes, arguments.pods)
    gc.collect()
    gc.freeze()  # as a daemon does after its start
    print(json.dumps({**measure(crowd), "resident": resident()}))  # noqa: T201 - its answer


def measure(crowd: Crowd) -> dict[str, float]:
    rounds = [_go_round(crowd) for _ in range(_GROUNDS)]
    return {
        "nodes": len(crowd.snapshot.nodes.names),
        "pods": len(crowd.snapshot.pods.rows),
        **{part: median(each[part] for each in rounds) for part in rounds[0]},
        "memory": _count_bytes(crowd),
    }


def _go_round(crowd: Crowd) -> dict[str, float]:
    """Ask on two fresh grounds: about many pods at once, and about one after another."""
    many, seen = _many(crowd), _begin(crowd)
    cost_of_many = _cost(lambda: _ask(many, seen))
    seen = _begin(crowd)
    first = _cost(lambda: _ask([crowd.apps[PLAIN][0]], seen))
    sorts = {"plain": PLAIN, "rich": RICH}
    return {
        "many": cost_of_many,
        "first": first,
        **{f"{name} new": _ask_one_by_one(_pick(crowd, sort, 0), seen) for name, sort in sorts.items()},
        **{f"{name} known": _ask_one_by_one(_pick(crowd, sort, 1), seen) for name, sort in sorts.items()},
    }


def _begin(crowd: Crowd) -> View:
    return view_snapshot(SnapshotFacts(crowd.snapshot, crowding.VERSION))


def _many(crowd: Crowd) -> Sequence[int]:
    """Give all pods of a hundred owners, of each sort as many as of any other."""
    return [place for pods in crowd.apps[:_OF_MANY] for place in pods]


def _pick(crowd: Crowd, sort: int, number: int) -> Sequence[int]:
    """Give a pod of this number of some owners, but not of the first, which has been asked about."""
    return [pods[number] for pods in crowd.apps[sort + SORTS :: SORTS]][:_OWNERS]


def _ask_one_by_one(places: Iterable[int], seen: View) -> float:
    return median(_cost(partial(_ask, [place], seen)) for place in places)


def _ask(places: Iterable[int], seen: View) -> None:
    for place in places:
        found = forecast_replacement(place, seen, _SCHEDULER)
        if not isinstance(found, Forecast) or not found.scores:
            raise Failed(f"pod {place} of the generated cluster fits nowhere")


def _cost(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _count_bytes(crowd: Crowd) -> int:
    """Count what a ground keeps after many pods were asked about."""
    tracemalloc.start()
    seen = _begin(crowd)
    _ask(_many(crowd), seen)
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept


if __name__ == "__main__":
    main()
