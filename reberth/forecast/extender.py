"""What Reberth's own extender will answer for a pod: the same memory, the same functions.

kube-scheduler's configuration tells under which paths it calls the extender, and the weight of each. The
answer for a pod that is about to be moved can be forecast as if its move were already in the memory.

kube-scheduler: `pkg/scheduler/schedule_one.go`: `findNodesThatPassExtenders`, `prioritizeNodes`;
`pkg/scheduler/extender.go`: `(*HTTPExtender).Filter`, `(*HTTPExtender).Prioritize`
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec
import numpy as np

from reberth.cluster.columns import Indices, Ints
from reberth.cluster.kinds import HISTORY, JOB, REPLICA_SET, SCORE, Kind
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import IncomingPod
from reberth.forecast.state.profile import ExtenderConfig, KubeScheduler
from reberth.forecast.state.verdict import Refusal
from reberth.forecast.state.view import View
from reberth.memory.addon_scores import MOST_GRADE, Grades, Rows, ScoreSettings
from reberth.memory.advice import (
    ALL_SIGNALS,
    AdviceSettings,
    PodAdvice,
    Ranks,
    advise_pod,
    grade_ranks,
    grade_scores,
    rank_avoiding,
    refuse_nodes,
)
from reberth.memory.backoff import instant
from reberth.memory.destination_draw import Replica, replica_of
from reberth.memory.index import MemoryIndex
from reberth.memory.notes import Note
from reberth.records import ObjectMeta, OpenMove
from reberth.values.timestamp import write_time

AVOID, SCORES = "avoid", "scores"

# The kinds of controllers that may have a controller themselves.
_OWNED: dict[str, Kind[Any, Any]] = {kind.name: kind for kind in (REPLICA_SET, JOB)}
# An extender scores 0..10, and prioritizeNodes multiplies by MaxNodeScore / MaxExtenderPriority = 100 / 10.
# `k8s.io/kube-scheduler/extender/v1/types.go`: `MaxExtenderPriority`
_POINTS_PER_GRADE = 10


class ExtenderForecastSettings(msgspec.Struct, frozen=True):
    """The extender's settings that a forecast depends on; the rest of its file is ignored."""

    FILE_KIND: ClassVar[str] = "ExtenderSettings"

    advice: AdviceSettings = ALL_SIGNALS
    scores: ScoreSettings = ScoreSettings()


DEFAULTS = ExtenderForecastSettings()


@dataclass(frozen=True, eq=False)
class SnapshotMemory:
    """The memory in a snapshot, and the settings that say which signals of it are used."""

    facts: SnapshotFacts
    settings: ExtenderForecastSettings = DEFAULTS

    def advise(self, incoming: IncomingPod) -> PodAdvice:
        now = self.facts.snapshot.now
        return advise_pod(
            self.index,
            _meta_of(incoming, now),
            owners=self._find_owner(incoming),
            replicas=self._find_replicas(incoming),
            now=now,
            settings=self.settings.advice,
        )

    @cached_property
    def index(self) -> MemoryIndex:
        snapshot, index = self.facts.snapshot, MemoryIndex(self.settings.scores)
        index.put_first(zip(snapshot.nodes.records, self.facts.lifecycles, strict=True))
        for history in snapshot.of(HISTORY):
            index.put_history(history)
        for score in snapshot.of(SCORE):
            index.put_score(score)
        return index

    def rank(self, advice: PodAdvice) -> Ranks:
        """Rank all nodes of the snapshot by notes, node lifecycle and open moves."""
        find = partial(rank_avoiding, self.index, advice, self._rows)
        return find() if _is_about_nodes(advice) else self.facts.once(("ranks", self), find)

    def grade(self, advice: PodAdvice) -> Grades:
        """Grade all nodes of the snapshot by add-on scores, less the points lost by bad landings."""
        find = partial(grade_scores, self.index, advice, self._rows)
        weights = tuple(advice.choice.weights.items())
        return find() if _is_about_nodes(advice) else self.facts.once(("grades", self, weights), find)

    @cached_property
    def _rows(self) -> Rows:
        """Give the row of each node of the snapshot."""
        return self.index.locate(self.facts.snapshot.nodes.names)

    def _find_owner(self, incoming: IncomingPod) -> dict[str, ObjectMeta]:
        """Give the controller of a pod from the snapshot if it may have a controller itself."""
        controller = incoming.controller
        kind = _OWNED.get(controller.kind) if controller else None
        if controller is None or kind is None:
            return {}
        found = self.facts.snapshot.of(kind).by_uid(controller.uid, near=incoming.namespace)
        return {controller.uid: found.metadata} if found else {}

    def _find_replicas(self, incoming: IncomingPod) -> dict[str, list[Replica]]:
        """Give the other replicas of the pod's controller if there is an open move to draw them."""
        controller = incoming.controller
        if controller is None or not self.index.moves_of(incoming.namespace, controller.uid):
            return {}
        pods, uid = self.facts.snapshot.pods.rows, controller.uid
        rows = (pods[pod] for pod in self.facts.pods_of(self.facts.templates_of(uid)))
        return {uid: [replica_of(row) for row in rows if row.namespace == incoming.namespace]}


