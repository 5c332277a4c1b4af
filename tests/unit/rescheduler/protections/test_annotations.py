"""Annotations of other tools: a row for each value."""

from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rescheduler.protections import Prices, ProtectionSettings, read_prices, refuse_protected
from rescheduler.protections.annotations import MARKS, read_go_duration
from tests.support.rescheduler.guardrails import NOW, Object, context_of, peer, place_of, replica

CA = "cluster-autoscaler.kubernetes.io"
DS = "descheduler.alpha.kubernetes.io"
KARPENTER = "karpenter.sh/do-not-disrupt"
NO, WAIT = "MarkedNo", "MarkedWait"
STARTED = "2027-01-15T07:30:00Z"

ROWS: list[tuple[str, str, str, str | None]] = [
    ("annotations", KARPENTER, "true", NO),
    ("annotations", KARPENTER, "false", None),
    ("annotations", KARPENTER, "perhaps", None),
    ("annotations", "karpenter.sh/do-not-evict", "true", NO),
    ("annotations", "karpenter.sh/do-not-evict", "perhaps", NO),
    ("annotations", "karpenter.sh/do-not-evict", "false", None),
    ("annotations", f"{CA}/safe-to-evict", "false", NO),
    ("annotations", f"{CA}/safe-to-evict", "on-completion", WAIT),
    ("annotations", f"{CA}/safe-to-evict", "true", None),
    ("annotations", f"{CA}/safe-to-evict", "perhaps", None),
    ("annotations", f"{CA}/enable-ds-eviction", "false", None),
    ("annotations", f"{DS}/evict", "", None),
    ("annotations", f"{DS}/prefer-no-eviction", "", NO),
    ("annotations", f"{DS}/prefer-no-eviction", "false", NO),
    ("annotations", f"{DS}/request-evict-only", "", None),
    ("annotations", f"{DS}/eviction-in-progress", "", WAIT),
    ("annotations", "scheduling.koordinator.sh/eviction-cost", "2147483647", NO),
    ("annotations", "scheduling.koordinator.sh/eviction-cost", "2147483646", None),
    ("annotations", "scheduling.koordinator.sh/soft-eviction", "{}", WAIT),
    ("annotations", "controller.kubernetes.io/pod-deletion-cost", "2147483647", None),
    ("annotations", "pub.kruise.io/no-protect", "true", None),
    ("labels", "apps.kruise.io/specified-delete", "true", WAIT),
    ("labels", "apps.kruise.io/specified-delete", "false", None),
    ("labels", "cluster.x-k8s.io/drain", "skip", NO),
    ("labels", "cluster.x-k8s.io/drain", "wait-completed", WAIT),
    ("labels", "cluster.x-k8s.io/drain", "perhaps", NO),
    ("labels", "cluster.x-k8s.io/drain", "false", None),
    ("annotations", "autoscaling.cast.ai/removal-disabled", "true", NO),
    ("annotations", "autoscaling.cast.ai/removal-disabled", "false", None),
    ("annotations", "autoscaling.cast.ai/disposable", "true", None),
    ("annotations", "beta.evictor.cast.ai/disposable", "true", None),
    ("labels", "spotinst.io/restrict-scale-down", "true", NO),
    ("labels", "spotinst.io/restrict-scale-down", "false", None),
    ("labels", "nvidia.com/gpu-driver-upgrade-drain.skip", "true", NO),
    ("labels", "nvidia.com/ofed-driver-upgrade-drain.skip", "true", NO),
    ("labels", "agones.dev/safe-to-evict", "false", NO),
    ("labels", "agones.dev/safe-to-evict", "true", None),
    ("annotations", "node-lifecycle.datadoghq.com/enabled", "false", NO),
    ("annotations", "node-lifecycle.datadoghq.com/enabled", "true", None),
]
YES = [
    (f"{CA}/safe-to-evict", "true"),
    (f"{DS}/evict", ""),
    (f"{DS}/evict", "false"),
    ("autoscaling.cast.ai/disposable", "true"),
    ("beta.evictor.cast.ai/disposable", "true"),
]
NOT_YES = [
    (f"{CA}/safe-to-evict", "yes"),
    ("autoscaling.cast.ai/disposable", "false"),
    ("pub.kruise.io/no-protect", "true"),
]
LOCAL: Object = {"volumes": [{"name": "cache", "emptyDir": {}}]}


