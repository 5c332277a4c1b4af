"""Every kind that must be cached is one that is cached, and a plan reads none that it does not wait for."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from reberth.cluster.cache import Contents
from reberth.cluster.custom_kinds import find_custom_kind
from reberth.cluster.kinds import ALL_RESOURCES, Kind
from reberth.cluster.object_files import load_objects
from reberth.cluster.tables import Rows
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.observe.needed_kinds import FOR_A_MOVE, FOR_A_PLAN, FOR_THE_DAEMON, find_unread
from rescheduler.observe.scheduler_model import SchedulerModel
from rescheduler.planning.planner import plan
from tests.support.rescheduler.fleets import draw_objects
from tests.support.rescheduler.plans import MODEL, NOW, PLAIN_MODEL, VERSION, policy

NAMES = {resource.kind: resource.name for resource in ALL_RESOURCES}


@pytest.mark.parametrize("needed", [FOR_A_PLAN, FOR_A_MOVE, FOR_THE_DAEMON])
def test_every_needed_kind_is_cached(needed: tuple[str, ...]) -> None:
    assert set(needed) <= {resource.name for resource in ALL_RESOURCES}


def list_read(model: SchedulerModel, **protections: Any) -> set[str]:
    """The kinds that the plans of some clusters read."""
    read: set[str] = set()

    class Recording(dict[Kind[Any, Any], Rows[Any]]):
        def get(self, kind: Kind[Any, Any], default: Any = None) -> Any:
            if kind is not find_custom_kind(kind.group, kind.name):  # that is waited for where it is served
                read.add(NAMES[kind])
            return super().get(kind, default)

    settings = policy(level=5, protections={"minAge": "0s", **protections})
    for seed in range(20):
        snapshot = load_objects(draw_objects(Random(seed)), now=NOW, version=VERSION).snapshot
        contents: Contents = Recording(snapshot.contents)
        plan(replace(snapshot, contents=contents), settings, PlanMemory(), model=model)
    return read


@pytest.mark.parametrize("model", [MODEL, PLAIN_MODEL])
@pytest.mark.parametrize("quotas", [True, False])
def test_no_plan_reads_a_kind_that_it_does_not_wait_for(model: SchedulerModel, *, quotas: bool) -> None:
    settings = policy(protections={"quotas": quotas}).protections
    unread, read = find_unread(settings, model.scheduler), list_read(model, quotas=quotas)
    assert not unread & read
    assert {"pods", "services", "evictionhistories", "nodepools"} <= read
    assert ("resourcequotas" in read, "resourcequotas" in unread) == (quotas, not quotas)
    draws = model is MODEL
    assert ("nodeplacementscores" in read, "nodeplacementscores" in unread) == (draws, not draws)


def test_what_the_daemon_needs_is_never_left_for_later() -> None:
    settings: Mapping[str, Any] = MappingProxyType({"quotas": False})
    unread = find_unread(policy(protections={**settings}).protections, PLAIN_MODEL.scheduler)
    assert unread.isdisjoint({*FOR_THE_DAEMON, *FOR_A_PLAN, *FOR_A_MOVE})
