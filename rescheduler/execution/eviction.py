"""The eviction: asked for only when the extenders have seen the move and nothing forbids it any more.

It is tried as a dry run first, since a precondition that fails on a real eviction uses up the budget. An
answer that leaves a doubt is followed by looks at the pod, never by a second eviction of the same decision.
"""

import asyncio
from functools import partial

from msgspec.structs import replace

from reberth.cluster.pods.identity import sign_pod
from reberth.cluster.resources import HISTORIES, NODES
from reberth.cluster.snapshot import Snapshot, build
from reberth.records import Node, OpenMove, Pod
from reberth.runtime.metrics import bounded
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import Case, Equipment
from rescheduler.execution.extenders import Sought
from rescheduler.moves.eviction_response import Unsettled, read_answer
from rescheduler.moves.lifecycle import DEBIT_LOST, MANUAL, PodState, Situation, judge_pod
from rescheduler.moves.revalidation import (
    POD_MOVED,
    Fresh,
    choose_usable,
    refuse_by_budgets,
    refuse_by_rules,
    refuse_pod,
)
from rescheduler.telemetry import metrics

STILL_THERE = Refused("Unanswered", "the eviction was not answered, and the pod still lives")
NOT_TRIED = "DryRunFailed"
_LOOK_EVERY = 1.0


class Evictor:
    """Takes one move from its note to its eviction, or to a "no"."""

    def __init__(self, equipment: Equipment, case: Case) -> None:
        self._equipment = equipment
        self._case = case

    async def evict(self, seen: Situation) -> Situation:
        """Give what is known afterwards: the pod is terminating or gone, or the move has met a "no"."""
        refused = await self._refuse_unseen(seen)
        pod = await self._look(seen)
        state = judge_pod(pod, seen.entry.pod_uid)
        if pod is None or state != PodState.ALIVE:
            return replace(seen, pod=state)
        refused = refused or await self._refuse(seen, pod) or await self._refuse_dry_run(seen)
        if refused is None:
            refused = await self._evict(seen)
            if refused is None:
                return replace(seen, pod=PodState.TERMINATING)
        left = judge_pod(await self._look(seen), seen.entry.pod_uid)
        return replace(seen, pod=left, refused=refused)

    async def _refuse_unseen(self, seen: Situation) -> Refused | None:
        need, tell = self._equipment.settings().extender, self._case.reporter.tell
        if need == "none":
            tell("no extender is asked: nobody draws the replacement to the destination")
            metrics.MOVES_UNPROMISED.inc()
            return None
        refused = await self._equipment.asker.refuse_unseen(self._list_sought(seen))
        if refused is None:
            tell("the extenders have seen it")
        elif need == "optional":
            tell(f"unpromised: {refused.reason}")
            metrics.MOVES_UNPROMISED.inc()
            return None
        return refused

    def _list_sought(self, seen: Situation) -> tuple[Sought, Sought]:
        case = self._case
        return (
            Sought(NODES.name, "", seen.entry.from_, seen.node_version),
            Sought(HISTORIES.name, case.namespace, case.history, seen.history_version),
        )

    async def _refuse(self, seen: Situation, pod: Pod) -> Refused | None:
        """Validate the move on the newest state."""
        equipment, entry = self._equipment, seen.entry
        refused = refuse_pod(pod) or (POD_MOVED if pod.spec.node_name != entry.from_ else None)
        if refused:
            return refused
        ledger = await equipment.store.read_ledger()
        if not any(one.move == entry.id for one in ledger.status.debits or ()):
            return DEBIT_LOST
        fresh = Fresh(await equipment.list_budgets(self._case.namespace), ledger)
        contents, now = equipment.sight.cache.contents(), equipment.clock()
        return await equipment.think(
            lambda: self._refuse_by_rules(entry, pod, build(contents, now=now), fresh)
        )

    def _refuse_by_rules(self, entry: OpenMove, pod: Pod, snapshot: Snapshot, fresh: Fresh) -> Refused | None:
        """A person's own word goes before the rules of the plan, but not before the budgets."""
        equipment, forecast = self._equipment, self._equipment.forecast
        usable = self._choose_usable(entry, pod, snapshot)
        if isinstance(usable, Refused):
            return usable
        if entry.policy == MANUAL or forecast is None:
            return refuse_by_budgets(entry.pod_uid, snapshot, fresh.budgets)
        return refuse_by_rules(
            entry, usable[0], snapshot, fresh, policy=equipment.policy(), schedulers=forecast.schedulers
        )

    def _choose_usable(self, entry: OpenMove, pod: Pod, snapshot: Snapshot) -> tuple[str, ...] | Refused:
        equipment = self._equipment
        who = sign_pod(pod.metadata, {})
        if isinstance(who, Refused):
            return who
        usable = choose_usable(
            entry.destinations or (),
            source=entry.from_,
            who=who,
            find=partial(_find_node, snapshot),
            now=snapshot.now,
        )
        if isinstance(usable, Refused) or equipment.forecast is None:
            return usable
        return equipment.forecast.refuse_destinations(snapshot, pod, usable) or usable

    async def _refuse_dry_run(self, seen: Situation) -> Refused | None:
        answer = await self._send(seen, dry_run=True)
        if isinstance(answer, Unsettled):
            return Refused(NOT_TRIED, f"the dry run of the eviction failed: {answer.value}")
        return answer

    async def _evict(self, seen: Situation) -> Refused | None:
        answer = self._equipment.halt(seen.entry.policy) or await self._send(seen, dry_run=False)
        if answer is Unsettled.IN_DOUBT:
            return await self._settle_doubt(seen)
        if answer is Unsettled.PODS_STATE:
            return Refused("Conflict", "the API server found another pod than the one of the plan")
        return answer

    async def _send(self, seen: Situation, *, dry_run: bool) -> Refused | Unsettled | None:
        equipment = self._equipment
        answer: Refused | Unsettled | None = None
        try:
            await equipment.store.evict(seen.entry, namespace=self._case.namespace, dry_run=dry_run)
        except ApiError as error:
            answer = read_answer(error, now=equipment.clock())
        if not dry_run:
            metrics.EVICTIONS.labels(_name_answer(answer)).inc()
        return answer

    async def _settle_doubt(self, seen: Situation) -> Refused | None:
        """Look until the pod is seen to go, or so long that no request can still be on its way."""
        equipment = self._equipment
        self._case.reporter.tell("the eviction was not answered: looking at the pod")
        until = equipment.clock() + equipment.settings().doubt
        while judge_pod(await self._look(seen), seen.entry.pod_uid) == PodState.ALIVE:
            left = until - equipment.clock()
            if left <= 0:
                return STILL_THERE
            await asyncio.sleep(min(_LOOK_EVERY, left))
        return None

    async def _look(self, seen: Situation) -> Pod | None:
        return await self._equipment.look_up(self._case.namespace, seen.entry.pod)


def _find_node(snapshot: Snapshot, name: str) -> Node | None:
    place = snapshot.nodes.index.get(name)
    return None if place is None else snapshot.nodes.records[place]


def _name_answer(answer: Refused | Unsettled | None) -> str:
    if isinstance(answer, Refused):
        return bounded(answer.rule, metrics.REFUSALS)
    return "granted" if answer is None else answer.name.lower()
