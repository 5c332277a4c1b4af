"""Protections of workloads in a rollout: a move would get in its way, or be a part of it.

A rollout in progress protects the whole workload. Where the rollout of a StatefulSet has stopped at its
partition, only those pods are protected that would come back in another revision: their eviction would roll
them out. A workload whose own state cannot be read is judged by its ReplicaSets, or by its pods.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from reberth.cluster.columns import Bools, seal
from reberth.cluster.custom_kinds import CustomKind, find_custom_kind
from reberth.cluster.kinds import DEPLOYMENT, POD, REPLICA_SET, ROLLOUT, STATEFUL_SET, Kind
from reberth.cluster.pods.identity import Signature
from reberth.cluster.rows import PodRow
from reberth.forecast.replacement.revisions import REVISION, find_next_revision
from reberth.records import CustomOwner, Owner, Rollout
from reberth.values.refusal import Refused
from rescheduler.model.replacing_kinds import OTHER_PROJECTS, kind_of
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.rollout_state import (
    any_rolling,
    has_two_revisions,
    is_argo_rolling,
    is_rolling,
    is_unobserved,
    list_divided,
    list_mixed,
)

_ROLLED = (DEPLOYMENT.name, STATEFUL_SET.name)
_LONGEST_NAME = 80


class _Rolling(NamedTuple):
    """What is protected, and why: all pods of some templates, and single pods by their place."""

    templates: Mapping[int, Refused]
    pods: Mapping[int, Refused]


def refuse_paused(template: int, context: RuleContext) -> Refused | None:
    signature, root = context.sign(template), context.root(template)
    if isinstance(signature, Refused) or not isinstance(root, Owner | Rollout):
        return None
    if not root.spec.paused or not context.protections.rollouts:
        return None
    return Refused("RolloutPaused", f"{signature.root.kind} {root.metadata.name} is paused")


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
    others = ((template, context.root(template)) for template in asked if template not in whole)
    split = {
        template: root for template, root in others if isinstance(root, Owner) and has_two_revisions(root)
    }
    places = np.flatnonzero(context.spread(split)).tolist()
    pods = ((place, context.row(place), split[context.template_of(place)]) for place in places)
    return _Rolling(
        whole, {place: said for place, row, owner in pods if (said := _refuse_single(row, owner))}
    )


def _list_asked(context: RuleContext) -> Iterator[int]:
    """List the templates of the namespaces in which a workload may have a rollout."""
    snapshot = context.snapshot
    parts = ((part, question) for kind, question in _QUESTIONS for part in snapshot.of(kind).parts)
    asked = {part.namespace for part, question in parts if part.read(question)}
    for kind, has_begun in _list_custom():
        asked.update(part.namespace for part in snapshot.of(kind).parts if part.read(has_begun))
    asked.update(part.namespace for part in snapshot.of(POD).parts if list_mixed(part))
    for namespace in sorted(asked):
        yield from snapshot.templates_in(namespace)


def _list_custom() -> Iterator[tuple[CustomKind, Callable[[tuple[CustomOwner, ...]], bool]]]:
    """List the kinds of other projects that are read, and whether one of their objects has a rollout."""
    for named in OTHER_PROJECTS:
        if kind := find_custom_kind(*named):
            yield kind, any_rolling(named)


def _has_rolling(deployments: Iterable[Owner]) -> bool:
    return any(is_rolling(each, DEPLOYMENT.name) for each in deployments)


def _has_split(stateful_sets: Iterable[Owner]) -> bool:
    return any(has_two_revisions(each) or is_unobserved(each) for each in stateful_sets)


def _has_unfinished(rollouts: Iterable[Rollout]) -> bool:
    return any(is_argo_rolling(each, is_divided=False) for each in rollouts)


# The answers are kept with the rows of a namespace until one of them changes.
_QUESTIONS: tuple[tuple[Kind[Any, Any], Callable[[Any], object]], ...] = (
    (DEPLOYMENT, _has_rolling),
    (STATEFUL_SET, _has_split),
    (ROLLOUT, _has_unfinished),
    (REPLICA_SET, list_divided),
)


def _refuse_whole(template: int, context: RuleContext) -> Refused | None:
    signature, root = context.sign(template), context.root(template)
    if isinstance(signature, Refused):
        return None
    is_divided = signature.root.uid in _read_divided(signature.namespace, context)
    said = f"{signature.root.kind} {signature.root.name}"[:_LONGEST_NAME]
    if isinstance(root, Rollout) and root.metadata.generation:
        found = _describe(root) if is_argo_rolling(root, is_divided=is_divided) else None
    elif isinstance(root, Owner) and signature.root.kind in _ROLLED:
        found = "has a rollout in progress" if is_rolling(root, signature.root.kind) else None
    elif is_divided:
        found = "has pods in more than one ReplicaSet"
    elif _is_custom_rolling(signature, context):
        found = "has a rollout in progress"
    else:
        found = _find_revisions(signature, context)
    return Refused("Rollout", f"{said} {found}") if found else None


def _is_custom_rolling(signature: Signature, context: RuleContext) -> bool:
    named = kind_of(signature.controller)
    kind = find_custom_kind(*named) if named in OTHER_PROJECTS else None
    if kind is None:
        return False
    owner = context.snapshot.of(kind).by_uid(signature.controller.uid, near=signature.namespace)
    return owner is not None and any_rolling(named)((owner,))


def _read_divided(namespace: str, context: RuleContext) -> frozenset[str]:
    return context.snapshot.of(REPLICA_SET).part(namespace).read(list_divided)


def _find_revisions(signature: Signature, context: RuleContext) -> str | None:
    mixed = list_mixed(context.snapshot.of(POD).part(signature.namespace))
    return "has pods of more than one revision" if signature.controller.uid in mixed else None


def _describe(rollout: Rollout) -> str:
    phase, step = rollout.status.phase, rollout.status.current_step_index
    state = [*([phase[:_LONGEST_NAME]] if phase else []), *([] if step is None else [f"step {step}"])]
    return "has a rollout in progress" + (f" ({', '.join(state)})" if state else "")


def _refuse_single(row: PodRow, owner: Owner) -> Refused | None:
    """Refuse a pod of a StatefulSet that would come back in another revision."""
    following = find_next_revision(row.name, owner)
    if following and row.labels.get(REVISION) == following:
        return None
    said = f"would create the pod again in revision {following or 'unknown'}"
    return Refused("Rollout", f"StatefulSet {owner.metadata.name} {said}")
