"""Watch a cluster while pods are moved: a live display on a terminal, otherwise line by line."""

import asyncio
import sys
import time
from collections.abc import Callable
from math import inf

from localcluster.cluster import Cluster
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.host.processes import Running
from localproduct.move_view import MoveSnapshot, draw, look, tell_news
from localproduct.terminal import Screen
from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import HISTORIES, NODES, PODS
from reberth.cluster.snapshot import take

_FIRST_MOVE = 180.0
_LONGEST = 300.0
_QUIET = 8.0
_PAUSE = 0.25
_NOTHING = MoveSnapshot((), ())
_ANY_VERSION = (1, 36)  # versions differ in nothing that is shown


async def watch(
    cluster: Cluster, rescheduler: Running, *, on_first: Callable[[], None], for_ever: bool = False
) -> MoveSnapshot:
    """Show the moves until all have ended and no new one starts for a while; the last snapshot."""
    cache = Cache(version=_ANY_VERSION)
    try:
        async with (
            Api(Access(str(cluster.kubeconfig))) as api,
            mirroring(api, cache, (NODES, PODS, HISTORIES)) as mirror,
        ):
            await mirror.synced()
            return await _follow(mirror, rescheduler, on_first, patience=inf if for_ever else _LONGEST)
    except ExceptionGroup as group:
        # The tasks of the watches and the body end together; the first error is the cause.
        raise group.exceptions[0] from group


async def _follow(
    mirror: Mirror, rescheduler: Running, on_first: Callable[[], None], *, patience: float
) -> MoveSnapshot:
    screen, began = Screen(sys.stdout, draw, tell_news), time.monotonic()
    sight, last_news = _NOTHING, began
    while True:
        seen, now = look(take(mirror.cache, now=time.time()), sight.moves), time.monotonic()
        if seen.moves and not sight.moves:
            on_first()
        if seen.moves != sight.moves:
            last_news = now
        if seen != sight:
            screen.show(seen)
        sight = seen
        if not processes.is_alive(rescheduler):
            raise LocalClusterError("the rescheduler has exited; see its log")
        if _is_over(sight, quiet=now - last_news, lasted=now - began, patience=patience):
            return sight
        await asyncio.sleep(_PAUSE)


def _is_over(sight: MoveSnapshot, *, quiet: float, lasted: float, patience: float) -> bool:
    if patience == inf:
        return False
    if not sight.moves and lasted > _FIRST_MOVE:
        raise LocalClusterError(f"no pod was moved within {_FIRST_MOVE:g} s; see the rescheduler's log")
    return lasted > patience or bool(sight.moves and not sight.under_way and quiet > _QUIET)
