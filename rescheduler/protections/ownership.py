"""Protections by what a pod is: its controller, its priority, its claims, its group."""

from reberth.cluster.pods.identity import BARE_POD, DAEMON_SET_POD
from reberth.forecast.replacement.refusals import CANNOT_BE_REPLACED, CANNOT_FORECAST
from reberth.forecast.state.profile import DEFAULT_SCHEDULER
from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.annotations import is_lifted
from rescheduler.protections.pod_groups import find_bond

# The priority of Kubernetes' class system-cluster-critical; system-node-critical is above it.
_SYSTEM_PRIORITY = 2_000_000_000
_CRITICAL_CLASSES = ("system-cluster-critical", "system-node-critical")
_AS_DAEMON_SET = "cluster-autoscaler.kubernetes.io/daemonset-pod"
# Kubernetes' own responder answers for every pod that has no other one, so it protects none.
_DEFAULT_RESPONDER = "imperative-eviction.k8s.io/evictor"
GANG_KEYS = (
    "gang.scheduling.koordinator.sh/name",
    "kueue.x-k8s.io/pod-group-name",
    "leaderworkerset.sigs.k8s.io/group-key",
    "pod-group-name",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.x-k8s.io/pod-group",
    "yunikorn.apache.org/task-group-name",
)


def refuse_mirror(template: int, context: RuleContext) -> Refused | None:
    return _refuse_signature(template, context, "MirrorPod")


def refuse_daemon(template: int, context: RuleContext) -> Refused | None:
    annotations = context.template(template).pod.metadata.annotations or {}
    if annotations.get(_AS_DAEMON_SET) == "true":
        return Refused(DAEMON_SET_POD.rule, f"annotation {_AS_DAEMON_SET}=true")
    return _refuse_signature(template, context, DAEMON_SET_POD.rule)


def refuse_bare(template: int, context: RuleContext) -> Refused | None:
    refused = _refuse_signature(template, context, BARE_POD.rule)
    return None if refused and is_lifted(template, context) else refused


def refuse_critical(template: int, context: RuleContext) -> Refused | None:
    if not context.protections.critical:
        return None
    pod = context.template(template)
    name = pod.spec.priority_class_name
    if name in _CRITICAL_CLASSES:
        return Refused("CriticalPod", f"priorityClassName {name}")
    is_critical = pod.priority >= _SYSTEM_PRIORITY
    return Refused("CriticalPod", f"priority {pod.priority}") if is_critical else None


def refuse_job(template: int, context: RuleContext) -> Refused | None:
    controller = context.template(template).controller
    if not context.protections.job_pods or controller is None or controller.kind != "Job":
        return None
    return Refused("JobPod", f"Job {controller.name} counts the eviction as a failure")


def refuse_resource_claims(template: int, context: RuleContext) -> Refused | None:
    claims = context.template(template).spec.resource_claims
    if not claims or not context.protections.resource_claims:
        return None
    return Refused("ResourceClaims", f"resourceClaims: {', '.join(claim.name for claim in claims)}")


def refuse_gang(template: int, context: RuleContext) -> Refused | None:
    sign = _find_gang(template, context) if context.protections.gangs else None
    return Refused("Gang", f"{sign}: the pod is scheduled together with others") if sign else None


def refuse_responders(template: int, context: RuleContext) -> Refused | None:
    responders = context.template(template).spec.eviction_responders or ()
    names = [each.name for each in responders if each.name != _DEFAULT_RESPONDER]
    if not names or not context.protections.eviction_responders:
        return None
    return Refused("EvictionResponders", f"evictionResponders: {', '.join(names)}")


def refuse_unforeseeable(template: int, context: RuleContext) -> Refused | None:
    if context.template(template).is_cut:
        return Refused(CANNOT_FORECAST, "the pod is so large that only a part of it is read")
    following = context.next_of(template)
    if isinstance(following, Refused):
        return following if following.rule == CANNOT_FORECAST else None
    name = following.template.spec.scheduler_name or DEFAULT_SCHEDULER
    if name in context.schedulers:
        return None
    return Refused(CANNOT_FORECAST, f"schedulerName {name} has no profile in the scheduler configuration")


def refuse_irreplaceable(template: int, context: RuleContext) -> Refused | None:
    """Refuse a pod whose replacement the API server would not create: its eviction would be an outage."""
    following = context.next_of(template)
    is_refused = isinstance(following, Refused) and following.rule == CANNOT_BE_REPLACED
    return following if isinstance(following, Refused) and is_refused else None


def _refuse_signature(template: int, context: RuleContext, rule: str) -> Refused | None:
    signature = context.sign(template)
    return signature if isinstance(signature, Refused) and signature.rule == rule else None


def _find_gang(template: int, context: RuleContext) -> str | None:
    pod = context.template(template).pod
    if pod.spec.scheduling_group:
        bond = find_bond(context.template(template), context)
        if bond:
            return f"schedulingGroup {pod.spec.scheduling_group.pod_group_name}, {bond}"
    if pod.spec.workload_ref:
        return f"workloadRef {pod.spec.workload_ref.name}"
    for where, pairs in (("label", pod.metadata.labels), ("annotation", pod.metadata.annotations)):
        for key in GANG_KEYS if pairs else ():
            if key in (pairs or ()):
                return f"{where} {key}"
    return None
