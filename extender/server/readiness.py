"""Whether the extender is ready, and how fresh its caches are."""

from collections.abc import Callable, Iterable, Iterator

from extender.answers.call_tracker import CallTracker
from extender.answers.freshness import MirrorState
from extender.answers.verbs import VERBS, Kinds
from extender.server.settings import ExtenderSettings
from reberth.client.mirror import Mirror
from reberth.runtime.http_server import Check


class Readiness:
    """Ready once all needed kinds are listed, and from then on: stale caches make answers neutral."""

    def __init__(
        self,
        mirror: Mirror,
        call_tracker: CallTracker,
        *,
        settings: Callable[[], ExtenderSettings],
        settings_remarks: Callable[[], Iterable[str]],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._settings_remarks = settings_remarks
        self._call_tracker = call_tracker
        self._is_stopping = is_stopping
        self._watchers = {watcher.resource.kind: watcher for watcher in mirror.watchers.values()}

    def mirror_states(self, kinds: Kinds) -> list[MirrorState]:
        """Give the state of the caches whose watch has trouble; a kind that was never listed has."""
        watchers = [self._watchers[kind] for kind in kinds if self._watchers[kind].trouble is not None]
        return [MirrorState(watcher.is_synced, watcher.trouble, watcher.age) for watcher in watchers]

    def checks(self) -> dict[str, Check]:
        return {"process": self._check_running, "mirrors": self._check_synced}

    def remarks(self) -> Iterator[str]:
        """List the age and trouble of each cache, settings not in use, and missing calls of the scheduler."""
        for watcher in sorted(self._watchers.values(), key=lambda watcher: watcher.resource.name):
            age = f"confirmed {watcher.age:.1f} s ago" if watcher.is_synced else "never listed"
            trouble = f", {watcher.trouble}" if watcher.trouble else ""
            yield f"# {watcher.resource.name}: {age}{trouble}"
        for remark in self._settings_remarks():
            yield f"# {remark}"
        settings = self._settings()
        for warning in self._call_tracker.warnings(settings.attention, parts=_expected(settings)):
            yield f"# warning: {warning}"

    def _check_running(self) -> str | None:
        return "stopping" if self._is_stopping() else None

    def _check_synced(self) -> str | None:
        needed = set().union(*(verb.needs(self._settings()) for verb in VERBS))
        missing = [self._watchers[kind] for kind in needed if not self._watchers[kind].is_synced]
        return "; ".join(sorted(f"{one.resource.name}: {one.trouble}" for one in missing)) or None


def _expected(settings: ExtenderSettings) -> list[str]:
    """Give the parts that the scheduler should call: /scores only if a score counts."""
    return ["avoid", "scores"] if settings.scores.scores else ["avoid"]