def ask(*, settings: ProtectionSettings | None = None, **fields: Any) -> str | None:
    """Name the rule that protects a pod with these fields."""
    context = context_of(peer(), replica(**fields), protections=settings)
    refused = refuse_protected(place_of(context), context)
    return refused.rule if refused else None


@pytest.mark.parametrize(("where", "key", "value", "rule"), ROWS)
def test_a_mark_is_respected(where: str, key: str, value: str, rule: str | None) -> None:
    context = context_of(peer(), replica(**{where: {key: value}}))
    refused = refuse_protected(place_of(context), context)
    assert (refused.rule if refused else None) == rule
    if refused:
        assert f"{where.removesuffix('s')} {key}={value}" in refused.reason


def test_every_mark_has_its_rows() -> None:
    assert {mark.key for mark in MARKS} <= {key for _, key, _, _ in ROWS}


@pytest.mark.parametrize(("key", "value"), YES)
@pytest.mark.parametrize("kind", ["bare", "local", "system"])
def test_a_yes_lifts_the_protections_of_kinds(key: str, value: str, kind: str) -> None:
    mine = {"annotations": {key: value}}
    fields = {"bare": {"owned_by": None}, "local": LOCAL, "system": {}}[kind]
    system = ("default",) if kind == "system" else ()
    settings = ProtectionSettings(system_namespaces=system, last_ready=False)
    assert ask(settings=settings, **fields) in ("BarePod", "LocalStorage", "SystemNamespace")
    assert ask(settings=settings, **fields, **mine) is None


@pytest.mark.parametrize(("key", "value"), NOT_YES)
def test_annotations_that_do_not_allow_eviction_lift_no_protection(key: str, value: str) -> None:
    assert ask(**LOCAL, annotations={key: value}) == "LocalStorage"


@pytest.mark.parametrize(("key", "value"), YES)
@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("CriticalPod", {"priority": 2_000_000_000}),
        ("MarkedNo", {"labels": {"agones.dev/safe-to-evict": "false"}}),
        ("Gang", {"schedulingGroup": {"podGroupName": "train"}}),
        ("Terminating", {"deleted": "2027-01-15T08:10:00Z"}),
    ],
)
def test_a_yes_lifts_nothing_else_and_any_no_wins(
    key: str, value: str, rule: str, fields: dict[str, Any]
) -> None:
    assert ask(annotations={key: value}, **fields) == rule


def test_a_forbidding_annotation_wins_over_an_allowing_one() -> None:
    both = {f"{DS}/eviction-in-progress": "", "karpenter.sh/do-not-evict": "true", f"{DS}/evict": ""}
    assert ask(annotations=both) == NO


@given(st.lists(st.sampled_from(ROWS), max_size=6, unique_by=itemgetter(1)))
def test_any_no_wins_and_then_any_wait(rows: list[tuple[str, str, str, str | None]]) -> None:
    fields: dict[str, dict[str, str]] = {"labels": {}, "annotations": {}}
    for where, key, value, _ in rows:
        fields[where][key] = value
    said = {rule for _, _, _, rule in rows}
    expected = NO if NO in said else WAIT if WAIT in said else None
    assert ask(**fields) == expected


@pytest.mark.parametrize(
    ("value", "started", "until"),
    [
        ("45m", STARTED, NOW + 900),
        ("1h30m", STARTED, NOW + 3600),
        ("30m", STARTED, None),
        ("10m", STARTED, None),
        ("-1h", STARTED, None),
    ],
)
def test_karpenters_duration_counts_from_the_start_of_the_pod(
    value: str, started: str, until: float | None
) -> None:
    status = replica()["status"] | {"startTime": started}
    context = context_of(peer(), replica(annotations={KARPENTER: value}, status=status))
    refused = refuse_protected(place_of(context), context)
    assert (refused.until if refused else None) == until
    if refused:
        assert refused.rule == "MarkedForAWhile"
        assert KARPENTER in refused.reason


