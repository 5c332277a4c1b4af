"""Which moves were refused a short time ago and are not tried again yet: the rule `RefusedBefore`.

The refusals stand in the eviction histories, and in the memory of the process until the cache has seen them.
A refusal by a webhook that fails, a node, a namespace or the API server concerns other workloads too: they
all wait until the latest end that any of them knows, and when it has come one move asks again, not all.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reberth.cluster.kinds import HISTORY
from reberth.memory.backoff import instant
from reberth.memory.refusals import list_living
from reberth.records import EvictionHistory, OpenMove, RememberedRefusal
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_time
from rescheduler.budgets.allowances import Charge
from rescheduler.model.refusal_memory import KnownRefusal, RefusalMemory, WorkloadName
from rescheduler.model.refusal_scopes import SHARED, Scope, find_scope
from rescheduler.model.standing import Standing, judge_standing
from rescheduler.observe.rule_context import RuleContext

_RULE = "RefusedBefore"
_RATE = "RefusalRate"
_Place = tuple[Scope, str]


class Shared(NamedTuple):
    """A refusal that concerns several workloads, as the one knows it that was refused last."""

    last: RememberedRefusal
    times: int  # in a row
    until: float


@dataclass(frozen=True, eq=False)
class KnownRefusals:
    """All refusals: of each workload, and those that concern several; some are being asked again now."""

    own: Mapping[WorkloadName, tuple[RememberedRefusal, ...]] = field(default_factory=dict)
    shared: Mapping[_Place, Shared] = field(default_factory=dict)
    asking: frozenset[_Place] = frozenset()


def collect_refusals(
    histories: Iterable[EvictionHistory],
    memory: RefusalMemory,
    now: float,
    *,
    is_evicted: Callable[[OpenMove], bool] = lambda _: False,
) -> KnownRefusals:
    """Put together what histories and memory say, without what is forgotten or disproved.

    `is_evicted` tells of open moves whether they still ask.
    """
    found = list(histories)
    written = (one for each in found if each.status.refused for one in _list_known(each))
    told = (*(one for one in written if one not in memory.disproved), *memory.known)
    newest: dict[tuple[WorkloadName, str, str], RememberedRefusal] = {}
    for workload, one in told:
        place = workload, one.rule, one.key
        before = newest.get(place)
        is_newer = before is None or instant(before.refused_at) < instant(one.refused_at)
        if is_newer and list_living([one], now):
            newest[place] = one
    if not newest:
        return _NONE
    known = _drop_disproved([KnownRefusal(place[0], one) for place, one in newest.items()], found, memory)
    own: defaultdict[WorkloadName, list[RememberedRefusal]] = defaultdict(list)
    for workload, one in known:
        own[workload].append(one)
    shared = dict(_share(known))
    return KnownRefusals(
        {workload: tuple(kept) for workload, kept in own.items()},
        shared,
        frozenset(_find_asking(found, shared, own, is_evicted)),
    )


def refuse_before(place: int, context: RuleContext) -> Refused | None:
    """Refuse a move that, or whose like, was refused and is not due to be tried again."""
    waiting = [one for one in _list_concerning(place, context) if one.until > context.now]
    if not waiting:
        return None
    last, times, until = max(waiting, key=lambda one: one.until)
    about = f" ({last.key})" if find_scope(last.rule) in SHARED and last.key else ""
    often = f"{times} times in a row" if times > 1 else "once"
    said = f"{last.rule}{about} has refused such a move {often}: it is not tried before {write_time(until)}"
    return Refused(_RULE, f"{said}; {last.reason}", until)


def list_waiting(context: RuleContext) -> list[RememberedRefusal]:
    """List the refusals because of which moves are not tried now; one that several share counts once."""
    known = _know(context)
    own = [one for each in known.own.values() for one in each if find_scope(one.rule) not in SHARED]
    waiting = [one for one in own if instant(one.until) > context.now]
    return [*waiting, *(each.last for each in known.shared.values() if each.until > context.now)]


def charge_try(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a move that may be refused to the tries that are left.

    Of those that were refused before one is planned; of unknown ones any number, since most will be granted.
    """
    memory = context.refusals
    if memory is None:
        return
    history = context.history(context.template_of(place))
    granted = memory.granted.get(_name_workload(place, context), -math.inf)
    standing = judge_standing(
        history, _list_own(place, context, _know(context)), context.now, granted=granted
    )
    most = 1.0 if standing is Standing.REFUSED else math.inf
    left = most if memory.left.has_for(standing) else 0.0
    yield Charge(_RATE, (_RATE, standing), left, f"refusals of the last minute: {standing.value}")


def charge_asking(place: int, context: RuleContext) -> Iterator[Charge]:
    """Charge a move that asks again what concerns several workloads: one of them asks at a time."""
    known = _know(context)
    for where in _list_shared_places(place, context, known):
        last = known.shared[where].last
        left = 0 if where in known.asking else 1
        yield Charge(_RULE, (_RULE, where), left, f"{last.rule} {last.key}: one move asks it again at a time")


