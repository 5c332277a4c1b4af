"""What Reberth says of moving a pod, today and as it did when it took the running pod for the next one."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reberth.cluster.object_files import load_objects
from reberth.cluster.pods.requests import Version
from reberth.cluster.snapshot import Snapshot
from reberth.forecast.forecast import forecast_replacement, forecast_with_stale_cache
from reberth.forecast.output import NEXT, describe
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import view_snapshot
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections.ownership import refuse_irreplaceable, refuse_unforeseeable
from rescheduler.protections.workloads import refuse_quota
from tests.support.builders import Object

NOWHERE = "NoNode"
_RULES = (refuse_unforeseeable, refuse_irreplaceable, refuse_quota)
_OWNERS = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController", "ControllerRevision"})


class Verdict(NamedTuple):
    """The rule by which the pod is not moved, or the nodes on one of which its replacement lands."""

    refused: str
    nodes: frozenset[str]


def read(objects: Sequence[Object], version: Version) -> Snapshot:
    reading = load_objects(objects, now=0.0, version=version)
    assert not reading.faults, reading.faults
    return reading.snapshot


def judge_move(snapshot: Snapshot, namespace: str, name: str, version: Version) -> Verdict:
    """Ask the rules about the replacement, and then where it would land."""
    place = snapshot.pods.named(namespace, name)
    assert place is not None
    context = RuleContext(snapshot)
    template = context.template_of(place)
    refused = next(filter(None, (rule(template, context) for rule in _RULES)), None)
    if refused:
        return Verdict(refused.rule, frozenset())
    nodes = _find_nodes(snapshot, place, version)
    return Verdict("" if nodes else NOWHERE, nodes)


def _find_nodes(snapshot: Snapshot, place: int, version: Version) -> frozenset[str]:
    seen, scheduler = view_snapshot(SnapshotFacts(snapshot, version)), default_scheduler(version)
    usual = forecast_replacement(place, seen, scheduler)
    rare = forecast_with_stale_cache(place, seen, scheduler)
    return frozenset(describe(usual, snapshot, state=NEXT, rare=rare).get("best", ()))


def forget_templates(objects: Iterable[Object]) -> list[Object]:
    """Leave out what tells a template: then the running pod is copied, as before templates were read."""
    return [_forget_generation(each) if each["kind"] == "Pod" else _forget_template(each) for each in objects]


def _forget_generation(pod: Object) -> Object:
    meta = {key: value for key, value in pod["metadata"].items() if key != "generation"}
    return {**pod, "metadata": meta}


def _forget_template(each: Object) -> Object:
    if each["kind"] not in _OWNERS:
        return each
    spec = {key: value for key, value in each.get("spec", {}).items() if key != "template"}
    return {**each, "spec": spec, **({"data": {}} if "data" in each else {})}
