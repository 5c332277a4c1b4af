"""Whether Karmada's own controllers run on this hub: two programs that write the same objects fight.

They hold leases. One that is renewed while we watch it belongs to a process that runs; the time that is
written in it comes from another machine's clock, and says nothing.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Protocol

from msgspec import Meta

from federation.hub import metrics
from reberth.client.lease import LEASES
from reberth.cluster.kinds import Resource
from reberth.config.settings import Section
from reberth.records import Lease, LeaseSpec
from reberth.runtime.logs import Log
from reberth.values.duration import PositiveDuration
from reberth.values.errors import ApiError, Forbidden, NotFound

NAMES = ("karmada-controller-manager", "karmada-scheduler", "karmada-descheduler")
_DURATION, _LONGEST = 15, 60
"""Seconds for which a lease is watched that does not say how long it holds, and any lease at most."""
_AGAIN = 1.0
_NAMESPACE = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
log = Log(__name__)

Specs = Mapping[str, LeaseSpec]


class KarmadaSettings(Section, frozen=True):
    """What to do where Karmada's own controllers run on the hub."""

    run_beside: bool = False
    """Start all the same: for example because they have those controllers switched off that run here."""
    look_every: PositiveDuration = PositiveDuration(60)
    namespace: Annotated[str, Meta(pattern=_NAMESPACE)] = "karmada-system"
    """Where their leases are; the right to read them is given in this namespace alone."""


class _Reader(Protocol):
    async def get(self, resource: Resource[Lease], name: str, *, namespace: str) -> Lease: ...


class KarmadaWatch:
    """Looks at the leases of Karmada's controllers; `problem` says which of them are renewed."""

    def __init__(self, api: _Reader, settings: KarmadaSettings) -> None:
        self.problem = ""
        self._api = api
        self._settings = settings
        self._forbidden: set[str] = set()

    async def wait(self) -> None:
        """Wait until none of them runs; with runBeside only say that they do."""
        while await self._look() and not self._settings.run_beside:
            pass

    async def watch(self) -> None:
        """Go on looking: somebody may start them later. That is told, and stops nothing."""
        while True:
            await asyncio.sleep(self._settings.look_every)
            await self._look()

    async def _look(self) -> bool:
        """Read the leases twice, as far apart as they last; tell which were renewed."""
        before = await self._read()
        if before:
            await asyncio.sleep(find_duration(before))
        running = find_renewed(before, await self._read() if before else {})
        for name in NAMES:
            metrics.KARMADA_RUNNING.labels(name).set(name in running)
        self._tell(describe_running(running, self._settings.namespace))
        return bool(running)

    async def _read(self) -> dict[str, LeaseSpec]:
        specs = {name: await self._read_one(name) for name in NAMES}
        return {name: spec for name, spec in specs.items() if spec is not None}

    async def _read_one(self, name: str) -> LeaseSpec | None:
        """Read a lease; None if there is none, or if it may not be read. Nothing else is an answer."""
        while True:
            try:
                return (await self._api.get(LEASES, name, namespace=self._settings.namespace)).spec
            except NotFound:
                return None
            except Forbidden as error:
                if name not in self._forbidden:
                    log.warning("lease of Karmada may not be read", lease=name, reason=str(error))
                self._forbidden.add(name)
                return None
            except ApiError:
                await asyncio.sleep(_AGAIN)

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            hint = "" if self._settings.run_beside else "; stop them, or set karmada.runBeside"
            log.error("Karmada's controllers run on this hub", reason=f"{problem}{hint}")
        elif self.problem and not problem:
            log.info("Karmada's controllers do not run on this hub any more")
        self.problem = problem


def find_duration(specs: Specs) -> float:
    """Return how long the leases must be watched, so that each of them would be renewed."""
    return min(max(each.lease_duration_seconds or _DURATION for each in specs.values()), _LONGEST)


def find_renewed(before: Specs, after: Specs) -> dict[str, str]:
    """Return the holders of those leases that have changed and are held, by the names of the leases."""
    return {
        name: spec.holder_identity
        for name, spec in after.items()
        if spec.holder_identity and name in before and spec != before[name]
    }


def describe_running(holders: Mapping[str, str], namespace: str) -> str:
    return ", ".join(f"{namespace}/{name} is renewed by {holder}" for name, holder in sorted(holders.items()))
