"""Asks the API server, right before an eviction, what it would make of the replacement (`confirm: dryRun`).

It costs a read of the whole template and a dry run for each move. Where that is not allowed, or what allows
it is not as it was shipped, the move is made as with `confirm: template`.
"""

from typing import Any

import msgspec

from reberth.client.api import Api
from reberth.cluster.kinds import (
    PODS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    REVISION,
    STATEFUL_SET,
    Kind,
    Resource,
    plain_kind,
)
from reberth.cluster.pods.identity import group_of
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.replacement.dry_run import WholeTemplate, compose_pod, judge_answer, judge_refusal
from reberth.forecast.replacement.next_pod import NextPod, find_next
from reberth.forecast.replacement.origin import Origin, find_origin
from reberth.records import NamedClaimTemplate, ObjectMeta, OpenMove, Record, WorkloadIdentity
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused
from rescheduler.execution.context import ExecutionContext
from rescheduler.execution.validation import MoveValidator
from rescheduler.moves.revalidation import NOT_MIRRORED
from rescheduler.telemetry import metrics


class _WholeSpec(Record, frozen=True):
    template: dict[str, Any] = msgspec.field(default_factory=dict)
    service_name: str = ""
    volume_claim_templates: tuple[NamedClaimTemplate, ...] | None = None


class _WholeOwner(Record, frozen=True):
    metadata: ObjectMeta
    spec: _WholeSpec = _WholeSpec()


class _RevisionData(Record, frozen=True):
    spec: _WholeSpec = _WholeSpec()


class _Revision(Record, frozen=True):
    metadata: ObjectMeta
    data: _RevisionData = _RevisionData()

    @property
    def template(self) -> dict[str, Any]:
        return self.data.spec.template


def _whole(kind: Kind[Any, Any], plural: str) -> Resource[_WholeOwner]:
    return Resource(plain_kind(kind.name, _WholeOwner, kind.group), plural)


_OWNERS = {
    (REPLICA_SET.group, REPLICA_SET.name): _whole(REPLICA_SET, "replicasets"),
    (STATEFUL_SET.group, STATEFUL_SET.name): _whole(STATEFUL_SET, "statefulsets"),
    ("", REPLICATION_CONTROLLER.name): _whole(REPLICATION_CONTROLLER, "replicationcontrollers"),
}
_REVISIONS = Resource(plain_kind(REVISION.name, _Revision, REVISION.group), "controllerrevisions")


class ReplacementConfirmation:
    """Compares what was foretold of a replacement with the API server's answer."""

    def __init__(self, context: ExecutionContext, validator: MoveValidator) -> None:
        self._context = context
        self._validator = validator

    async def refuse(self, entry: OpenMove, namespace: str) -> Refused | None:
        """Refuse a move whose replacement would not be created, or not as it was foretold."""
        if not self._context.policy().confirms(entry.policy):
            return None
        trouble = await self._context.dry_runs.find_trouble()
        if isinstance(trouble, Refused):
            metrics.DRY_RUNS.labels("refused").inc()
            return trouble
        if trouble:
            self._context.tell(f"{entry.id}: confirmed by the template alone: {trouble}")
            metrics.DRY_RUNS.labels("off").inc()
            return None
        asked = await self._validator.ask(lambda survey: _ask_forecast(survey.snapshot, entry.pod_uid))
        return await self._ask(namespace, *asked) if isinstance(asked, tuple) else asked

    async def _ask(self, namespace: str, row: PodRow, origin: Origin, foretold: NextPod) -> Refused | None:
        api = self._context.api
        try:
            whole = await _read_whole(api, namespace, origin)
            if whole is None:
                return None
            answer = await api.try_create(PODS, compose_pod(whole, row), namespace=namespace)
        except ApiError as error:
            is_of_set = origin.owners[0].kind == STATEFUL_SET.name
            metrics.DRY_RUNS.labels("refused").inc()
            return judge_refusal(error, is_of_set=is_of_set)
        refused = judge_answer(answer, foretold)
        metrics.DRY_RUNS.labels("disagrees" if refused else "agrees").inc()
        return refused


def _ask_forecast(snapshot: Snapshot, uid: str) -> tuple[PodRow, Origin, NextPod] | Refused | None:
    """Give what is foretold; None for a pod whose controller's template is not known."""
    place = snapshot.pods.by_uid(uid)
    if place is None:
        return NOT_MIRRORED
    row = snapshot.pods.rows[place]
    origin, foretold = find_origin(snapshot, row), find_next(snapshot, row)
    if isinstance(foretold, Refused):
        return foretold
    return (row, origin, foretold) if isinstance(origin, Origin) else None


async def _read_whole(api: Api, namespace: str, origin: Origin) -> WholeTemplate | None:
    controller: WorkloadIdentity = origin.owners[0]
    resource = _OWNERS.get((group_of(controller.api_version), controller.kind))
    if resource is None:
        return None
    spec = (await api.get(resource, controller.name, namespace=namespace)).spec
    template, claims = spec.template, tuple(each.metadata.name for each in spec.volume_claim_templates or ())
    if origin.is_earlier:
        template = (await api.get(_REVISIONS, origin.revision, namespace=namespace)).template
        template.pop("$patch", None)
    return WholeTemplate(controller, template, spec.service_name, claims, origin.revision)
