"""Files that may change while a daemon runs: their last valid content stays in use.

Each poll hashes the whole content of a file. That detects a mounted ConfigMap or Secret whose symbolic links
the kubelet swaps, and an editor that replaces the file or writes into it, on any file system. A change is
loaded once two polls in a row agree, so that a half-written file is not mistaken for an invalid one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

import msgspec

from reberth.config.settings import kind_of, load, yaml_name
from reberth.records import REBERTH_API_VERSION
from reberth.runtime import logs, metrics
from reberth.runtime.faults import FAULTS
from reberth.values.errors import FieldFault, SettingsError
from reberth.values.refusal import describe_fault

LOOK_INTERVAL = 1.0  # seconds

S = TypeVar("S", bound=msgspec.Struct)

log = logs.Log(__name__)


def look(paths: Sequence[Path]) -> list[str]:
    """Give a hash of each file's content, or the reason why it cannot be read."""
    return [_look_at(path) for path in paths]


def _look_at(path: Path) -> str:
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        return str(error)


async def follow(
    paths: Sequence[Path],
    reload: Callable[[], Awaitable[None]],
    *,
    seen: list[str],
    interval: float = LOOK_INTERVAL,
) -> NoReturn:
    """Call `reload` whenever the content of the files changes.

    Runs until cancelled, which is safe at any moment; a running reload is cancelled with it.
    """
    last = seen
    while True:
        await asyncio.sleep(interval)
        found = await asyncio.to_thread(look, paths)
        if found == last != seen:
            seen = found
            await reload()
        last = found


class LiveSettings(Generic[S]):
    """Settings that follow their file; if it is invalid, that is logged and the last valid ones stay.

    The process uses the `restarting` fields only at its start: a change of them waits for a restart.
    Opening the settings raises a SettingsError if the file is invalid from the start.
    """

    def __init__(
        self,
        path: Path,
        kind: type[S],
        *,
        api_version: str = REBERTH_API_VERSION,
        restarting: Sequence[str] = (),
        on_change: Callable[[S], None] = lambda _: None,
        on_refusal: Callable[[SettingsError], None] = lambda _: None,
    ) -> None:
        self._path = path
        self._load = partial(load, path, kind, api_version=api_version)
        self._name = kind_of(kind)
        self._restarting = {field: yaml_name(kind, field) for field in restarting}
        self._on_change = on_change
        self._on_refusal = on_refusal
        # Hashed before it is read: a write in between counts as a change.
        self._seen = look([path])
        self.first = self.current = self._load()
        self.refusal: SettingsError | None = None
        """Why the current content of the file is not in use."""
        metrics.SETTINGS_RELOAD_FAILURES.labels(self._name)  # exports 0 before the first failure
        self._record_valid()

    @property
    def awaiting_restart(self) -> list[str]:
        """The fields, as they are named in the file, whose change is not in use before a restart."""
        fields = self._restarting.items()
        return [name for field, name in fields if getattr(self.current, field) != getattr(self.first, field)]

    def list_remarks(self) -> Iterator[str]:
        """Tell what of the file is not in use: all of it because it is refused, or some fields."""
        if self.refusal:
            yield f"refused, the last valid version stays in force: {self.refusal}"
        if waiting := self.awaiting_restart:
            yield f"restart needed for changed fields of {self._path}: {', '.join(waiting)}"

    async def follow(self, interval: float = LOOK_INTERVAL) -> NoReturn:
        """Load every valid change of the file and call `on_change` if the settings differ.

        Runs until cancelled, which is safe at any moment: the settings are the old ones or the new ones.
        """
        await follow([self._path], self._reload, seen=self._seen, interval=interval)

    async def _reload(self) -> None:
        try:
            fresh = await asyncio.to_thread(self._load)
        except SettingsError as refusal:
            self._refuse(refusal)
        except Exception as error:  # noqa: BLE001 - it is about this content, and is logged
            fault = describe_fault(error)
            FAULTS.note("settings", str(self._path), fault, error=error)
            self._refuse(SettingsError(str(self._path), [FieldFault(fault)]))
        else:
            self._take(fresh)

    def _refuse(self, refusal: SettingsError) -> None:
        self.refusal = refusal
        metrics.SETTINGS_VALID.labels(self._name).set(0)
        metrics.SETTINGS_RELOAD_FAILURES.labels(self._name).inc()
        log.error("settings refused, keeping the last valid ones", error=str(refusal))
        self._on_refusal(refusal)

    def _take(self, fresh: S) -> None:
        changed, self.current = fresh != self.current, fresh
        self._record_valid()
        log.info("settings reloaded", file=str(self._path), changed=changed)
        if changed and self.awaiting_restart:
            log.warning("changed settings need a restart", file=str(self._path), fields=self.awaiting_restart)
        if changed:
            self._on_change(fresh)

    def _record_valid(self) -> None:
        self.refusal = None
        metrics.SETTINGS_VALID.labels(self._name).set(1)
        metrics.SETTINGS_AWAITING_RESTART.labels(self._name).set(len(self.awaiting_restart))
        metrics.SETTINGS_LAST_RELOAD_SUCCESS.labels(self._name).set(time.time())
