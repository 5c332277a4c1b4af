"""Decisions without a server, in a process of their own: many bindings on many members, generated.

    python -m bench.federation.deciding decisions 10000

Every binding is decided once, as the scheduler does it at its start; what was decided is kept until the end.
"""

import datetime as dt
import random
import subprocess
import sys
import time

import msgspec

from bench.federation.following import Moment, Run
from bench.reading.arms import Failed
from bench.reading.processes import peak
from federation.scheduling import Fleet, decide
from tests.support.federation.many_bindings import draw_bindings, draw_clusters
from tests.support.federation.objects import NOW

MEMBERS = 50
_LONGEST = 600.0


def decide_apart(part: str, *, size: int) -> Run:
    """Decide in a new process, so that its memory is that of nothing else."""
    command = [sys.executable, "-m", "bench.federation.deciding", part, str(size)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=_LONGEST)  # noqa: S603 - this file
    if done.returncode:
        raise Failed(done.stderr.decode())
    return msgspec.json.decode(done.stdout, type=Run)


def decide_all(part: str, size: int) -> Run:
    """Decide here and now; `resident` is the most that the process ever took, generating included."""
    chance = random.Random(1)  # noqa: S311 - to be repeated, not to be kept secret
    names = [f"member{number:03}" for number in range(MEMBERS)]
    clusters, bindings = draw_clusters(chance, names), draw_bindings(chance, size, names)
    began, used = time.monotonic(), time.process_time()
    fleet = Fleet(clusters)
    decisions = [decide(each, fleet, now=NOW) for each in bindings]
    seconds, cpu = time.monotonic() - began, time.process_time() - used
    if len(decisions) != size:
        raise Failed(f"{len(decisions)} of {size} bindings are decided")
    ended = f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M}"
    return Run(part, size, MEMBERS, {"decided": Moment(seconds, {})}, cpu, peak(), ended)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(decide_all(sys.argv[1], int(sys.argv[2]))))
