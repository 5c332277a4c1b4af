"""Protections of workloads in a rollout: a move would get in its way, or be a part of it.

A rollout in progress protects the whole workload. Where the rollout of a StatefulSet has stopped at its
partition, only those pods are protected that would come back in another revision: their eviction would roll
them out.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, seal
from reberth.cluster.kinds import DEPLOYMENT, STATEFUL_SET
from reberth.cluster.pods.identity import Signature
from reberth.cluster.rows import PodRow
from reberth.records import Owner
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext

_REVISION = "controller-revision-hash"
_DEPLOYMENT, _STATEFUL_SET = DEPLOYMENT.name, STATEFUL_SET.name


class _Rolling(NamedTuple):
    """What is protected, and why: all pods of some templates, and single pods by their place."""

    templates: Mapping[int, Refused]
    pods: Mapping[int, Refused]


def refuse_paused(template: int, context: RuleContext) -> Refused | None:
    root = _find_rolled(template, context)
    if root is None or not root.spec.paused:
        return None
    return Refused("RolloutPaused", f"{_kind_of_root(template, context)} {root.metadata.name} is paused")


def find_rolling(context: RuleContext) -> Bools:
    """Find the pods of workloads in a rollout, and the pods that their eviction would roll out."""
    rolling = _find_rolling(context)
    found = context.spread(rolling.templates)
    found[list(rolling.pods)] = True
    return seal(found)


def refuse_rolling(place: int, context: RuleContext) -> Refused:
    rolling = _find_rolling(context)
    return rolling.templates.get(context.template_of(place)) or rolling.pods[place]


def _find_rolling(context: RuleContext) -> _Rolling:
    return context.once("rolling", lambda: _judge_all(context))


def _judge_all(context: RuleContext) -> _Rolling:
    if not context.protections.rollouts:
        return _Rolling({}, {})
    asked = tuple(_list_asked(context))
    whole = {template: said for template in asked if (said := _refuse_whole(template, context))}
    others = ((template, _find_rolled(template, context)) for template in asked if template not in whole)
    divided = {template: owner for template, owner in others if owner and _has_two_revisions(owner)}
    places = np.flatnonzero(context.spread(divided)).tolist()
    pods = ((place, context.row(place), divided[context.template_of(place)]) for place in places)
    return _Rolling(
        whole, {place: said for place, row, owner in pods if (said := _refuse_single(row, owner))}
    )


def _list_asked(context: RuleContext) -> Iterator[int]:
    """List the templates of the namespaces in which a workload has a rollout."""
    snapshot = context.snapshot
    questions: tuple[tuple[Any, Any], ...] = ((DEPLOYMENT, _has_rolling), (STATEFUL_SET, _has_divided))
    parts = ((part, question) for kind, question in questions for part in snapshot.of(kind).parts)
    for namespace in sorted({part.namespace for part, question in parts if part.read(question)}):
        yield from snapshot.templates_in(namespace)


def _has_rolling(deployments: Iterable[Owner]) -> bool:
    return any(_is_rolling(each, _DEPLOYMENT) for each in deployments)


def _has_divided(stateful_sets: Iterable[Owner]) -> bool:
    return any(_has_two_revisions(each) or _is_unobserved(each) for each in stateful_sets)


def _refuse_whole(template: int, context: RuleContext) -> Refused | None:
    root, kind = _find_rolled(template, context), _kind_of_root(template, context)
    if root is None or not _is_rolling(root, kind):
        return None
    return Refused("Rollout", f"{kind} {root.metadata.name} has a rollout in progress")


def _refuse_single(row: PodRow, owner: Owner) -> Refused | None:
    """Refuse a pod of a StatefulSet that would come back in another revision."""
    following = _find_next_revision(row, owner)
    if following and row.labels.get(_REVISION) == following:
        return None
    said = f"would create the pod again in revision {following or 'unknown'}"
    return Refused("Rollout", f"StatefulSet {owner.metadata.name} {said}")


def _find_next_revision(row: PodRow, owner: Owner) -> str | None:
    """Tell in which revision the StatefulSet controller would create the pod again.

    It creates the ordinals below the partition in the current one. Without rollingUpdate it goes by how many
    pods are still of that one instead; with OnDelete it creates every pod in the new one.
    """
    ordinal = row.name.rpartition("-")[2]
    if not ordinal.isdecimal():
        return None
    first = (owner.spec.ordinals.start or 0) if owner.spec.ordinals else 0
    is_kept = int(ordinal) < first + _count_kept(owner)
    return owner.status.current_revision if is_kept else owner.status.update_revision


def _count_kept(owner: Owner) -> int:
    strategy = owner.spec.update_strategy
    if strategy and strategy.type == "RollingUpdate" and strategy.rolling_update is None:
        return owner.status.current_replicas
    return _read_partition(owner)


def _read_partition(owner: Owner) -> int:
    strategy = owner.spec.update_strategy
    return (strategy.rolling_update.partition or 0) if strategy and strategy.rolling_update else 0


def _find_rolled(template: int, context: RuleContext) -> Owner | None:
    """Give the root owner if it is of a kind that has rollouts."""
    if not context.protections.rollouts:
        return None
    root = context.root(template)
    is_rolled = _kind_of_root(template, context) in (_DEPLOYMENT, _STATEFUL_SET)
    return root if isinstance(root, Owner) and is_rolled else None


def _kind_of_root(template: int, context: RuleContext) -> str:
    signature = context.sign(template)
    return signature.root.kind if isinstance(signature, Signature) else ""


def _is_rolling(owner: Owner, kind: str) -> bool:
    if _is_unobserved(owner):
        return True
    if not owner.metadata.generation:
        return False
    status, desired = owner.status, owner.spec.replicas or 0
    if kind == _DEPLOYMENT:
        return status.updated_replicas < desired or status.replicas > status.updated_replicas
    return _has_two_revisions(owner) and status.updated_replicas < desired - _read_partition(owner)


def _has_two_revisions(owner: Owner) -> bool:
    """An object without a generation was written by hand, so its status says nothing."""
    status = owner.status
    return owner.metadata.generation > 0 and status.current_revision != status.update_revision


def _is_unobserved(owner: Owner) -> bool:
    return owner.status.observed_generation < owner.metadata.generation
