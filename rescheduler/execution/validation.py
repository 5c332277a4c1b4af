"""Validates a move on the newest state right before its eviction: the plan is seconds old by then."""

from functools import partial

from reberth.cluster.pods.identity import find_signature
from reberth.cluster.snapshot import Snapshot, build
from reberth.records import Node, OpenMove, Pod
from reberth.values.refusal import Refused
from rescheduler.budgets.brakes import ClusterHealth
from rescheduler.execution.context import ExecutionContext
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.revalidation import POD_MOVED, choose_usable, refuse_by_budgets, refuse_by_rules
from rescheduler.protections.pod_state import refuse_pod


class MoveValidator:
    """Answers for all moves of one leader whether they may still be made."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context

    async def refuse(self, entry: OpenMove, pod: Pod, *, resumed: bool) -> Refused | None:
        """Validate a move whose pod was just read. A resumed move was begun by an earlier leader."""
        refused = refuse_pod(pod) or (POD_MOVED if pod.spec.node_name != entry.from_ else None)
        if refused:
            return refused
        context = self._context
        contents, now = context.mirror.cache.contents(), context.clock()
        return await context.offload(
            lambda: self._refuse_by_rules(entry, pod, build(contents, now=now), resumed=resumed)
        )

    def _refuse_by_rules(
        self, entry: OpenMove, pod: Pod, snapshot: Snapshot, *, resumed: bool
    ) -> Refused | None:
        """A person's request takes precedence over the rules of the plan, but not over the budgets."""
        context, forecast = self._context, self._context.forecast
        usable = self._choose_usable(entry, pod, snapshot)
        if isinstance(usable, Refused):
            return usable
        if entry.policy == MANUAL or forecast is None:
            return refuse_by_budgets(entry.pod_uid, snapshot)
        return refuse_by_rules(
            entry,
            usable[0],
            snapshot,
            policy=context.policy(),
            schedulers=forecast.schedulers,
            health=ClusterHealth(drawn=context.settings().extender != "none"),
        ) or context.refuse_reasonless(entry, snapshot, resumed=resumed)

    def _choose_usable(self, entry: OpenMove, pod: Pod, snapshot: Snapshot) -> tuple[str, ...] | Refused:
        context = self._context
        who = find_signature(pod.metadata, {})
        if isinstance(who, Refused):
            return who
        usable = choose_usable(
            entry.destinations or (),
            source=entry.from_,
            who=who,
            find=partial(_find_node, snapshot),
            now=snapshot.now,
        )
        if isinstance(usable, Refused) or context.forecast is None:
            return usable
        return context.forecast.refuse_destinations(snapshot, pod, usable) or usable


def _find_node(snapshot: Snapshot, name: str) -> Node | None:
    place = snapshot.nodes.index.get(name)
    return None if place is None else snapshot.nodes.records[place]
