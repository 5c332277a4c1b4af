"""Pods of copies that kube-scheduler finds no node for, as a member's cache has them, and why they get none.

Only those of Deployments: the replicas of a StatefulSet are not alike. A pod with a scheduling gate is not
meant to have a node yet.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache, partial

from federation.hub.hub import Hub
from federation.hub.sessions import Session
from federation.objects import resources
from federation.objects.health import is_rolling_out
from federation.objects.names import Key, namespace_of_works
from federation.objects.template import ResourceTemplate, read_whole
from federation.propagation.work_sync import key_of_manifest, list_manifests, work_of
from reberth.cluster.kinds import POD
from reberth.cluster.pods.requests import NEWEST
from reberth.cluster.rows import PodRow
from reberth.cluster.snapshot import take
from reberth.forecast.forecast import Forecast, forecast
from reberth.forecast.state.facts import SnapshotFacts
from reberth.forecast.state.incoming_pod import read_pending_pod
from reberth.forecast.state.profile import default_scheduler
from reberth.forecast.state.view import view_snapshot

Place = tuple[str, str]
"""Namespace and name of a Work."""
_DEPLOYMENTS = next(each for each in resources.TEMPLATES if each.kind.name == "Deployment")
_GONE = "they are gone by now."
_HAS_VOLUMES = "kube-scheduler finds none; they have volumes, which are not watched in members."
_MAY_RUN = "kube-scheduler has found none, but there is one by now."


def list_pending(hub: Hub, cluster: str, session: Session) -> dict[Place, list[PodRow]]:
    """List the pods of a member that have no node, by the Work of their copy."""
    found: defaultdict[Place, list[PodRow]] = defaultdict(list)
    has_copy = cache(partial(_has_manifest, hub))
    for row in session.cache.of(POD).rows():
        copy = _find_copy(session, row) if _is_pending(row) else None
        place = work_of(copy.metadata) if copy else None
        # Whoever writes in a member may write any annotation: only the Work itself says what is its copy.
        if copy and place and place[0] == namespace_of_works(cluster) and has_copy(place, _key_of(copy)):
            found[place].append(row)
    return dict(found)


def explain_pending(session: Session, row: PodRow, *, now: float) -> str:
    """Say why it has no node, as the forecast for kube-scheduler with its default settings has it."""
    if any(each.persistent_volume_claim for each in row.spec.volumes or ()):
        return _HAS_VOLUMES
    facts = SnapshotFacts(take(session.cache, now=now), NEWEST)
    place = facts.snapshot.pods.named(row.namespace, row.name)
    if place is None:
        return _GONE
    found = forecast(read_pending_pod(facts, place), view_snapshot(facts), default_scheduler(NEWEST))
    return _sum_up(found) if isinstance(found, Forecast) else f"{found.reason}."


def is_rolled_out(session: Session, rows: Iterable[PodRow]) -> bool:
    """Tell whether a new version of their copy is being rolled out: its pods come and go."""
    copies = {_key_of(copy): copy for row in rows if (copy := _find_copy(session, row))}
    return any(
        is_rolling_out(key.api_version, key.kind, read_whole(key, copy)) for key, copy in copies.items()
    )


def _sum_up(found: Forecast) -> str:
    if found.rejected:
        return f"{found.rejected}."
    if len(found.feasible):
        return _MAY_RUN
    counts: Counter[str] = Counter()
    for each in found.refusals:
        counts[each.reason] += int(each.nodes.sum())
    why = ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items()))
    return f"no node of the cluster is available: {why or 'it has none'}."


def _is_pending(row: PodRow) -> bool:
    is_waiting = row.node is None and not row.is_finished and not row.is_terminating
    return is_waiting and row.problems is not None and row.problems.unscheduled == "Unschedulable"


def _key_of(copy: ResourceTemplate) -> Key:
    meta = copy.metadata
    return Key(_DEPLOYMENTS.api_version, _DEPLOYMENTS.kind.name, meta.namespace, meta.name)


def _has_manifest(hub: Hub, place: Place, copy: Key) -> bool:
    work = hub.find(resources.WORKS, *place)
    return work is not None and any(each and key_of_manifest(each) == copy for each in list_manifests(work))


def _find_copy(session: Session, row: PodRow) -> ResourceTemplate | None:
    """Find the Deployment of a pod: ReplicaSets, which stand between them, are not watched in members."""
    controller = row.template.controller
    if controller is None or controller.kind != "ReplicaSet":
        return None
    copy = session.find(_DEPLOYMENTS, row.namespace, controller.name.rpartition("-")[0])
    spec = copy.part("spec") if copy else None
    selector = spec.get("selector", {}) if isinstance(spec, dict) else {}
    return copy if (selector.get("matchLabels") or {}).items() <= row.labels.items() else None
