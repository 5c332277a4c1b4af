"""python -m bench.quality: the balance of the nodes after some moves of Reberth and of others.

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

How much the balance of the nodes improves for each moved pod: the standard deviation over {options.nodes}
nodes of the larger requested share, of cpu or of memory, in hundredths of a node. Each fleet is generated
from a seed, {options.seeds} of each shape:

{reporting.describe_shapes()}

All arms start from the same snapshot under Reberth's default protections and limits, except for the
rates, which are lifted, and the moves in a cycle: {", ".join(map(str, options.hundredths))} % of the pods.
Reberth's forecast decides which nodes are feasible and where a pod lands. kube-scheduler scores all nodes
(`percentageOfNodesToScore: 100`), so that luck plays no part.

* **Reberth**: its policy for under-utilised nodes, each pod lands on the first destination of its move. Moves
  cost nothing, since no other arm counts a cost.
* **descheduler**: LowNodeUtilization as documented, with `nodeFit`, cycle after cycle. An evicted pod
  lands where kube-scheduler's score is highest.
* **best single move**: again and again the pair of pod and node that improves the balance most, if the
  forecast predicts a gain of more than the 20 points that count as the same.
* **the same, blind to points**: the same search over all feasible nodes.

The baseline is the search that sees points. That a move must gain more than 20 of kube-scheduler's points is
one of the limits of all arms: without it, and without the extender's preference, the next pod lands elsewhere
or returns, and verification calls the move the same or worse. The search that is blind to points keeps all
other limits and shows what this one costs; no goal compares with it.

The two arms with thresholds get the best ones of a grid for each fleet: {_describe_grid()}.
"Per 1 %" is how much the deviation fell for each hundredth of the pods that was moved. Later moves gain less,
so the ratios are taken after as many moves as both arms have made.

{reporting.describe_fleets(measured)}

### Goals

{reporting.describe_goals(measured)}
"""


def _describe_grid() -> str:
    low, high = (", ".join(map(str, each)) for each in (_GRID.low, _GRID.high))
    return (
        f"{low} hundredths below the mean and {high} above it, for the descheduler "
        "each with 1, 5 or all pods of a node in a cycle"
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