@pytest.mark.parametrize(
    ("started", "said"),
    [(STARTED, "until 2037-01-12T07:30:00Z"), ("9999-12-31T23:59:59Z", "until 9999-12-31T23:59:59Z")],
)
@pytest.mark.parametrize("hours", ["99999999", "9" * 63])
def test_a_pod_that_asks_to_be_kept_for_ever_is_kept_for_ten_years(
    hours: str, started: str, said: str
) -> None:
    status = replica()["status"] | {"startTime": started}
    context = context_of(peer(), replica(annotations={KARPENTER: f"{hours}h"}, status=status))
    refused = refuse_protected(place_of(context), context)
    assert refused is not None
    assert refused.reason.endswith(said)


def test_a_pod_without_a_start_is_still_kept() -> None:
    context = context_of(peer(), replica(annotations={KARPENTER: "1m"}))
    refused = refuse_protected(place_of(context), context)
    assert refused is not None
    assert (refused.rule, refused.until) == ("MarkedForAWhile", None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h15m30.918s", 4530.918),
        ("1.5h", 5400.0),
        (".5m", 30.0),
        ("100ms", 0.1),
        ("0", 0.0),
        ("-2s", -2.0),
        ("+2s", 2.0),
        ("5", None),
        ("", None),
        ("h", None),
        ("1 h", None),
        ("true", None),
        ("1.2.3h", None),
        ("1h" * 32, 32 * 3600.0),
        ("1h" * 33, None),
        ("1" * 10**6, None),
        ("9" * 63 + "h", 87600 * 3600.0),
        ("-" + "9" * 62 + "h", -87600 * 3600.0),
    ],
)
def test_a_go_duration_is_parsed_as_go_parses_it(text: str, seconds: float | None) -> None:
    assert read_go_duration(text) == (None if seconds is None else pytest.approx(seconds))


def test_the_users_own_annotations_protect_too() -> None:
    settings = ProtectionSettings(protected_pod_annotations=("example.com/pet", "example.com/role=main"))
    assert ask(settings=settings, annotations={"example.com/pet": "x"}) == NO
    assert ask(settings=settings, annotations={"example.com/role": "main"}) == NO
    assert ask(settings=settings, annotations={"example.com/role": "spare"}) is None
    assert ask(annotations={"example.com/pet": "x"}) is None


@pytest.mark.parametrize("wrong", ["", "=x", "a b"])
def test_an_annotation_that_cannot_be_one_is_refused_with_the_settings(wrong: str) -> None:
    with pytest.raises(ValueError, match="protectedPodAnnotations"):
        ProtectionSettings(protected_pod_annotations=(wrong,))


def test_prices_are_read_of_each_pod() -> None:
    prices = {
        "controller.kubernetes.io/pod-deletion-cost": "-100",
        "scheduling.koordinator.sh/eviction-cost": "7",
        f"{DS}/prefer-no-eviction": "",
    }
    settings = ProtectionSettings(prefer_no_eviction="price")
    context = context_of(peer(), replica(annotations=prices), protections=settings)
    assert read_prices(place_of(context), context) == Prices(-100, 7, is_unwelcome=True)
    assert refuse_protected(place_of(context), context) is None
    assert read_prices(place_of(context, "web-peer"), context) == Prices()


@pytest.mark.parametrize("text", ["many", "1.5", "2147483648", "99999999999", ""])
def test_an_invalid_price_costs_nothing(text: str) -> None:
    mine = replica(annotations={"controller.kubernetes.io/pod-deletion-cost": text})
    context = context_of(mine)
    assert read_prices(place_of(context), context) == Prices()