def _list_concerning(place: int, context: RuleContext) -> Iterator[Shared]:
    known = _know(context)
    for where in _list_shared_places(place, context, known):
        yield known.shared[where]
    uid = context.row(place).uid
    for one in _list_own(place, context, known):
        scope = find_scope(one.rule)
        if scope is Scope.WORKLOAD or (scope is Scope.POD and one.key == uid):
            yield Shared(one, one.count, instant(one.until))


def _list_shared_places(place: int, context: RuleContext, known: KnownRefusals) -> Iterator[_Place]:
    """List the shared refusals that concern a pod: of a webhook only if it has met its own workload."""
    if not known.shared:
        return
    row = context.row(place)
    met = {one.key for one in _list_own(place, context, known) if find_scope(one.rule) is Scope.WEBHOOK}
    places = (
        (Scope.EVERYTHING, ""),
        (Scope.NAMESPACE, row.namespace),
        (Scope.NODE, row.node or ""),
        *((Scope.WEBHOOK, name) for name in sorted(met)),
    )
    yield from (where for where in places if where in known.shared)


def _list_own(place: int, context: RuleContext, known: KnownRefusals) -> tuple[RememberedRefusal, ...]:
    return known.own.get(_name_workload(place, context), ())


def _name_workload(place: int, context: RuleContext) -> WorkloadName:
    root = context.identify(place)
    return WorkloadName(context.row(place).namespace, f"{root.kind}/{root.name}")


def _know(context: RuleContext) -> KnownRefusals:
    memory = context.refusals
    if memory is None:
        return _NONE
    histories = context.snapshot.of(HISTORY)
    return context.once(
        _RULE, lambda: collect_refusals(histories, memory, context.now, is_evicted=context.is_evicted)
    )


def _list_known(history: EvictionHistory) -> Iterator[KnownRefusal]:
    for one in history.status.refused or ():
        yield KnownRefusal(_name(history), one)


def _name(history: EvictionHistory) -> WorkloadName:
    workload = history.spec.workload
    return WorkloadName(history.metadata.namespace, f"{workload.kind}/{workload.name}")


def _share(known: Iterable[KnownRefusal]) -> Iterator[tuple[_Place, Shared]]:
    groups: defaultdict[_Place, list[RememberedRefusal]] = defaultdict(list)
    for _, one in known:
        if find_scope(one.rule) in SHARED:
            groups[_locate(one)].append(one)
    for where, group in groups.items():
        last = max(group, key=lambda one: (instant(one.refused_at), one.rule))
        count = max(one.count for one in group if one.rule == last.rule)
        yield where, Shared(last, count, max(instant(one.until) for one in group))


def _locate(one: RememberedRefusal) -> _Place:
    return find_scope(one.rule), one.key


def _drop_disproved(
    known: list[KnownRefusal], histories: list[EvictionHistory], memory: RefusalMemory
) -> list[KnownRefusal]:
    """Drop what an eviction was granted against that came later, of whatever workload it was.

    An eviction that was granted shows that evictions are granted at all, and in its namespace. A webhook is
    known to stand before the workloads that have met it, so only those tell that it has answered.
    """
    wide = (Scope.EVERYTHING, Scope.NAMESPACE)
    if not any(find_scope(one.rule) in (*wide, Scope.WEBHOOK) for _, one in known):
        return known
    granted: defaultdict[str, float] = defaultdict(float)
    for workload, time in memory.granted.items():
        granted[workload.namespace] = max(granted[workload.namespace], time)
    for history in histories:
        opened, past = history.status.open or (), history.status.past or ()
        times = [*(instant(one.evicted_at) for one in opened), *(instant(one.evicted_at) for one in past)]
        granted[history.metadata.namespace] = max(granted[history.metadata.namespace], *times, 0.0)
    anywhere = max(granted.values(), default=0.0)
    ends: Mapping[Scope, Callable[[str], float]] = {
        Scope.EVERYTHING: lambda _: anywhere,
        Scope.NAMESPACE: lambda key: granted[key],
        Scope.WEBHOOK: lambda key: memory.answered.get(key, 0.0),
    }
    return [
        each
        for each in known
        if (find := ends.get(find_scope(each.refusal.rule))) is None
        or find(each.refusal.key) <= instant(each.refusal.refused_at)
    ]


def _find_asking(
    histories: Iterable[EvictionHistory],
    shared: Mapping[_Place, Shared],
    own: Mapping[WorkloadName, list[RememberedRefusal]],
    is_evicted: Callable[[OpenMove], bool],
) -> Iterator[_Place]:
    """Find the shared refusals that a move asks again at this moment: begun, and not evicted yet."""
    if not shared:
        return
    for history in histories:
        moves = [move for move in history.status.open or () if not is_evicted(move)]
        met = {(Scope.WEBHOOK, one.key) for one in own.get(_name(history), ())}
        for move in moves:
            yield from {
                (Scope.EVERYTHING, ""),
                (Scope.NAMESPACE, history.metadata.namespace),
                (Scope.NODE, move.from_),
                *met,
            }


_NONE = KnownRefusals()
