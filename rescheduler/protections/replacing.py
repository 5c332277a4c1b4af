"""Protections of pods that nobody is known to replace: their eviction would lose them, or their work."""

from operator import attrgetter

from reberth.cluster.pods.identity import Signature
from reberth.records import EvictionHistory
from reberth.values.refusal import Refused
from rescheduler.model.replacing_kinds import (
    BATCH_JOB,
    BUILT_IN,
    OTHER_PROJECTS,
    ControllerKind,
    kind_of,
    parse_kind,
)
from rescheduler.observe.rule_context import RuleContext

# The API server's default; objects that were written by hand may leave it out.
_DEFAULT_POLICY = "Always"
_LONGEST_NAME = 80
_closed_at = attrgetter("closed_at")


def refuse_finite(template: int, context: RuleContext) -> Refused | None:
    """Refuse pods that run to an end: evicted in the middle, their work is lost.

    The pods of Jobs always do, and have a rule of their own.
    """
    each = context.template(template)
    policy = each.spec.restart_policy or _DEFAULT_POLICY
    is_jobs = each.controller is not None and kind_of(each.controller) == BATCH_JOB
    if policy in context.protections.movable_restart_policies or is_jobs:
        return None
    return Refused("RestartPolicy", f"restartPolicy {policy:.{_LONGEST_NAME}}: the pod runs to an end")


def refuse_unknown(template: int, context: RuleContext) -> Refused | None:
    """Refuse pods whose controller is of a kind that is not known to replace them."""
    signature = context.sign(template)
    if not isinstance(signature, Signature):
        return None
    kind = kind_of(signature.controller)
    if kind in BUILT_IN or kind in OTHER_PROJECTS or kind in _list_replacing(context):
        return None
    name = f"{kind.kind} {signature.controller.name}"
    advice = f"if it does, add {kind} to replacingKinds"
    said = f"{name:.{_LONGEST_NAME}} is not known to replace its pods; {advice}"
    return Refused("UnknownController", said + _show_evidence(context.history(template)))


def _list_replacing(context: RuleContext) -> frozenset[ControllerKind]:
    named = context.protections.replacing_kinds
    return context.once("replacing kinds", lambda: frozenset(map(parse_kind, named)))


def _show_evidence(history: EvictionHistory | None) -> str:
    """Show that a pod came back before; it permits nothing, since the next one may not."""
    past = (history.status.past or ()) if history else ()
    landed = max((move for move in past if move.landed_on), key=_closed_at, default=None)
    if landed is None:
        return ""
    return f" (after an eviction that ended {landed.closed_at} a new pod landed on {landed.landed_on})"
