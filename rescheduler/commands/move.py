"""`python -m rescheduler move`: one move to its outcome. The command holds the lease for that time."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from reberth.client.access import Access
from reberth.client.api import Api
from reberth.client.custom_kinds import find_custom_resources
from reberth.client.events import recording
from reberth.client.lease import Leadership, leading, name_holder
from reberth.client.mirror import Mirror, mirroring
from reberth.cluster.cache import Cache
from reberth.cluster.kinds import ALL_RESOURCES
from reberth.cluster.pods.identity import name_history
from reberth.cluster.pods.requests import Version, read_version
from reberth.runtime.watchdog import ending_when_stuck
from reberth.values.errors import ReberthError, taken_apart
from reberth.values.refusal import Refused
from rescheduler.execution.context import (
    ClusterResources,
    ExecutionContext,
    MoveForecast,
    MoveHandle,
    make_execution_context,
)
from rescheduler.execution.executor import Executor
from rescheduler.execution.extenders import connect_to_extenders
from rescheduler.execution.orders import compose_order
from rescheduler.execution.recovery import UnsettledMoves, resume_moves
from rescheduler.execution.store import MoveStore
from rescheduler.model.replacing_kinds import list_custom, list_unnamed
from rescheduler.moves.lifecycle import MoveState
from rescheduler.moves.outcome import MoveReport
from rescheduler.observe.needed_kinds import FOR_A_MOVE
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.settings import ReschedulerSettings
from rescheduler.telemetry.events import REPORTER

SYNCING_TIME = 30.0

# Makes the forecast for the version of Kubernetes that the API server says.
MakeForecast = Callable[[Version], MoveForecast]


class CachesNotSynced(ReberthError):
    """Kinds that a move needs could not be read."""


async def perform_move(
    access: Access,
    settings: ReschedulerSettings,
    pod: tuple[str, str],
    *,
    policy: ReschedulerPolicy = ReschedulerPolicy(),  # noqa: B008 - frozen
    to: tuple[str, ...] = (),
    reason: str = "requested by hand",
    tell: Callable[[str], None],
    make_forecast: MakeForecast | None = None,
) -> MoveReport | Refused:
    """Move a pod (namespace, name) and give the outcome.

    Open moves of an earlier leader are settled first. Raises ReberthError. After an error or a cancellation,
    a move that was begun is recorded in the workload's eviction history, and the next leader continues it.
    """
    async with Api(access, settings.api) as api, lead_by_hand(api, settings) as leadership:
        if isinstance(leadership, Refused):
            return leadership
        async with open_execution_context(
            api, settings, leadership, policy=policy, tell=tell, make_forecast=make_forecast
        ) as context:
            return await _perform(context, *pod, to=to, reason=reason)


@asynccontextmanager
async def lead_by_hand(api: Api, settings: ReschedulerSettings) -> AsyncIterator[Leadership | Refused]:
    """Take the lease, or give the refusal that names its holder: the move can be requested from it."""
    async with (
        leading(api, settings.lease, identity=name_holder(), give_way=True) as leadership,
        ending_when_stuck(settings.lease.stuck_after),
    ):
        yield leadership


@asynccontextmanager
async def open_execution_context(
    api: Api,
    settings: ReschedulerSettings,
    leadership: Leadership,
    *,
    policy: ReschedulerPolicy,
    tell: Callable[[str], None],
    make_forecast: MakeForecast | None,
) -> AsyncIterator[ExecutionContext]:
    """Sync the caches that a move needs, and open everything else that it works with."""
    version = read_version(await api.version())
    cache = Cache(version=version, annotations=policy.protections.annotation_keys)
    forecast = make_forecast(version) if make_forecast else None
    needed = [one for one in ALL_RESOURCES if forecast or one.name in FOR_A_MOVE]
    if forecast:
        named = list_custom(policy.protections.replacing_kinds)
        needed += await find_custom_resources(api, named, unnamed=list_unnamed(named))
    identity = leadership.identity
    # The watches and the body are cancelled together: the first error is the cause.
    with taken_apart():
        async with (
            recording(api, reporter=REPORTER, instance=identity) as recorder,
            connect_to_extenders(api, settings.extender_access, watch=settings.watch) as extenders,
            mirroring(api, cache, needed) as mirror,
        ):
            await _sync(mirror)
            resources = ClusterResources(
                api=api,
                mirror=mirror,
                extenders=extenders,
                recorder=recorder,
                settings=lambda: settings,
                policy=lambda: policy,
                clock=api.clock.now,
                forecast=forecast,
            )
            context = make_execution_context(resources, MoveStore(api, leadership, cache), tell=tell)
            yield context
            await context.ledger.flush()


async def _sync(mirror: Mirror) -> None:
    try:
        async with asyncio.timeout(SYNCING_TIME):
            for watcher in mirror.watchers.values():
                await (watcher.answered() if watcher.resource.is_custom else watcher.synced())
    except TimeoutError:
        troubles = {name: trouble for name, trouble in mirror.troubles().items() if trouble}
        said = "; ".join(f"{name}: {trouble}" for name, trouble in sorted(troubles.items()))
        raise CachesNotSynced(f"caches not synced within {SYNCING_TIME:g} s: {said}") from None


async def _perform(
    context: ExecutionContext, namespace: str, name: str, *, to: tuple[str, ...], reason: str
) -> MoveReport | Refused:
    """Settle open moves, then move the pod. An open move of this pod is continued instead."""
    executor, unsettled = Executor(context), UnsettledMoves(context.clock)
    resumed = [one async for one in resume_moves(context, executor, unsettled)]
    unfinished = [(one.handle, one.settled) for one in resumed if isinstance(one.settled, MoveState)]
    for handle, state in unfinished:
        if (handle.namespace, state.entry.pod) == (namespace, name):
            return await executor.finish(handle, state)
    async with _finishing(executor, unfinished) as finished:
        order = await compose_order(context, namespace, name, to=to, reason=reason)
        if isinstance(order, Refused):
            return order
        await asyncio.gather(*finished(namespace, name_history(order.signature.root)))
        return await executor.move(order)


@asynccontextmanager
async def _finishing(
    executor: Executor, unfinished: Iterable[tuple[MoveHandle, MoveState]]
) -> AsyncIterator[Callable[[str, str], list[asyncio.Task[MoveReport]]]]:
    """Finish these moves meanwhile; those that do not end in time stay open for the next leader.

    Gives a function that lists the tasks of one history.
    """
    tasks = [(handle, asyncio.create_task(executor.finish(handle, state))) for handle, state in unfinished]
    try:
        yield lambda namespace, history: [
            task for handle, task in tasks if (handle.namespace, handle.history) == (namespace, history)
        ]
    finally:
        for _, task in tasks:
            task.cancel()
        await asyncio.gather(*(task for _, task in tasks), return_exceptions=True)
