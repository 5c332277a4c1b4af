"""Our own annotation: off, recommend or apply; the nearest object wins."""

import pytest

from reberth.values.refusal import Refused
from rescheduler.observe.rule_context import RuleContext
from rescheduler.protections import Automation, find_automation, refuse_protected
from tests.support.builders import owner
from tests.support.rescheduler.guardrails import context_of, namespace, peer, place_of, replica, workload

KEY = "reberth.dev/automation"
Marks = dict[str, str] | None


def marked(on_pod: str | None, on_workload: str | None, on_namespace: str | None) -> RuleContext:
    annotations: list[Marks] = [{KEY: each} if each else None for each in (on_pod, on_workload, on_namespace)]
    above = workload("ReplicaSet", ownerReferences=[owner("Deployment", "web")])
    return context_of(
        peer(),
        replica(annotations=annotations[0]),
        above,
        workload("Deployment", spec={"replicas": 0}, annotations=annotations[1]),
        namespace(annotations=annotations[2]),
    )


@pytest.mark.parametrize(
    ("on_pod", "on_workload", "on_namespace", "where", "automation"),
    [
        ("off", "apply", "apply", "pod", Automation.OFF),
        ("apply", "off", "off", "pod", Automation.APPLY),
        (None, "off", "apply", "workload", Automation.OFF),
        (None, "recommend", "off", "workload", Automation.RECOMMEND),
        (None, None, "off", "namespace", Automation.OFF),
        (None, None, "apply", "namespace", Automation.APPLY),
        ("Off", "apply", "apply", "pod", None),
    ],
)
def test_the_nearest_mark_wins(
    on_pod: str | None,
    on_workload: str | None,
    on_namespace: str | None,
    where: str,
    automation: Automation | None,
) -> None:
    context = marked(on_pod, on_workload, on_namespace)
    place = place_of(context)
    said = find_automation(context.template_of(place), context)
    assert said is not None
    assert (said.where, said.automation) == (where, automation)
    refused = refuse_protected(place, context)
    if automation in (Automation.APPLY, Automation.RECOMMEND):
        assert refused is None
    else:
        assert refused is not None
        assert refused.rule == "AutomationOff"
        assert f"the {where}'s annotation {KEY}={said.value}" in refused.reason


def test_without_annotations_no_automation_is_set() -> None:
    context = marked(None, None, None)
    assert find_automation(context.template_of(place_of(context)), context) is None


def test_an_unknown_automation_value_counts_as_off_and_is_reported() -> None:
    context = marked("yes", None, None)
    known = "which is not off, recommend or apply"
    expected = Refused("AutomationOff", f"the pod's annotation {KEY}=yes, {known}")
    assert refuse_protected(place_of(context), context) == expected