@dataclass(frozen=True, eq=False)
class ReberthExtender:
    """One path of Reberth's extender, as kube-scheduler calls it."""

    memory: SnapshotMemory
    path: str
    refuses: bool
    weight: int
    move: OpenMove | None = None

    def moving(self, move: OpenMove) -> "ReberthExtender":
        """Answer as if this move were open: it draws the pod to its destinations, and its source is noted."""
        return replace(self, move=move)

    def filter(self, incoming: IncomingPod, view: View, nodes: Indices) -> Sequence[Refusal]:
        if not self.refuses or self.path != AVOID:
            return ()
        advice, names = self._advise(incoming), view.nodes.names
        if not advice.strictly_noted:
            return ()
        refused = refuse_nodes(advice, [names[node] for node in nodes.tolist()])
        numbers = np.arange(view.facts.size)
        return [
            Refusal(why.reason, numbers == view.nodes.index[name], final=True)
            for name, why in refused.items()
        ]

    def prioritize(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:
        del view
        if not self.weight:
            return np.zeros(len(nodes), np.int64)
        if self.path == AVOID:
            grades = grade_ranks(self.memory.rank(self._advise(incoming)).take(nodes))
        else:
            grades = self.memory.grade(self._advise(incoming)).take(nodes)
        return np.multiply(grades, self.weight * _POINTS_PER_GRADE, dtype=np.int64)

    def rank(self, incoming: IncomingPod, view: View, nodes: Indices) -> Ints:
        if self.path != AVOID or not self.weight:
            return self.prioritize(incoming, view, nodes)
        ranks = self.memory.rank(self._advise(incoming)).take(nodes)
        return ranks.astype(np.int64) * MOST_GRADE * self.weight * _POINTS_PER_GRADE

    def _advise(self, incoming: IncomingPod) -> PodAdvice:
        advice = self.memory.advise(incoming)
        if self.move is None:
            return advice
        noted = {**advice.noted, self.move.from_: (_note_of(self.move),)}
        return msgspec.structs.replace(advice, drawn_by=self.move, noted=noted)


def find_reberth_extenders(scheduler: KubeScheduler, memory: SnapshotMemory) -> tuple[ReberthExtender, ...]:
    """Find Reberth's extenders in the scheduler's configuration, by the path of their URL."""
    found = [(_path_of(extender), extender) for extender in scheduler.extenders]
    return tuple(
        ReberthExtender(
            memory, path, bool(extender.filter_verb), extender.weight if extender.prioritize_verb else 0
        )
        for path, extender in found
        if path in {AVOID, SCORES}
    )


def asks_reberth(scheduler: KubeScheduler) -> bool:
    """Tell whether the scheduler calls Reberth's extender."""
    return any(_path_of(each) in {AVOID, SCORES} for each in scheduler.extenders)


def list_other_extenders(scheduler: KubeScheduler) -> list[str]:
    """List the other extenders: their answers cannot be forecast."""
    return [each.url_prefix for each in scheduler.extenders if _path_of(each) not in {AVOID, SCORES}]


def _path_of(extender: ExtenderConfig) -> str:
    return urlsplit(extender.url_prefix).path.strip("/")


def _meta_of(incoming: IncomingPod, now: float) -> ObjectMeta:
    """Give the metadata that the extender reads of a pod; an expected pod is created now."""
    row = incoming.row
    meta = incoming.template.pod.metadata
    return ObjectMeta(
        name=incoming.name,
        namespace=incoming.namespace,
        uid="" if incoming.is_expected else incoming.uid,
        creation_timestamp=write_time(now if incoming.is_expected else row.created),
        resource_version="" if incoming.is_expected else str(row.version),
        labels=incoming.labels,
        annotations=row.annotations,
        owner_references=meta.owner_references,
    )


def _is_about_nodes(advice: PodAdvice) -> bool:
    """Tell whether the memory holds anything that is not the same for every pod."""
    return bool(advice.drawn_by or advice.noted or advice.losses)


def _note_of(move: OpenMove) -> Note:
    planned = instant(move.planned_at)
    return Note(
        b"",
        controller_uid=move.controller_uid,
        evicted_at=planned,
        holds_from=planned,
        expires_at=instant(move.expires_at),
        reason=move.reason,
    )
