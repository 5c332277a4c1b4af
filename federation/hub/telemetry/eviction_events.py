"""Events of evictions, on the binding and on its template: begun, ended, withdrawn, failed.

The reasons of an end and of a failure are Karmada's. A conflict is no failure: the eviction is looked at
again at once, with what was written in between.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from federation.api import GracefulEvictionTask, ResourceBinding
from federation.hub.hub import Hub, refer_to
from federation.hub.telemetry.step_events import refer_to_template
from federation.objects.names import Key
from reberth.client.events import NORMAL, WARNING
from reberth.values.errors import ApiError, Conflict

_STARTED, _WITHDRAWN = "EvictWorkloadFromClusterStarted", "EvictWorkloadFromClusterWithdrawn"
_SUCCEEDED, _FAILED = "EvictWorkloadFromClusterSucceed", "EvictWorkloadFromClusterFailed"
_ACTION = "Evicting"


def tell_begun(hub: Hub, key: Key, before: ResourceBinding, written: ResourceBinding) -> None:
    """Tell of the tasks that this write has added."""
    known = {each.from_cluster for each in before.spec.graceful_eviction_tasks or ()}
    for task in written.spec.graceful_eviction_tasks or ():
        if task.from_cluster not in known:
            why = f": {task.message.removesuffix('.')}" if task.message else ""
            _record(hub, key, written, _STARTED, f"Evict from cluster {task.from_cluster} started{why}.")


def tell_ended(hub: Hub, key: Key, binding: ResourceBinding, tasks: Iterable[GracefulEvictionTask]) -> None:
    for task in tasks:
        _record(hub, key, binding, _SUCCEEDED, f"Evict from cluster {task.from_cluster} succeed.")


def tell_withdrawn(
    hub: Hub, key: Key, binding: ResourceBinding, tasks: Iterable[GracefulEvictionTask]
) -> None:
    for task in tasks:
        cluster = task.from_cluster
        note = f"The cause to evict from cluster {cluster} is gone; the eviction is withdrawn."
        _record(hub, key, binding, _WITHDRAWN, note)


@contextmanager
def telling_failure(
    hub: Hub, key: Key, binding: ResourceBinding, tasks: Iterable[GracefulEvictionTask]
) -> Iterator[None]:
    """Tell that the tasks could not be written, if the API server refuses or does not answer."""
    try:
        yield
    except Conflict:
        raise
    except ApiError as error:
        for task in tasks:
            note = f"Evict from cluster {task.from_cluster} failed: {error.message}"
            _record(hub, key, binding, _FAILED, note, kind=WARNING)
        raise


def _record(
    hub: Hub, key: Key, binding: ResourceBinding, reason: str, note: str, *, kind: str = NORMAL
) -> None:
    for regarding in (refer_to(key, binding.metadata), refer_to_template(binding)):
        hub.recorder.record(regarding, reason=reason, note=note, action=_ACTION, kind=kind)
