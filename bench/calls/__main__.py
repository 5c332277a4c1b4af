"""python -m bench.calls: what one move asks of the API server, and one eviction by the descheduler."""

import sys
import tempfile
from pathlib import Path

from bench import calling, descheduler
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions
from localcluster.build.products import DESCHEDULER
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from tests.live.support.move_calls import AT_ONCE, CallCount, CallCounter, count_all, counting, tabulate

_OWNER = "web-4"
_THEIRS = descheduler.describe_policy("RemovePodsViolatingNodeTaints", "deschedule", {}, evictor={})


async def measure() -> str:
    conditions = Conditions()
    with tempfile.TemporaryDirectory(prefix="bench-calls-") as folder:
        async with counting(Path(folder), descheduler.USER) as counter:
            rows = [*await count_all(counter), await _deschedule(counter)]
    return f"""## The API calls of a move

{conditions.describe()} Descheduler {DESCHEDULER.version}.

Counted by the API server's audit log, on one cluster: the daemon with `extender: none`, then the descheduler.
Pods have to leave a node that was tainted: one in each row, or {AT_ONCE} of {AT_ONCE} workloads at once.
Everything that the program asks is counted but its watches and its lease.

* A pod without a PodDisruptionBudget is evicted in the version that was validated, and nothing needs to be
  read. One with a budget is read: an eviction whose condition fails would charge the budget. Where the
  replacement gets the name of the pod, as in a StatefulSet, a dry run compares the version instead.
* The first move of a workload also creates its history. The first of all, which creates the ledger, is not
  in the table.
* What is refused is closed at once: the note is removed and the debit returned. The budget was created after
  the move had been validated; a plan does not propose what a budget forbids.
* "Resumed" is of both processes: the first one is killed when it sends the eviction. The next one lists all
  objects for its cache when it starts, which is not counted; then it reads history, ledger, node and pod.

{tabulate(rows)}
"""


async def _deschedule(counter: CallCounter) -> CallCount:
    """Count after its first cycle, in which it lists everything."""
    stage = counter.stage
    await processes.stop(counter.leader.running)
    victim = (await stage.pick([_OWNER]))[_OWNER]

    async def evict() -> None:
        await stage.drive_out([victim])
        await stage.settle()

    async with descheduler.active(stage.cluster, "descheduler", _THEIRS) as running:
        await descheduler.wait_for(stage.cluster, 1, running)
        return await counter.count("descheduler: one eviction", evict, user=descheduler.USER)


def main() -> int:
    return calling.run("calls", measure(), Failed, LocalClusterError)


if __name__ == "__main__":
    sys.exit(main())
