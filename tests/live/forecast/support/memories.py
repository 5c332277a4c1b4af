"""Random shared memory for a case: notes, open and past moves, scores of add-ons.

In some cases an entry expires soon after it was written.
"""

import json
import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from reberth.cluster.pods.identity import Signature, find_signature, name_history
from reberth.memory.notes import FOREIGN_LIFE, compose_note
from reberth.records import REBERTH_API_VERSION, ObjectMeta, Outcome, Phase, WorkloadIdentity
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time, write_time
from tests.support.forecast.cases.dice import Dice, Object

_LONG = 900.0
_BRIEF = 3.0
_OTHER = "another-uid"
_EVERYWHERE = 9
"""So rarely does a case have notes on nearly all its nodes."""


class Memories(NamedTuple):
    """What is to be written; `turning` is the instant at which some of it ends."""

    annotations: dict[str, str]
    histories: list[Object]
    scores: list[Object]
    turning: float | None


def sign_all(objects: Sequence[Object]) -> dict[str, Signature | Refused]:
    """Tell of every pod, by namespace and name, who it is."""
    owners = {uid_of(one): _meta_of(one) for one in objects if one["kind"] in {"ReplicaSet", "Job"}}
    pods = [_meta_of(one) for one in objects if one["kind"] == "Pod"]
    return {f"{pod.namespace}/{pod.name}": find_signature(pod, owners) for pod in pods}


def uid_of(one: Object) -> str:
    uid: str = one["metadata"]["uid"]
    return uid


def make_memories(seed: int, objects: Sequence[Object], now: float) -> Memories:
    return _Remembering(Dice(-1000 - seed), seed, objects, now).make()


