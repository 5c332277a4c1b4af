"""Workloads that fail in a cluster leave it, against a hub that records its writes."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from federation.api import Cluster, ResourceBinding, ResourceInterpreterCustomization
from federation.api.clusters import ApiEnablement
from federation.controllers.failover.application_failover import ApplicationFailoverSettings
from federation.failover.health_clock import CopyHealth
from federation.objects import resources
from federation.objects.template import Object
from reberth.values.duration import Duration
from reberth.values.errors import Conflict, Forbidden
from tests.support.federation.clusters import DUPLICATED, DYNAMIC, groups
from tests.support.federation.failing import FailingHub, failing_over, member
from tests.support.metrics import read_metric

pytestmark = pytest.mark.looptime


def begun() -> float:
    return read_metric("reberth_federation_application_failovers_total", outcome="begun")


def spec_patches(hub: FailingHub) -> list[Object]:
    return [patch["spec"] for _, part, patch in hub.patches if part == "spec" and "spec" in patch]


def changed(one: ResourceBinding, **parts: Object) -> ResourceBinding:
    wire: Any = msgspec.json.decode(msgspec.json.encode(one))
    for part, more in parts.items():
        wire[part] = {**wire.get(part, {}), **more}
    return msgspec.json.decode(msgspec.json.encode(wire), type=ResourceBinding)


def running_in(*clusters: str, **said: Any) -> FailingHub:
    """A workload that was well in these clusters."""
    hub = FailingHub()
    hub.put(resources.BINDINGS, failing_over(dict.fromkeys(clusters, 3 // len(clusters)), **said))
    for each in clusters:
        hub.report(each, 3)
    return hub


async def test_the_condition_of_an_eviction_is_written_when_the_new_copies_have_been() -> None:
    hub = running_in("m1", tolerationSeconds=3)
    await hub.live(5)
    hub.report("m1", 1)
    await hub.live(3.5)
    assert hub.clusters() == {"m2": 3}
    assert hub.condition().reason == "Tolerating"
    await hub.live(1)
    assert hub.condition().reason == "Evicting"


async def test_a_workload_that_fails_for_longer_than_is_tolerated_leaves_in_one_write() -> None:
    hub, before = running_in("m1", tolerationSeconds=10), begun()
    await hub.live(5)
    hub.report("m1", 1)
    hub.patches.clear()
    await hub.live(9.9)
    assert hub.clusters() == {"m1": 3}
    assert (hub.condition().status, hub.condition().reason) == ("True", "Tolerating")
    assert "It leaves at 2027-01-15T08:00:15Z." in (hub.condition().message or "")
    await hub.live(0.3)
    assert hub.clusters() == {"m2": 3}
    assert hub.leaving() == ["m1"]
    (task,) = hub.find().spec.graceful_eviction_tasks or ()
    assert (task.reason, task.purge_mode, task.creation_timestamp) == (
        "ApplicationFailure",
        "Gracefully",
        "2027-01-15T08:00:15Z",
    )
    assert task.producer == "resource-binding-application-failover-controller"
    (entry,) = hub.find().spec.active_eviction_history or ()
    assert (entry.cluster_name, entry.reason, entry.fruitless) == ("m1", "ApplicationFailure", 0)
    (written,) = spec_patches(hub)
    assert written.keys() >= {"clusters", "gracefulEvictionTasks", "activeEvictionHistory"}
    assert begun() == before + 1
    await hub.live(2)
    assert hub.condition().reason == "Evicting"
    note = "Evict from cluster m1 started: It fails in m1 since 2027-01-15T08:00:05Z."
    assert hub.events.count(("EvictWorkloadFromClusterStarted", note)) == 2, "binding and template"


async def test_the_old_copy_goes_when_the_new_one_is_healthy() -> None:
    hub = running_in("m1", tolerationSeconds=60)
    hub.report("m1", 0)
    await hub.live(61)
    hub.report("m2", 0)
    await hub.live(50)
    assert hub.leaving() == ["m1"]
    hub.report("m2", 3)
    await hub.live(5)
    assert (hub.leaving(), hub.clusters()) == ([], {"m2": 3})
    hub.lose_copy("m1")
    await hub.live(5)
    assert hub.condition().reason == "Calm"


async def test_a_failure_that_is_over_in_time_moves_nothing() -> None:
    hub = running_in("m1")
    for _ in range(10):
        hub.report("m1", 0)
        await hub.live(9)
        hub.report("m1", 3)
        await hub.live(20)
    assert hub.clusters() == {"m1": 3}
    assert not spec_patches(hub)


async def test_the_clock_survives_a_change_of_the_leader() -> None:
    hub = running_in("m1", tolerationSeconds=60)
    hub.report("m1", 0)
    for _ in range(5):
        await hub.live(10)
        hub.start()
    await hub.live(9)
    assert hub.clusters() == {"m1": 3}
    await hub.live(2.3)
    assert hub.clusters() == {"m2": 3}


async def test_nothing_begins_before_all_preconditions_hold() -> None:
    hub = FailingHub()
    hub.put(
        resources.BINDINGS,
        failing_over({"m1": 3}, preConditions={"delaySeconds": 100, "healthyState": "Healthy"}),
    )
    hub.report("m1", 0)
    await hub.live(60)
    assert hub.condition().reason == "NotSettled"
    hub.report("m1", 3)
    await hub.live(20)
    hub.report("m1", 0)
    await hub.live(0.5)
    assert hub.condition().reason == "Delayed"
    await hub.live(21)
    assert hub.clusters() == {"m2": 3}
    never = running_in("m1", preConditions={"healthyState": "Healthy"})
    never.lose_copy("m1")
    never.report("m1", 0)
    await never.live(1000)
    assert (never.clusters(), never.condition().reason) == ({"m1": 3}, "NotSettled")
    assert never.condition().status == "False"


async def test_it_stays_while_no_other_cluster_has_room_and_leaves_when_one_has() -> None:
    hub = FailingHub(member("m1"), member("m2", 2))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 1)
    await hub.live(100)
    assert (hub.clusters(), hub.leaving()) == ({"m1": 3}, [])
    assert (hub.condition().status, hub.condition().reason) == ("False", "NoSubstitute")
    assert any(reason == "ApplicationFailoverHeld" for reason, _ in hub.events)
    hub.put(resources.CLUSTERS, member("m2", 3))
    await hub.live(1)
    assert hub.clusters() == {"m2": 3}


async def test_room_that_was_reserved_is_found_though_nothing_tells_that_it_is_free() -> None:
    hub = FailingHub(member("m1", 3), member("m2", 3))
    hub.put(resources.BINDINGS, failing_over({}, name="other", placement=groups(two=["m2"]) | DYNAMIC))
    await hub.live(1)
    assert hub.clusters("other") == {"m2": 3}
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 1)
    await hub.live(100)
    assert hub.condition().reason == "NoSubstitute"
    await hub.live(19 + 31)  # for two minutes room is kept for replicas of which the member says nothing
    assert hub.clusters() == {"m2": 3}


async def test_broken_everywhere_it_moves_twice_and_is_given_up() -> None:
    hub = FailingHub(member("m1"), member("m2"))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 0)
    moves, where = 0, "m1"
    for _ in range(180):
        await hub.live(10)
        (there,) = hub.clusters()
        moves, where = moves + (there != where), there
        hub.report(there, 0)
        for gone in {"m1", "m2"} - {there, *hub.leaving()}:
            hub.lose_copy(gone)
    assert moves == 2
    assert hub.condition().reason == "GivenUp"
    assert "2 moves in a row have brought nothing" in (hub.condition().message or "")


async def test_moves_of_a_crash_loop_that_is_ready_for_moments_bring_nothing() -> None:
    hub = FailingHub(member("m1"), member("m2"))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}, tolerationSeconds=60))
    for _ in range(150):
        (there,) = hub.clusters()
        hub.report(there, 3)
        await hub.live(2)
        for gone in {"m1", "m2"} - {there, *hub.leaving()}:
            hub.lose_copy(gone)
        hub.report(there, 0)
        await hub.live(28)
    assert hub.condition().reason == "GivenUp"
    assert "2 moves in a row have brought nothing" in (hub.condition().message or "")


async def test_a_blocked_substitute_is_said_with_the_end_of_its_block() -> None:
    hub = FailingHub(member("m1"), member("m2"))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}, blockPredecessorSeconds=0))
    hub.report("m1", 0)
    await hub.live(12)
    hub.report("m2", 0)
    await hub.live(2000)
    assert hub.clusters() == {"m2": 3}
    assert hub.condition().reason == "Blocked"
    assert "m1, where it failed before, is blocked for ever" in (hub.condition().message or "")


async def test_an_old_copy_that_is_well_first_gets_the_workload_back() -> None:
    hub = running_in("m1")
    hub.report("m1", 1)
    await hub.live(12)
    hub.report("m2", 2)
    assert hub.clusters() == {"m2": 3}
    hub.report("m1", 3)
    await hub.live(9)
    assert hub.clusters() == {"m2": 3}, "it may be well for a moment only"
    await hub.live(15)
    assert (hub.clusters(), hub.leaving()) == ({"m1": 3}, [])
    assert not hub.find().spec.active_eviction_history
    assert any(reason == "EvictWorkloadFromClusterWithdrawn" for reason, _ in hub.events)
    await hub.live(100)
    assert hub.clusters() == {"m1": 3}


async def test_it_does_not_return_while_its_scheduling_is_suspended() -> None:
    hub = running_in("m1")
    hub.report("m1", 1)
    await hub.live(12)
    hub.report("m2", 2)
    hub.put(resources.BINDINGS, changed(hub.find(), spec={"suspension": {"scheduling": True}}))
    hub.report("m1", 3)
    await hub.live(60)
    assert hub.clusters() == {"m2": 3}
    assert hub.condition().reason == "Suspended"
    hub.put(resources.BINDINGS, changed(hub.find(), spec={"suspension": {"scheduling": False}}))
    await hub.live(10)
    assert hub.clusters() == {"m1": 3}


async def test_a_begin_and_a_return_that_are_refused_are_told() -> None:
    hub = running_in("m1")
    hub.report("m1", 1)
    await hub.live(5)
    hub.refuse.append(Forbidden("PATCH", "no right", status=403))
    failed = ("EvictWorkloadFromClusterFailed", "Evict from cluster m1 failed: no right")
    await hub.live(9)
    assert hub.events.count(failed) == 2
    assert hub.clusters() == {"m2": 3}
    hub.report("m1", 3)
    await hub.live(8)
    hub.refuse.append(Forbidden("PATCH", "no right", status=403))
    await hub.live(20)
    assert hub.events.count(failed) == 4
    assert hub.clusters() == {"m1": 3}
    withdrawn = "The cause to evict from cluster m1 is gone; the eviction is withdrawn."
    assert hub.events.count(("EvictWorkloadFromClusterWithdrawn", withdrawn)) == 2


async def test_what_holds_it_is_told_though_the_first_write_meets_a_conflict() -> None:
    hub = FailingHub(member("m1"))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 1)
    await hub.live(5)
    hub.events.clear()
    hub.refuse.append(Conflict("PATCH", "somebody else was faster", status=409))
    await hub.live(60)
    assert not hub.refuse
    assert hub.condition().reason == "NoSubstitute"
    assert [reason for reason, _ in hub.events] == ["ApplicationFailoverHeld"] * 2


async def test_it_returns_to_the_cluster_group_that_it_left() -> None:
    hub = running_in("m1", placement=groups(one=["m1"], two=["m2"]) | DYNAMIC)
    await hub.live(2)
    assert hub.find().status.observed_affinity == "one"
    hub.report("m1", 1)
    await hub.live(12)
    assert hub.clusters() == {"m2": 3}
    hub.report("m1", 3)
    await hub.live(30)
    assert (hub.clusters(), hub.find().status.observed_affinity) == ({"m1": 3}, "one")


@pytest.mark.parametrize(
    ("on_end", "available", "stays"), [("KeepBetter", 2, True), ("KeepBetter", 1, False), ("Purge", 2, False)]
)
async def test_an_old_copy_that_is_better_stays_after_its_grace_period(
    on_end: str, available: int, *, stays: bool
) -> None:
    hub = running_in("m1", gracePeriodSeconds=60, onGraceEnd=on_end, tolerationSeconds=200)
    hub.report("m1", available)
    await hub.live(202)
    hub.report("m2", 1)
    await hub.live(100)
    assert (hub.leaving() == ["m1"]) is stays
    hub.report("m2", 3)
    await hub.live(5)
    assert hub.leaving() == []


async def test_with_the_mode_never_the_old_copy_stays_until_a_person_says_otherwise() -> None:
    hub = running_in("m1", purgeMode="Never")
    hub.report("m1", 0)
    await hub.live(12)
    hub.report("m2", 3)
    await hub.live(4000)
    assert hub.leaving() == ["m1"]
    (task,) = hub.find().spec.graceful_eviction_tasks or ()
    assert task.suppress_deletion is True


async def test_a_member_that_is_not_ready_starts_nothing_and_its_fresh_word_decides() -> None:
    hub = running_in("m1")
    hub.report("m1", 0)
    await hub.live(3)
    hub.put(resources.CLUSTERS, member("m1", ready=False))
    await hub.live(60)
    assert (hub.clusters(), hub.condition().reason) == ({"m1": 3}, "MemberNotReady")
    hub.put(resources.CLUSTERS, member("m1"))
    await hub.live(0.5)
    assert hub.clusters() == {"m2": 3}


async def test_a_rollout_is_no_failure() -> None:
    hub = running_in("m1", tolerationSeconds=60)
    hub.tell("m1", CopyHealth("Unhealthy", is_rolling_out=True), 3)
    await hub.live(600)
    assert hub.clusters() == {"m1": 3}
    assert not spec_patches(hub)


async def test_unknown_health_counts_only_where_the_policy_says_so() -> None:
    hub = running_in("m1", decision={"healthyState": ["Unhealthy", "Unknown"]})
    hub.tell("m1", CopyHealth("Unknown"))
    await hub.live(12)
    assert hub.clusters() == {"m2": 3}
    hub = running_in("m1")
    hub.tell("m1", CopyHealth("Unknown"))
    await hub.live(1000)
    assert hub.clusters() == {"m1": 3}


async def test_of_a_workload_in_several_clusters_all_replicas_of_the_failing_one_move() -> None:
    hub = FailingHub()
    hub.put(resources.BINDINGS, failing_over({"m1": 2, "m2": 1}, placement=DYNAMIC))
    hub.report("m1", 1, of=2)
    hub.report("m2", 1, of=1)
    await hub.live(12)
    assert "m1" not in hub.clusters()
    assert sum(hub.clusters().values()) == 3
    assert hub.clusters()["m2"] >= 1


async def test_a_workload_that_is_whole_in_each_cluster_needs_one_cluster_more() -> None:
    spread = [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]
    hub = FailingHub()
    hub.put(
        resources.BINDINGS,
        failing_over({"m1": 3, "m2": 3}, placement=DUPLICATED | {"spreadConstraints": spread}),
    )
    hub.report("m1", 0)
    hub.report("m2", 3)
    await hub.live(12)
    assert hub.clusters() == {"m2": 3, "m3": 3}
    two = FailingHub(member("m1"), member("m2"))
    two.put(resources.BINDINGS, failing_over({"m1": 3, "m2": 3}, placement=DUPLICATED))
    two.report("m1", 0)
    two.report("m2", 3)
    await two.live(100)
    assert (two.clusters(), two.condition().reason) == ({"m1": 3, "m2": 3}, "NoSubstitute")


async def test_of_two_failing_whole_copies_only_those_leave_for_which_there_is_a_cluster() -> None:
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 2}]
    hub = FailingHub()
    hub.put(
        resources.BINDINGS,
        failing_over({"m1": 3, "m2": 3}, placement=DUPLICATED | {"spreadConstraints": spread}),
    )
    hub.report("m1", 0)
    hub.report("m2", 0)
    await hub.live(100)
    assert hub.leaving() == ["m1"]
    assert hub.clusters() == {"m2": 3, "m3": 3}


@pytest.mark.parametrize(("placed", "moved"), [(["m1"], True), (["m1", "m2", "m3"], False)])
async def test_a_storm_holds_all_unless_it_is_the_failure_of_one_cluster(
    placed: list[str], *, moved: bool
) -> None:
    hub, names = FailingHub(), [f"w{number:02}" for number in range(30)]
    for number, name in enumerate(names):
        at = placed[number % len(placed)]
        hub.put(resources.BINDINGS, failing_over({at: 3}, name=name))
        hub.report(at, 0, name=name)
    hub.start()
    await hub.live(30)
    reasons = {hub.condition(name).reason for name in names}
    assert reasons == ({"Evicting"} if moved else {"Storm"})


async def test_what_a_storm_held_moves_when_it_is_over() -> None:
    hub, names = FailingHub(), [f"w{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        hub.put(resources.BINDINGS, failing_over({f"m{number % 3 + 1}": 3}, name=name))
        hub.report(f"m{number % 3 + 1}", 0, name=name)
    hub.start()
    await hub.live(30)
    assert {hub.condition(name).reason for name in names} == {"Storm"}
    for number, name in enumerate(names[3:], 3):
        hub.report(f"m{number % 3 + 1}", 3, name=name)
    await hub.live(10)
    assert [hub.condition(name).reason for name in names] == ["Evicting"] * 3 + ["Calm"] * 9


async def test_two_of_two_workloads_are_no_storm() -> None:
    hub = FailingHub()
    for name, at in (("a", "m1"), ("b", "m2")):
        hub.put(resources.BINDINGS, failing_over({at: 3}, name=name))
        hub.report(at, 0, name=name)
    await hub.live(15)
    assert {hub.condition(name).reason for name in "ab"} == {"Evicting"}


async def test_evictions_begin_at_a_rate() -> None:
    hub, names = FailingHub(), [f"w{number:02}" for number in range(30)]
    for name in names:
        hub.put(resources.BINDINGS, failing_over({"m1": 3}, name=name))
        hub.report("m1", 0, name=name)
    hub.start()
    await hub.live(12)
    moved = sum("m1" not in hub.clusters(name) for name in names)
    assert 9 <= moved <= 12
    await hub.live(5)
    assert all("m1" not in hub.clusters(name) for name in names)


async def test_neither_slow_conditions_nor_slow_evictions_lower_the_rate() -> None:
    hub, names = FailingHub(), [f"w{number:02}" for number in range(30)]
    for name in names:
        hub.put(resources.BINDINGS, failing_over({"m1": 3}, name=name))
        hub.report("m1", 0, name=name)
    hub.start()
    hub.slow = {"status": 3.0, "spec": 0.6}
    await hub.live(10 + 30 / 5 + 1)
    assert all("m1" not in hub.clusters(name) for name in names)


async def test_a_return_does_not_wait_for_evictions_whose_turn_comes_later() -> None:
    hub = running_in("m1", tolerationSeconds=10)
    hub.report("m1", 1)
    await hub.live(12)
    assert hub.leaving() == ["m1"]
    hub.report("m1", 3)
    names = [f"w{number:02}" for number in range(60)]
    for name in names:
        hub.put(resources.BINDINGS, failing_over({"m3": 3}, name=name, tolerationSeconds=9))
        hub.report("m3", 0, name=name)
    await hub.live(12)
    assert hub.leaving() == []
    assert not all("m3" not in hub.clusters(name) for name in names), "the others still wait for their turn"


async def test_state_is_kept_in_the_task_and_nothing_begins_before_there_is_a_status() -> None:
    rules = {"rules": [{"aliasLabelName": "shop/step", "jsonPath": "{.step}"}]}
    hub = running_in("m1", purgeMode="Directly", statePreservation=rules)
    hub.report("m1", 0)
    await hub.live(100)
    assert (hub.clusters(), hub.condition().reason) == ({"m1": 3}, "NoState")
    said = [{"clusterName": "m1", "status": {"step": 7}}]
    hub.put(resources.BINDINGS, changed(hub.find(), status={"aggregatedStatus": said}))
    await hub.live(1)
    (task,) = hub.find().spec.graceful_eviction_tasks or ()
    assert (task.preserved_label_state, task.clusters_before_failover) == ({"shop/step": "7"}, ("m1",))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"suspension": {"scheduling": True}}, "Suspended"),
        ({"handover": {"clusters": [{"name": "m3", "replicas": 3}]}}, "Handover"),
        (
            {"resource": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a"}},
            "NoHealthRule",
        ),
    ],
)
async def test_what_holds_a_failover_is_said(more: Object, reason: str) -> None:
    hub = FailingHub()
    hub.put(resources.BINDINGS, changed(failing_over({"m1": 3}), spec=more))
    hub.report("m1", 0)
    await hub.live(100)
    assert (hub.clusters(), hub.condition().reason, hub.condition().status) == ({"m1": 3}, reason, "False")


GAMES = {"groupVersion": "example.com/v1", "resources": [{"kind": "Game"}]}


def with_kind(one: Cluster, kind: Object) -> Cluster:
    enabled = msgspec.convert([kind], tuple[ApiEnablement, ...])
    return replace(one, status=replace(one.status, api_enablements=enabled))


def game_health() -> ResourceInterpreterCustomization:
    script = {"luaScript": "function InterpretHealth(o) return o.status.ready end"}
    target = {"apiVersion": "example.com/v1", "kind": "Game"}
    spec = {"target": target, "customizations": {"healthInterpretation": script}}
    return msgspec.convert({"metadata": {"name": "games"}, "spec": spec}, ResourceInterpreterCustomization)


async def test_a_kind_whose_health_a_script_tells_leaves_too() -> None:
    hub = FailingHub(*(with_kind(member(name), GAMES) for name in ("m1", "m2")))
    game = {"apiVersion": "example.com/v1", "kind": "Game", "namespace": "default", "name": "web"}
    hub.put(resources.BINDINGS, changed(failing_over({"m1": 3}), spec={"resource": game}))
    hub.report("m1", 0)
    await hub.live(100)
    assert (hub.clusters(), hub.condition().reason) == ({"m1": 3}, "NoHealthRule")
    hub.hub.rules.load([game_health()])
    hub.report("m1", 0, of=4)
    hub.start()
    await hub.live(100)
    assert hub.clusters() == {"m2": 3}


async def test_a_known_kind_of_another_project_leaves_too() -> None:
    clones = {"groupVersion": "apps.kruise.io/v1alpha1", "resources": [{"kind": "CloneSet"}]}
    hub = FailingHub(*(with_kind(member(name), clones) for name in ("m1", "m2")))
    resource = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "namespace": "default",
        "name": "web",
    }
    hub.put(resources.BINDINGS, changed(failing_over({"m1": 3}), spec={"resource": resource}))
    hub.report("m1", 0)
    await hub.live(100)
    assert hub.clusters() == {"m2": 3}


async def test_a_history_without_application_failover_is_forgotten() -> None:
    hub = FailingHub()
    forgotten = {"failover": None, "activeEvictionHistory": [{"clusterName": "m2"}]}
    hub.put(resources.BINDINGS, changed(failing_over({"m1": 3}), spec=forgotten))
    await hub.live(1)
    assert not hub.find().spec.active_eviction_history


async def test_the_condition_is_calm_when_there_is_no_application_failover_any_more() -> None:
    hub = FailingHub(member("m1"))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 1)
    await hub.live(60)
    assert hub.condition().reason == "NoSubstitute"
    hub.put(resources.BINDINGS, changed(hub.find(), spec={"failover": None}))
    await hub.live(5)
    said = hub.condition()
    assert (said.status, said.reason, said.message) == ("True", "Calm", "It has no application failover.")
    hub.patches.clear()
    hub.put(resources.BINDINGS, hub.find())
    await hub.live(5)
    assert not hub.patches


async def test_a_longer_clock_skew_is_waited_for_after_a_change_of_the_leader() -> None:
    hub = FailingHub(settings=ApplicationFailoverSettings(clock_skew=Duration(5)))
    hub.put(resources.BINDINGS, failing_over({"m1": 3}))
    hub.report("m1", 0)
    await hub.live(1)
    hub.start()
    await hub.live(12)
    assert hub.clusters() == {"m1": 3}
    await hub.live(3)
    assert hub.clusters() == {"m2": 3}
