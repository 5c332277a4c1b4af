"""A forecast is about the pod that will be created: where it lands, what it takes, and whether it comes."""

import numpy as np

from reberth.cluster.snapshot import Snapshot
from reberth.forecast.forecast import Forecast, forecast_replacement
from reberth.forecast.output import NEXT, describe, tabulate
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import predict_replacement
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.verdict import Irreplaceable, Unforeseeable
from reberth.forecast.state.view import View, view_snapshot
from reberth.values.refusal import Refused
from tests.support.builders import container, node
from tests.support.forecast.replicas import VERSION, look, replica, replica_owner

SCHEDULER = default_scheduler(VERSION)


def see(snapshot: Snapshot) -> View:
    return view_snapshot(SnapshotFacts(snapshot, VERSION))


def resized() -> Snapshot:
    """A pod of 2 cpu that was resized to 1, and a node with 1.5 cpu."""
    nodes = (node("n-1", cpu="4"), node("n-2", cpu="1500m"))
    return look(*nodes, replica_owner(cpu="2"), replica(cpu="1", generation=2))


def test_a_pod_that_was_resized_in_place_does_not_fit_where_its_template_does_not() -> None:
    found = forecast_replacement(0, see(resized()), SCHEDULER)
    assert isinstance(found, Forecast)
    assert [found.incoming.demand.amounts["cpu"], found.feasible.tolist()] == [2000, [0]]
    assert found.reasons(1) == ["Insufficient cpu"]


def test_the_replacement_takes_what_it_asks_for_and_the_old_pod_gives_back_its_own() -> None:
    seen = see(resized())
    incoming = predict_replacement(seen.facts, 0)
    assert not isinstance(incoming, Refused)
    moved = seen.with_pod_on(0, 1, incoming.template)
    assert moved.requested.main[0].tolist() == [0, 2000]
    assert moved.load[0].tolist() == [0, 2000]
    away = moved.without(0)
    assert away.requested.main[0].tolist() == [0, 0]
    assert np.array_equal(moved.with_pod_on(0, 0).requested.main[0], [2000, 0])


def test_what_no_node_offers_is_taken_from_none() -> None:
    asked = container(cpu="1")
    asked["resources"]["requests"]["example.com/gpu"] = "1"
    snapshot = look(node("n-1"), replica_owner(containers=[asked]), replica(cpu="1", generation=2))
    seen = see(snapshot)
    incoming = predict_replacement(seen.facts, 0)
    assert not isinstance(incoming, Refused)
    assert seen.with_pod_on(0, 0, incoming.template).requested.main[0].tolist() == [1000]


def test_a_pod_that_would_not_be_created_again_is_said_to_be_irreplaceable() -> None:
    asked = {"priorityClassName": "gone"}
    snapshot = look(node("n-1"), replica_owner(**asked), replica(**asked))
    found = forecast_replacement(0, see(snapshot), SCHEDULER)
    assert isinstance(found, Irreplaceable)
    told = describe(found, snapshot, state=NEXT)
    assert told == {"state": "next", "irreplaceable": found.reason}
    assert tabulate({"shop/web-1": told}).splitlines()[1] == f"  cannot be replaced: {found.reason}"


def test_a_pod_of_which_nothing_is_known_is_unforeseeable() -> None:
    found = forecast_replacement(0, see(look(node("n-1"), replica())), SCHEDULER)
    assert isinstance(found, Unforeseeable)
    assert found.reason.startswith("ReplicaSet web is not in the cache")


def test_what_was_learnt_of_webhooks_is_told() -> None:
    proxied = replica(containers=[container(cpu="1"), container("proxy")])
    snapshot = look(node("n-1"), replica_owner(cpu="1"), proxied)
    found = forecast_replacement(0, see(snapshot), SCHEDULER)
    told = describe(found, snapshot, state=NEXT)
    assert told["learnt"] == ["container proxy"]
    said = "  as its newest sibling shows, webhooks add: container proxy"
    assert tabulate({"shop/web-1": told}).splitlines()[1] == said
