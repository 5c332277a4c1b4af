"""Lives of pods write by write as a kubelet of 1.36 writes them, for tests of what reads pods' health.

They cost the API server three to ten times the writes of the cheap ones, so fleets do without them. Values of
the annotation `localcluster.reberth.dev/life`:

    faithful                   starts in four writes, ends before its grace is over, with a terminal phase
    faithful-stubborn          ends only when its grace is over, killed
    faithful-never-ready       runs, but is never Ready
    faithful-crash-loop        ends with code 1 a second after each start, restarts after a back-off
    faithful-oom-killed        likewise, killed for its memory
    faithful-liveness-killed   likewise, killed by its liveness probe
    faithful-init-crash-loop   likewise, in its init container: never more than Pending
    faithful-image-pull-error  its image is not there
    faithful-rejected          is refused by its node: Failed, without conditions
    faithful-evicted           is evicted by its node, which is short of memory: Failed, and it stays
    faithful-rebooted          its node boots again, once

`runs-for` is the time until an end, an eviction or a reboot (default 1s); `restarts-every` replaces the
back-off. A pod with a readiness probe is Ready one write after it runs. When a node returns that was lost
(`localcluster.nodes.lose`), its pods are Ready again, even those that are deleted then.
"""

from typing import Any

from localcluster.kwok.faithful import ends, loops, starts
from localcluster.kwok.faithful.lives import LIVES

__all__ = ["LIVES", "stages"]


def stages() -> list[dict[str, Any]]:
    return [*starts.stages(), *loops.stages(), *ends.stages()]
