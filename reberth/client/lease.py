"""Leadership: of many processes one writes at a time.

    async with leading(api, settings, identity=name_holder()) as leadership:
        ...
        leadership.check()  # immediately before every write

The lease is an object of coordination.k8s.io, kept as client-go keeps it, so kubectl shows the holder. Whose
lease it is, the API server decides by its versions; for how long, our monotonic clock: we hold it until so
many seconds after the last renewal *was sent*. Others count the lease's full duration from when they *saw*
that renewal, and never trust a time that somebody else's clock wrote. What lies between the two is the time
that a request on its way has to arrive.

Whoever loses the lease is cancelled: the body of the context ends where it stands, with LeaseLost.
"""

import asyncio
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.config.settings import Section
from reberth.records import Lease, LeaseSpec, ObjectMeta
from reberth.runtime.logs import Log
from reberth.values import errors
from reberth.values.duration import Duration
from reberth.values.errors import ApiError, ReberthError
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time

LEASES: Resource[Lease] = Resource(plain_kind("Lease", Lease, "coordination.k8s.io"), "leases")
LEASE_HELD = "LeaseHeld"

_RELEASING_TIME = 2.0
log = Log(__name__)


class LeaseSettings(Section, frozen=True):
    """Which lease, and how patiently it is kept."""

    namespace: str = "reberth-system"
    name: str = "reberth-rescheduler"
    duration: Duration = Duration(15)
    """Others take a lease over that they have not seen renewed for so long."""
    renew_deadline: Duration = Duration(10)
    """Its holder stops so long after the last renewal that succeeded."""
    retry_every: Duration = Duration(2)

    def __post_init__(self) -> None:
        if not 0 < self.retry_every < self.renew_deadline < self.duration:
            raise ValueError("retryEvery must be less than renewDeadline, and that less than duration")
        if self.duration % 1:
            raise ValueError("duration must be whole seconds")


class LeaseLost(ReberthError):
    """Somebody else leads, or may lead by now."""


