"""The plan of a hub: what the controllers would do, step by step, and what each workload then waits for."""

from enum import StrEnum

import msgspec

from federation.api import ObservedWorkload, TargetCluster

Clusters = tuple[TargetCluster, ...]


class Action(StrEnum):
    """What a step does to a binding, or to a cluster."""

    TAINT = "Taint"
    BIND = "Bind"
    UPDATE = "Update"
    UNBIND = "Unbind"
    SCHEDULE = "Schedule"
    MOVE = "Move"
    GROW = "Grow"
    SHRINK = "Shrink"
    EVICT = "Evict"
    END_EVICTION = "EndEviction"
    WITHDRAW_EVICTION = "WithdrawEviction"
    REBALANCE = "Rebalance"
    FAIL_BACK = "FailBack"
    FAIL_OVER = "FailOver"
    GIVE = "Give"
    HAND_OVER = "HandOver"
    LET_GO = "LetGo"
    RETURN = "Return"


class WaitsFor(StrEnum):
    """What has to happen until a workload goes on."""

    ROOM = "Clusters"
    TOLERATION = "Toleration"
    HANDOVER = "Handover"
    EVICTION = "Eviction"
    MEMBER = "Member"
    FAILOVER = "Failover"
    STABILIZATION = "Stabilization"
    TURN = "Turn"


class PlannedStep(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One step; `kept` are old replicas that stay beside the new ones, at most `until`."""

    action: Action
    subject: str
    reason: str
    origin: Clusters | None = msgspec.field(default=None, name="from")
    to: Clusters | None = None
    kept: Clusters | None = None
    until: str | None = None


class PlannedWait(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a workload waits for, and until when at most, if that is known."""

    what: WaitsFor = msgspec.field(name="for")
    message: str
    until: str | None = None


class BindingForecast(msgspec.Struct, frozen=True, rename="camel"):
    """Where a workload is and would be, the reason and message of its last decision, and what it waits for.

    `origin` is None for a binding that does not exist yet, `to` for one that would be deleted.
    """

    workload: str
    origin: Clusters | None = msgspec.field(name="from")
    to: Clusters | None
    affinity_name: str
    reason: str
    message: str
    waits: tuple[PlannedWait, ...] = ()


class HubPlan(msgspec.Struct, frozen=True, rename="camel"):
    """Everything that would happen until somebody else does something: a member, a user, or the clock."""

    kind: str
    now: str
    steps: tuple[PlannedStep, ...]
    bindings: dict[str, BindingForecast]
    rebalancers: dict[str, tuple[ObservedWorkload, ...]]
    warnings: tuple[str, ...]
