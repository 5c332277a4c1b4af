"""python -m bench.quality: how evenly nodes are used after some moves, ours and others'.

Fleets of five shapes are generated, and every arm moves pods in them under the same protections, limits and
forecast. Nothing is timed, so the same seeds give the same figures anywhere.
"""

import argparse
import sys

from bench import calling
from bench.quality import reporting
from bench.quality.measuring import Grid, Measured, race
from bench.quality.shapes import SHAPES
from reberth.values.object_error import ObjectError

_GRID = Grid()


async def measure(options: argparse.Namespace) -> str:
    shares = [each / 100 for each in options.hundredths]
    measured: list[Measured] = []
    for shape in SHAPES:
        for seed in range(1, options.seeds + 1):
            found = race(shape, nodes=options.nodes, seed=seed, shares=shares, grid=_GRID)
            measured += found
            print(reporting.describe_fleets(found), file=sys.stderr, flush=True)
    return f"""## Balance for moves

How much more evenly nodes are used for each pod that is moved: the standard deviation over {options.nodes}
nodes of the larger share, of cpu or of memory, that is requested, in hundredths of a node. Each fleet is
generated from a seed, {options.seeds} of each shape:

{reporting.describe_shapes()}

All arms begin with the same snapshot and stand under Reberth's default protections and limits, but for the
rates, which are lifted, and the moves in a cycle: {", ".join(map(str, options.hundredths))} % of the pods.
Reberth's forecast says which nodes are feasible and where a pod lands. kube-scheduler looks at all nodes
(`percentageOfNodesToScore: 100`), so that no arm has to be lucky.

* **Reberth**: its policy for under-utilised nodes, each pod on the first destination of its move. Moves are
  taken to cost nothing, since no other arm counts a cost.
* **descheduler**: LowNodeUtilization as documented, with `nodeFit`, cycle after cycle. Who is evicted lands
  where kube-scheduler scores most.
* **best single move**: of all pods and nodes the pair that evens out most, again and again, where the
  forecast sees the node gain more than the 20 points that count as the same.
* **the same, blind to points**: it goes anywhere feasible.

The baseline is the search that sees points. That a move must gain more than 20 of kube-scheduler's points is
one of the limits under which all arms stand: without it the next pod, if nobody draws it, lands elsewhere or
comes back, and verification calls the move the same or worse. The search that is blind to points keeps to all
other limits, and shows what this one costs; nothing is aimed at against it.

Both that have thresholds get the best of a grid, fleet by fleet: {_describe_grid()}.
"Per 1 %" is by how much the deviation fell for each hundredth of the pods that was moved. Who moves more gets
less for each: so the quotients are taken after as many moves as both have made.

{reporting.describe_fleets(measured)}

### What was aimed at

{reporting.describe_goals(measured)}
"""


def _describe_grid() -> str:
    low, high = (", ".join(map(str, each)) for each in (_GRID.low, _GRID.high))
    return (
        f"{low} hundredths below the mean and {high} above it, for the descheduler "
        "each with 1, 5 or all pods off a node in a cycle"
    )


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    calling.add_numbers(
        parser, (("--nodes", 200, "nodes of a fleet"), ("--seeds", 2, "fleets of each shape"))
    )
    parser.add_argument(
        "--hundredths",
        type=calling.positive,
        nargs="+",
        default=[1, 2, 5],
        metavar="N",
        help="how many of the pods may be moved (default 1 2 5)",
    )
    return parser.parse_args()


def main() -> int:
    return calling.run("quality", measure(_parse()), ObjectError)


if __name__ == "__main__":
    sys.exit(main())