def name_holder() -> str:
    """Make a name that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leadership:
    """The right to write, until its deadline passes."""

    def __init__(self, identity: str, *, deadline: float, clock: Callable[[], float]) -> None:
        self.identity = identity
        self.deadline = deadline
        self._clock = clock

    def check(self) -> None:
        """Raise LeaseLost if the deadline has passed, also where no timer has had a chance to say so."""
        if self._clock() >= self.deadline:
            raise LeaseLost("the lease was not renewed in time")


@asynccontextmanager
async def leading(
    api: Api,
    settings: LeaseSettings,
    *,
    identity: str,
    give_way: bool = False,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Leadership | Refused]:
    """Hold the lease while the context lasts; given back at its end.

    Waits until the lease is free. Who gives way is refused as soon as its holder is seen to be alive, and
    gets the API server's errors. Raises LeaseLost in the middle of the body when the lease is lost.
    """
    keeper = _LeaseKeeper(api, settings, identity, clock)
    refused = await keeper.take(give_way=give_way)
    if refused:
        yield refused
        return
    leadership = Leadership(identity, deadline=keeper.deadline, clock=keeper.monotonic)
    try:
        async with asyncio.timeout_at(keeper.deadline) as expiry:
            renewing = asyncio.create_task(keeper.renew_forever(leadership, expiry))
            try:
                yield leadership
            finally:
                renewing.cancel()
                with suppress(asyncio.CancelledError):
                    await renewing
    except TimeoutError as error:
        if not expiry.expired():
            raise
        raise LeaseLost(keeper.trouble or "the lease was not renewed in time") from error
    finally:
        await keeper.release(leadership)


class _Observed(NamedTuple):
    """What of a lease changes when its holder is alive, and since when we have seen it so."""

    spec: LeaseSpec
    since: float


class _LeaseKeeper:
    def __init__(self, api: Api, settings: LeaseSettings, identity: str, clock: Callable[[], float]) -> None:
        self.monotonic = asyncio.get_running_loop().time
        self.deadline = 0.0
        self.trouble = ""
        self._api = api
        self._settings = settings
        self._identity = identity
        self._clock = clock
        self._observed: _Observed | None = None
        self._version = ""

    async def take(self, *, give_way: bool) -> Refused | None:
        while True:
            try:
                found = await self._try()
            except ApiError as error:
                if give_way:
                    raise
                self._report(str(error))
                found = None
            if found is True:
                return None
            if isinstance(found, Refused) and give_way:
                return found
            await asyncio.sleep(self._pause())

    async def _try(self) -> bool | Refused:
        """True: the lease is ours. Refused: its holder lives. False: that is not known yet."""
        lease = await self._read()
        if lease is None:
            return await self._write_first()
        alive = self._observe(lease.spec)
        holder = lease.spec.holder_identity
        if holder in (None, "", self._identity) or self._is_over(lease.spec):
            return await self._claim(lease)
        return Refused(LEASE_HELD, f"{holder} holds the lease {self._place}") if alive else False

    def _observe(self, spec: LeaseSpec) -> bool:
        """Note what the lease says; tell whether its holder has renewed it between two looks."""
        before = self._observed
        if before and before.spec == spec:
            return False
        self._observed = _Observed(spec, self.monotonic())
        return before is not None and before.spec.holder_identity == spec.holder_identity

    def _is_over(self, spec: LeaseSpec) -> bool:
        lasts = spec.lease_duration_seconds or self._settings.duration
        return self._observed is not None and self.monotonic() >= self._observed.since + lasts

    def _pause(self) -> float:
        """Look again after the usual time, or when the lease is over if that comes first."""
        if self._observed is None:
            return self._settings.retry_every
        lasts = self._observed.spec.lease_duration_seconds or self._settings.duration
        left = self._observed.since + lasts - self.monotonic()
        return min(self._settings.retry_every, left) if left > 0 else self._settings.retry_every

    async def _read(self) -> Lease | None:
        try:
            return await self._api.get(LEASES, self._settings.name, namespace=self._settings.namespace)
        except errors.NotFound:
            return None

    async def _write_first(self) -> bool:
        sent = self.monotonic()
        lease = Lease(ObjectMeta(name=self._settings.name), self._spec(transitions=0))
        try:
            made = await self._api.create(LEASES, lease, namespace=self._settings.namespace)
        except errors.AlreadyExists:
            return False
        self._hold(made, sent)
        return True

    async def _claim(self, lease: Lease) -> bool:
        """Take over a lease that is free; what somebody else has written in between counts first."""
        others = lease.spec.holder_identity != self._identity
        transitions = (lease.spec.lease_transitions or 0) + others
        sent = self.monotonic()
        try:
            taken = await self._patch(
                msgspec.to_builtins(self._spec(transitions=transitions)),
                version=lease.metadata.resource_version,
            )
        except errors.Conflict:
            return False
        self._hold(taken, sent)
        return True

    async def renew_forever(self, leadership: Leadership, expiry: asyncio.Timeout) -> None:
        """Renew in time; when that fails for good, the timeout ends the body."""
        while True:
            await asyncio.sleep(self._settings.retry_every)
            still = await self._renew()
            leadership.deadline = self.deadline if still else self.monotonic()
            if not expiry.expired():
                expiry.reschedule(leadership.deadline)
            if not still:
                return

    async def _renew(self) -> bool:
        """False: the lease is certainly no longer ours. An error may pass before the deadline does."""
        sent = self.monotonic()
        patch = {"renewTime": write_micro_time(self._clock())}
        try:
            async with asyncio.timeout(self._settings.renew_deadline / 2):
                self._hold(await self._patch(patch, version=self._version), sent)
        except errors.Conflict:
            return await self._look_again()
        except errors.NotFound:
            self.trouble = "the lease was deleted"
            return False
        except (ApiError, TimeoutError) as error:
            self._report(str(error) or "no answer")
        return True

    async def _look_again(self) -> bool:
        """Find out who wrote: an earlier renewal of ours, somebody's annotation, or a new holder."""
        try:
            lease = await self._read()
        except ApiError as error:
            self._report(str(error))
            return True
        holder = lease.spec.holder_identity if lease else None
        if lease is None or holder != self._identity:
            self.trouble = f"{holder or 'nobody'} holds the lease now"
            return False
        self._version = lease.metadata.resource_version
        return await self._renew() if self.monotonic() < self.deadline else True

    async def release(self, leadership: Leadership) -> None:
        """Give the lease back at once, unless it may be another's by now."""
        if self.monotonic() >= leadership.deadline:
            return
        leadership.deadline = self.monotonic()
        free = {
            "holderIdentity": None,
            "leaseDurationSeconds": 1,
            "renewTime": write_micro_time(self._clock()),
        }
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(_RELEASING_TIME):
                await self._patch(free, version=self._version)

    def _spec(self, *, transitions: int) -> LeaseSpec:
        now = write_micro_time(self._clock())
        return LeaseSpec(self._identity, int(self._settings.duration), now, now, transitions)

    async def _patch(self, spec: dict[str, Any], *, version: str) -> Lease:
        settings = self._settings
        patch = {"metadata": {"resourceVersion": version}, "spec": spec}
        return await self._api.merge(LEASES, settings.name, patch, namespace=settings.namespace)

    def _hold(self, lease: Lease, sent: float) -> None:
        self._version = lease.metadata.resource_version
        self.deadline = sent + self._settings.renew_deadline
        self.trouble = ""

    def _report(self, trouble: str) -> None:
        """Say what is wrong, once until it changes."""
        if trouble != self.trouble:
            log.warning("lease not renewed", lease=self._place, reason=trouble)
        self.trouble = trouble

    @property
    def _place(self) -> str:
        return f"{self._settings.namespace}/{self._settings.name}"