class _Remembering:
    """The hand that draws what is remembered."""

    def __init__(self, dice: Dice, seed: int, objects: Sequence[Object], now: float) -> None:
        self.dice = dice
        self.seed = seed
        self.now = now
        self.turning = float(math.ceil(now + _BRIEF)) if dice.chance(0.3) else None
        self.nodes = sorted(one["metadata"]["name"] for one in objects if one["kind"] == "Node")
        self.pods = [one for one in objects if one["kind"] == "Pod"]
        known = sign_all(objects)
        self.of_probes = _only_known(who for pod, who in sorted(known.items()) if "-probe-" in pod)
        others = _only_known(who for _, who in sorted(known.items()))
        self.workloads = list(dict.fromkeys([*self.of_probes, *others]))

    def make(self) -> Memories:
        if not self.workloads:
            return Memories({}, [], self._make_scores(), self.turning)
        annotations = {node: text for node in self.nodes if (text := self._annotate())}
        return Memories(annotations, self._make_histories(), self._make_scores(), self.turning)

    def _ends_at(self) -> float:
        """Draw the end of something: mostly far away, or past, or that of the case."""
        ends = {self.now + _LONG: 6, self.now - 60.0: 1}
        return self.dice.weighed({**ends, self.turning: 6} if self.turning else ends)

    def _annotate(self) -> str | None:
        likely = 2.0 if self.seed % _EVERYWHERE == 0 else 0.4
        entries = [self._note(who) for who in self.of_probes if self.dice.often("notes", likely)]
        entries += [self._note(who) for who in self.workloads if self.dice.chance(0.05)]
        entries += [
            self._foreign_note(who) for who in self.of_probes if self.dice.often("foreign notes", 0.15)
        ]
        if self.dice.chance(0.05):
            entries.append({"podSignature": {"podController": _refer(_OTHER)}})
        return json.dumps({"preferAvoidPods": entries}) if entries else None

    def _note(self, who: Signature) -> Object:
        """Draw a note of ours: of a template or a service, strict or not; or of an earlier service."""
        dice = self.dice
        if dice.chance(0.08):
            root = msgspec.structs.replace(who.root, uid=_OTHER)
            who = Signature(who.namespace, WorkloadIdentity("apps/v1", "ReplicaSet", "x", _OTHER), root)
        note = compose_note(
            who,
            f"m-{dice.randint(0, 10**9)}",
            policy="test",
            reason="tested",
            now=self.now,
            life=self._ends_at() - self.now,
            for_service=dice.chance(0.4),
            strict=dice.often("strict notes", 0.3),
        )
        entry: Object = json.loads(note.text)
        return entry

    def _foreign_note(self, who: Signature) -> Object:
        """Draw one that holds, is over, is from too far in the future, or ends with what else ends."""
        ends = [self.now + 3000.0, self.now - 400.0, self.now + 3 * FOREIGN_LIFE]
        ends += [self.turning] if self.turning else []
        return {
            "podSignature": {"podController": _refer(who.controller.uid, who.controller.kind)},
            "evictionTime": write_time(self.dice.choice(ends) - FOREIGN_LIFE),
            "reason": "foreign",
        }

    def _make_histories(self) -> list[Object]:
        by_root = sorted(self.workloads, key=_root_of)
        groups = [list(group) for _, group in groupby(by_root, key=_root_of)]
        return [self._make_history(group) for group in groups if self.dice.often("histories", 0.9)]

    def _make_history(self, group: list[Signature]) -> Object:
        dice, root = self.dice, group[0].root
        uid = _OTHER if dice.chance(0.08) else root.uid
        named = {"apiVersion": root.api_version, "kind": root.kind, "name": root.name, "uid": uid}
        workload = {key: value for key, value in named.items() if value}
        count = dice.weighed({0: 2, 1: 4, 2: 2, 4: 1})
        opened = [self._open_move(dice.choice(group)) for _ in range(count)]
        past = [self._past_move() for _ in range(dice.weighed({0: 3, 1: 2, 3: 2, 8: 1}))]
        return {
            "apiVersion": REBERTH_API_VERSION,
            "kind": "EvictionHistory",
            "metadata": {"name": name_history(root), "namespace": group[0].namespace},
            "spec": {"workload": workload},
            "status": {"open": opened, "past": past},
        }

    def _open_move(self, who: Signature) -> Object:
        """Draw a move that is planned for now, was planned long ago, or after all pods were there."""
        dice = self.dice
        expires = self._ends_at()
        planned = min(self.now + dice.weighed({-300.0: 1, -1.0: 1, 0.25: 1, 30.0: 4}), expires - 30.0)
        phase = dice.weighed({Phase.NOTED: 4, Phase.EVICTED: 4, Phase.PLANNED: 1})
        evicted = {"evictedAt": write_micro_time(planned)} if phase == Phase.EVICTED else {}
        moved = self._moved_pod(who)
        return {
            "id": f"m-{dice.randint(0, 10**9)}",
            "pod": moved["metadata"]["name"],
            "podUID": uid_of(moved),
            "controllerUID": who.controller.uid if dice.chance(0.95) else _OTHER,
            "from": dice.choice(self.nodes),
            "destinations": self._destinations(),
            "policy": "test",
            "reason": "tested",
            "phase": phase.value,
            "plannedAt": write_micro_time(planned),
            "expiresAt": write_time(expires),
            **evicted,
        }

    def _moved_pod(self, who: Signature) -> Object:
        """Give a pod of that controller if one is bound, which may be the moved one itself."""
        bound = [pod for pod in self.pods if pod["spec"].get("nodeName") and _is_of(pod, who)]
        return self.dice.choice(bound or self.pods)

    def _destinations(self) -> list[str]:
        picked = self.dice.several(self.nodes, 0 if self.dice.chance(0.1) else 2, 6)
        return ["gone", *picked] if self.dice.chance(0.15) else picked

    def _past_move(self) -> Object:
        dice = self.dice
        closed = self.now - dice.choice([5.0, 1800.0, 4 * 3600.0, 9 * 3600.0, 40 * 3600.0])
        bad = {Outcome.WORSE: 3, Outcome.RETURNED: 3}
        outcome = dice.weighed({**bad, Outcome.BETTER: 1, Outcome.PENDING: 1, Outcome.UNKNOWN: 1})
        landed = {"landedOn": dice.choice(self.nodes)} if outcome != Outcome.PENDING else {}
        return {
            "id": f"p-{dice.randint(0, 10**9)}",
            "pod": "gone",
            "podUID": "gone",
            "from": dice.choice(self.nodes),
            "outcome": outcome.value,
            "evictedAt": write_micro_time(closed - 60.0),
            "closedAt": write_micro_time(closed),
            **landed,
        }

    def _make_scores(self) -> list[Object]:
        dice = self.dice
        sources = ("load", "load", "power", "unknown")
        pairs = [(node, source, number) for node in self.nodes for number, source in enumerate(sources)]
        return [self._score(*pair) for pair in pairs if dice.often(f"scores {pair[2]}", 0.5)]

    def _score(self, node: str, source: str, number: int) -> Object:
        dice = self.dice
        values = {name: dice.randint(-100, 100) for name in dice.some(["cpu", "memory", "green", "x"], 0.7)}
        ends = self._ends_at() if dice.chance(0.6) else None
        return score(f"{source}-{number}-{node}", node, source, values, valid_until=ends)


def score(
    name: str, node: str, source: str, values: dict[str, int], *, valid_until: float | None = None
) -> Object:
    status: Object = {"scores": [{"name": key, "value": value} for key, value in values.items()]}
    if valid_until is not None:
        status["validUntil"] = write_micro_time(valid_until)
    return {
        "apiVersion": REBERTH_API_VERSION,
        "kind": "NodePlacementScore",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "source": source},
        "status": status,
    }


def _only_known(found: Iterable[Signature | Refused]) -> list[Signature]:
    return list(dict.fromkeys(who for who in found if isinstance(who, Signature)))


def _meta_of(one: Object) -> ObjectMeta:
    return msgspec.convert(one["metadata"], ObjectMeta)


def _root_of(who: Signature) -> tuple[str, str]:
    return who.namespace, name_history(who.root)


def _is_of(pod: Object, who: Signature) -> bool:
    references = pod["metadata"].get("ownerReferences", ())
    return any(reference["uid"] == who.controller.uid for reference in references)


def _refer(uid: str, kind: str = "ReplicaSet") -> Object:
    return {"apiVersion": "apps/v1", "kind": kind, "name": "any", "uid": uid, "controller": True}
