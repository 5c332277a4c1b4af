"""What the rules read: a snapshot, the settings, and answers that are found once and kept.

Nothing is looked up before a rule needs it. What pods have in common is looked up for their template, so
137,500 pods cost as much as their few thousand templates.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from reberth.cluster.columns import Bools, Indices, Ints, read_pods, seal
from reberth.cluster.kinds import (
    BUDGET,
    DEPLOYMENT,
    HISTORY,
    JOB,
    LEDGER,
    NAMESPACE,
    OWNED_CONTROLLERS,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    ROLLOUT,
    STATEFUL_SET,
    Kind,
)
from reberth.cluster.pod_counts import PodCounts, count_namespace, list_guessed
from reberth.cluster.pods.identity import (
    Signature,
    find_controller,
    find_signature,
    group_of,
    name_history,
)
from reberth.cluster.rows import PHASES, PodRow
from reberth.cluster.snapshot import Snapshot
from reberth.cluster.tables import NamespaceRows, Rows
from reberth.cluster.templates import Template
from reberth.forecast.replacement.next_pod import NextPod, find_next
from reberth.forecast.state.profile import DEFAULT_SCHEDULER
from reberth.memory.history import is_evicted, is_history_of
from reberth.memory.ledger import LEDGER_NAME, return_debit, start_ledger
from reberth.records import (
    EvictionHistory,
    MoveLedger,
    Namespace,
    OpenMove,
    Owner,
    PodDisruptionBudget,
    ReplicationController,
    Rollout,
    WorkloadIdentity,
)
from reberth.selectors import NOTHING, Selector, SelectorError, compile_selector
from reberth.values.refusal import Refused
from rescheduler.model.guardrails import BrakeSettings, LimitSettings, ProtectionSettings, count_out
from rescheduler.model.refusal_memory import RefusalMemory

T = TypeVar("T")
Workload = Owner | ReplicationController | Rollout

WORKLOAD_KINDS = (DEPLOYMENT, JOB, REPLICA_SET, REPLICATION_CONTROLLER, ROLLOUT, STATEFUL_SET)
_KINDS: dict[tuple[str, str], Kind[Any, Any]] = {(kind.group, kind.name): kind for kind in WORKLOAD_KINDS}
FINISHED_PHASES = ("Succeeded", "Failed")
_NOBODY = WorkloadIdentity()
_UNKNOWN: Any = object()
_FINISHED = [PHASES.index(phase) for phase in FINISHED_PHASES]


class Budget(NamedTuple):
    """A PodDisruptionBudget and its compiled selector."""

    record: PodDisruptionBudget
    selector: Selector


@dataclass(frozen=True, eq=False)
class RuleContext:
    """The cluster as the rules see it. `schedulers` are the scheduler names with a known profile.

    Without `refusals` no rule asks what was refused before: a move that is under way is the next try. The
    open move `without` does not count, nor does its debit: no move must be refused because of itself.
    """

    snapshot: Snapshot
    protections: ProtectionSettings = field(default_factory=ProtectionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    brakes: BrakeSettings = field(default_factory=BrakeSettings)
    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    refusals: RefusalMemory | None = None
    without: str = ""
    _known: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _known_of_cluster: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    @property
    def now(self) -> float:
        return self.snapshot.now

    def leave_out(self, move: str) -> "RuleContext":
        """Give the context for an open move. Answers are shared: where it matters, their keys name it."""
        return replace(self, without=move)

    def with_histories(self, histories: Rows[EvictionHistory]) -> "RuleContext":
        """Give the context of the same cluster with other eviction histories."""
        contents = {**self.snapshot.contents, HISTORY: histories}
        return replace(self, snapshot=replace(self.snapshot, contents=contents), _known={})

    def once(self, key: Hashable, find: Callable[[], T]) -> T:
        """Give the answer under this key, or find it. The key must name all that the answer depends on."""
        return _remember(self._known, key, find)

    def once_of_cluster(self, key: Hashable, find: Callable[[], T]) -> T:
        """Do the same for an answer that depends on no eviction history: it is kept when these change."""
        return _remember(self._known_of_cluster, key, find)

    def row(self, place: int) -> PodRow:
        return self.snapshot.pods.rows[place]

    def template_of(self, place: int) -> int:
        return int(self.snapshot.pods.template[place])

    def template(self, number: int) -> Template:
        return self.snapshot.templates.all[number]

    def sign(self, template: int) -> Signature | Refused:
        """Give the signature of a template's pods."""
        return self.once_of_cluster(("signature", template), lambda: self._sign(self.template(template)))

    def identify(self, place: int) -> WorkloadIdentity:
        """Identify the root owner of a pod; a pod without an owner is its own workload."""
        signature = self.sign(self.template_of(place))
        if isinstance(signature, Signature):
            return signature.root
        row = self.row(place)
        return WorkloadIdentity("v1", "Pod", row.name, row.uid)

    def find_owner(self, namespace: str, owner: WorkloadIdentity) -> Workload | None:
        """Give an owner from the cache; None if its kind is not cached."""
        kind = _KINDS.get((group_of(owner.api_version), owner.kind))
        if kind is None:
            return None
        rows = self.snapshot.of(kind)
        found: Workload | None = (
            rows.by_uid(owner.uid, near=namespace) if owner.uid else rows.named(namespace, owner.name)
        )
        return found

    def root(self, template: int) -> Workload | None:
        """Give the root owner of a template's pods from the cache."""
        return self.once_of_cluster(("root", template), lambda: self._find_root(self.sign(template)))

    def namespace(self, name: str) -> Namespace | None:
        return self.snapshot.of(NAMESPACE).named("", name)

    def history(self, template: int) -> EvictionHistory | None:
        """Give the eviction history of a template's workload."""
        return self.once(("history", template), lambda: self._find_history(self.sign(template)))

    def is_evicted(self, move: OpenMove) -> bool:
        """Tell whether the pod of an open move has been evicted."""
        return is_evicted(move, self.snapshot.pods.is_alive)

    def next_of(self, template: int) -> NextPod | Refused:
        """Give the pod that would replace the first pod of a template."""
        return self.once_of_cluster(("next", template), partial(self._find_next, template))

    def budgets_of(self, row: PodRow) -> tuple[Budget, ...]:
        """Give the PodDisruptionBudgets that select a pod."""
        found = self.snapshot.of(BUDGET).part(row.namespace).read(_compile_all)
        labels = row.labels if found else {}
        return tuple(budget for budget in found if budget.selector.matches(labels))

    @property
    def ledger(self) -> MoveLedger:
        return self.once(("ledger", self.without), self._read_ledger)

    @property
    def pod_counts(self) -> PodCounts:
        """Count the pods that limits in percent are about."""
        return self.once_of_cluster("pod counts", self._count_pods)

    def count_workload(self, namespace: str, workload: WorkloadIdentity) -> int:
        """Count the pods of a workload, as `pod_counts` counts them."""
        workload = self.with_uid(namespace, workload)
        list_owned = partial(self._list_owned, namespace, workload)
        return self.pod_counts.of_workload(namespace, workload, list_owned)

    def with_uid(self, namespace: str, workload: WorkloadIdentity) -> WorkloadIdentity:
        """Give a workload with its uid, if it is cached: of some Deployments only the name is known."""
        found = None if workload.uid else self.find_owner(namespace, workload)
        return msgspec.structs.replace(workload, uid=found.metadata.uid) if found else workload

    def limits_of(self, namespace: str = "", workload: WorkloadIdentity = _NOBODY) -> LimitSettings:
        """Give the limits for moves of a workload, or only of the cluster, with percentages counted out."""
        return self.once(
            ("limits", namespace, workload),
            lambda: count_out(
                self.limits,
                cluster=lambda: self.pod_counts.in_cluster,
                namespace=lambda: self.pod_counts.in_namespace(namespace),
                workload=lambda: self.count_workload(namespace, workload),
            ),
        )

    def spread(self, templates: Iterable[int]) -> Bools:
        """Tell for all pods whether they have one of these templates."""
        chosen = np.zeros(len(self.snapshot.templates.all), np.bool_)
        chosen[list(templates)] = True
        return chosen[self.snapshot.pods.template]

    @property
    def finished(self) -> Bools:
        return self.once_of_cluster("finished", lambda: seal(np.isin(self.snapshot.pods.phase, _FINISHED)))

    @property
    def workload_of(self) -> Indices:
        """Give each template the number of its controller."""
        return self.once_of_cluster("workload of", self._number_workloads)

    @property
    def replicas(self) -> Ints:
        """Count the pods of each controller that are neither terminating nor finished."""
        pods = self.snapshot.pods
        return self.once_of_cluster("replicas", lambda: self._count(~pods.terminating & ~self.finished))

    @property
    def ready_replicas(self) -> Ints:
        """Count the Ready ones among them."""
        pods = self.snapshot.pods
        return self.once_of_cluster(
            "ready", lambda: self._count(pods.ready & ~pods.terminating & ~self.finished)
        )

    def _read_ledger(self) -> MoveLedger:
        ledger = self.snapshot.of(LEDGER).named("", LEDGER_NAME) or start_ledger()
        left = return_debit(ledger, self.without) if self.without else ledger
        return ledger if isinstance(left, Refused) else left

    def _count_pods(self) -> PodCounts:
        return PodCounts({part.namespace: part.read(count_namespace) for part in self.snapshot.of(POD).parts})

    def _list_owned(self, namespace: str, workload: WorkloadIdentity) -> Iterable[str]:
        """List the uids of the controllers that a workload owns."""
        if not workload.uid:
            guessed = self.once_of_cluster(("guessed", namespace), partial(self._list_guessed, namespace))
            return guessed.get(workload, ())
        parts = (self.snapshot.of(kind).part(namespace) for kind in OWNED_CONTROLLERS)
        return chain.from_iterable(part.read(_group_by_owner).get(workload.uid, ()) for part in parts)

    def _list_guessed(self, namespace: str) -> dict[WorkloadIdentity, set[str]]:
        numbers = {self.template(each): each for each in self.snapshot.templates_in(namespace)}
        return list_guessed(numbers, lambda template: self.sign(numbers[template]))

    def _number_workloads(self) -> Indices:
        numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
        parts = self.snapshot.of(POD).parts
        named = chain.from_iterable(part.once("controllers", partial(_name_all, part)) for part in parts)
        size = len(self.snapshot.templates.all)
        return seal(np.fromiter(map(numbers.__getitem__, named), np.int32, size))

    def _count(self, pods: Bools) -> Ints:
        workload = self.workload_of[self.snapshot.pods.template[pods]]
        return seal(np.bincount(workload, minlength=len(self.workload_of)))

    def _sign(self, template: Template) -> Signature | Refused:
        controller, meta = template.controller, template.pod.metadata
        found = self.find_owner(template.namespace, controller) if controller else None
        return find_signature(meta, {found.metadata.uid: found.metadata} if found else {})

    def _find_next(self, template: int) -> NextPod | Refused:
        place = int(self.once_of_cluster("first pods", self._list_first)[template])
        return find_next(self.snapshot, self.row(place))

    def _list_first(self) -> Indices:
        """Give the place of the first pod of each template."""
        column = self.snapshot.pods.template
        first = np.zeros(len(self.snapshot.templates.all), np.int32)
        first[column[::-1]] = np.arange(len(column) - 1, -1, -1, dtype=np.int32)
        return seal(first)

    def _find_root(self, signature: Signature | Refused) -> Workload | None:
        if isinstance(signature, Refused):
            return None
        return self.find_owner(signature.namespace, signature.root)

    def _find_history(self, signature: Signature | Refused) -> EvictionHistory | None:
        histories = self.snapshot.of(HISTORY)
        if isinstance(signature, Refused) or not len(histories):
            return None
        found = histories.named(signature.namespace, name_history(signature.root))
        return found if found and is_history_of(found, signature.root) else None


def _remember(known: dict[Hashable, Any], key: Hashable, find: Callable[[], T]) -> T:
    found: T = known.get(key, _UNKNOWN)
    if found is _UNKNOWN:
        found = known[key] = find()
    return found


def _name_all(part: NamespaceRows[PodRow]) -> list[Hashable]:
    """Give for each template of a namespace what identifies its controller."""
    templates = part.read(read_pods).templates
    return [each.controller.uid if each.controller else each for each in templates]


def _group_by_owner(controllers: tuple[Owner, ...]) -> dict[str, list[str]]:
    """Give the uids of controllers by the uid of their owner."""
    groups = defaultdict[str, list[str]](list)
    for each in controllers:
        owner = find_controller(each.metadata)
        if owner:
            groups[owner.uid].append(each.metadata.uid)
    return groups


def _compile_all(budgets: tuple[PodDisruptionBudget, ...]) -> tuple[Budget, ...]:
    return tuple(Budget(budget, compile_budget(budget)) for budget in budgets)


def compile_budget(budget: PodDisruptionBudget) -> Selector:
    """A selector that does not compile selects nothing in the API server either."""
    try:
        return compile_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
