"""Makes orders: of a planned move, or of a pod that a person names, if the rules allow it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from reberth.client.api import Api
from reberth.cluster.kinds import ALL_RESOURCES, OWNED_CONTROLLERS, POD
from reberth.cluster.pods.identity import Signature, find_controller, find_signature
from reberth.cluster.snapshot import build
from reberth.records import ObjectMeta, Pod, WorkloadIdentity
from reberth.values.errors import NotFound
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.validation import Survey
from rescheduler.model.plan import PlannedMove
from rescheduler.moves.lifecycle import MANUAL
from rescheduler.moves.order import MoveOrder
from rescheduler.moves.revalidation import choose_usable, refuse_by_budgets
from rescheduler.protections.pod_state import refuse_pod

R = TypeVar("R")

NO_SUCH_POD = Refused("NoSuchPod", "there is no such pod")
NO_FORECAST = Refused(
    "NoFeasibleDestination", "there is no forecast of where the pod fits: name nodes with --to"
)

_OWNED = {one.kind.name: one for one in ALL_RESOURCES if one.kind in OWNED_CONTROLLERS}


async def compose_order(
    context: ExecutionContext, namespace: str, name: str, *, to: tuple[str, ...], reason: str
) -> MoveOrder | Refused:
    """Make the order of a move that a person requested, or refuse it."""
    pod = await context.read_pod(namespace, name)
    if pod is None:
        return replace(NO_SUCH_POD, reason=f"there is no pod {namespace}/{name}")
    signature = find_signature(pod.metadata, await _find_owners(context.api, pod))
    if isinstance(signature, Refused):
        return signature
    refused = refuse_pod(pod) or await _survey(
        context, lambda survey: refuse_by_budgets(pod.metadata.uid, survey.snapshot)
    )
    destinations = refused or await _choose_destinations(context, pod, signature, to)
    if isinstance(destinations, Refused):
        return destinations
    return MoveOrder(pod, signature, destinations, MANUAL, reason)


def compose_planned(context: ExecutionContext, planned: PlannedMove) -> MoveOrder | Refused:
    """Make the order of a planned move from the cache, if the pod is still the one of the plan.

    The pod itself is looked at right before its eviction.
    """
    namespace, _, name = planned.pod.partition("/")
    row = context.mirror.cache.of(POD).named(namespace, name)
    if row is None or row.uid != planned.uid:
        return NO_SUCH_POD
    pod = row.pod
    controller = find_controller(pod.metadata)
    tables = (context.mirror.cache.of(one.kind) for one in _OWNED.values())
    found = (table.by_uid(controller.uid) for table in tables) if controller else ()
    owner = next(filter(None, found), None)
    signature = find_signature(pod.metadata, {owner.metadata.uid: owner.metadata} if owner else {})
    if isinstance(signature, Refused):
        return signature
    destinations = tuple(each.node for each in planned.destinations)
    return MoveOrder(pod, signature, destinations, planned.policy, planned.reason)


async def _find_owners(api: Api, pod: Pod) -> Mapping[str, ObjectMeta]:
    """Give the metadata of the pod's controller if its kind can have an owner."""
    controller = find_controller(pod.metadata)
    found = await _find_owner(api, pod.metadata.namespace, controller) if controller else None
    return {found.uid: found} if found else {}


async def _find_owner(api: Api, namespace: str, controller: WorkloadIdentity) -> ObjectMeta | None:
    resource = _OWNED.get(controller.kind)
    if resource is None or resource.api_version != controller.api_version:
        return None
    try:
        owner = await api.get(resource, controller.name, namespace=namespace)
    except NotFound:
        return None
    meta: ObjectMeta = owner.metadata
    return meta


async def _choose_destinations(
    context: ExecutionContext, pod: Pod, who: Signature, to: tuple[str, ...]
) -> tuple[str, ...] | Refused:
    """Take the named nodes without those that cannot be used; without names, take those of the forecast."""
    if not to:
        return await _survey(context, partial(_ask_forecast, pod=pod))
    source, now = pod.spec.node_name or "", context.clock()
    usable = choose_usable(to, source=source, who=who, find=context.find_node, now=now)
    if isinstance(usable, Refused):
        return usable
    return await _survey(context, partial(_refuse_unfit, pod=pod, usable=usable)) or usable


def _ask_forecast(survey: Survey, *, pod: Pod) -> tuple[str, ...] | Refused:
    return survey.forecasts.find_destinations(pod) if survey.forecasts else NO_FORECAST


def _refuse_unfit(survey: Survey, *, pod: Pod, usable: tuple[str, ...]) -> Refused | None:
    return survey.forecasts.refuse_destinations(pod, usable) if survey.forecasts else None


async def _survey(context: ExecutionContext, ask: Callable[[Survey], R]) -> R:
    contents, now = context.mirror.cache.contents(), context.clock()
    return await context.offload(lambda: ask(Survey(context, build(contents, now=now))))
