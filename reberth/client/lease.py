"""Leader election: of many processes one writes at a time.

    async with leading(api, settings, identity=name_holder()) as leadership:
        ...
        leadership.check()  # immediately before every write

The lease is an object of coordination.k8s.io in the format of client-go, so kubectl shows the holder. The API
server's versions decide which process holds the lease; the time that passes here decides for how long, also
while the machine is suspended: we hold it until `renew_deadline` after the last renewal *was sent*. Other
processes count the full duration from the time when they *saw* that renewal, and never trust a time that
another process's clock wrote. The difference is the time that a request in flight has to arrive.

A process that loses the lease is cancelled: the body of the context ends immediately, with LeaseLost.
"""

import asyncio
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import msgspec

from reberth.client.api import Api
from reberth.client.server_clock import measure_elapsed
from reberth.cluster.kinds import Resource, plain_kind
from reberth.config.settings import Section
from reberth.records import Lease, LeaseSpec, ObjectMeta
from reberth.runtime.logs import Log
from reberth.values import errors
from reberth.values.duration import Duration, PositiveDuration
from reberth.values.errors import ApiError, ReberthError
from reberth.values.refusal import Refused
from reberth.values.timestamp import write_micro_time

LEASES: Resource[Lease] = Resource(plain_kind("Lease", Lease, "coordination.k8s.io"), "leases")
LEASE_HELD = "LeaseHeld"

_RELEASING_TIME = 2.0
log = Log(__name__)


class LeaseSettings(Section, frozen=True):
    """The name of the lease, and its timeouts."""

    namespace: str = "reberth-system"
    name: str = "reberth-rescheduler"
    duration: Duration = Duration(15)
    """Other processes take over a lease that they have not seen renewed for this time."""
    renew_deadline: Duration = Duration(10)
    """The holder stops this time after its last successful renewal."""
    retry_every: Duration = Duration(2)
    stuck_after: PositiveDuration = PositiveDuration(10)
    """The holder's process ends if its event loop stands still for this time."""

    def __post_init__(self) -> None:
        if not 0 < self.retry_every < self.renew_deadline < self.duration:
            raise ValueError("retryEvery must be less than renewDeadline, and that less than duration")
        if self.duration % 1:
            raise ValueError("duration must be whole seconds")


class LeaseLost(ReberthError):
    """Another process leads, or may lead by now."""


def name_holder() -> str:
    """Make a name that is unique among all processes."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leadership:
    """The right to write, until its deadline passes."""

    def __init__(self, identity: str, *, deadline: float, clock: Callable[[], float]) -> None:
        self.identity = identity
        self.deadline = deadline
        self._clock = clock

    def check(self) -> None:
        """Raise LeaseLost if the deadline has passed, even if no timer has fired yet."""
        if self._clock() >= self.deadline:
            raise LeaseLost("the lease was not renewed in time")


@asynccontextmanager
async def leading(
    api: Api,
    settings: LeaseSettings,
    *,
    identity: str,
    give_way: bool = False,
    clock: Callable[[], float] | None = None,
    elapsed: Callable[[], float] = measure_elapsed,
) -> AsyncIterator[Leadership | Refused]:
    """Hold the lease while the context lasts; release it at its end.

    Waits until the lease is free. With `give_way` it yields a refusal as soon as the holder is seen to be
    alive, and raises the API server's errors. Raises LeaseLost in the middle of the body when the lease is
    lost.
    """
    keeper = _LeaseKeeper(api, settings, identity, clock=clock or api.clock.now, elapsed=elapsed)
    refused = await keeper.take(give_way=give_way)
    if refused:
        yield refused
        return
    leadership = Leadership(identity, deadline=keeper.deadline, clock=keeper.elapsed)
    try:
        async with asyncio.timeout(keeper.find_rest()) as expiry:
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
    """The fields of a lease that change while its holder is alive, and since when they are unchanged."""

    spec: LeaseSpec
    since: float


class _LeaseKeeper:
    def __init__(
        self,
        api: Api,
        settings: LeaseSettings,
        identity: str,
        *,
        clock: Callable[[], float],
        elapsed: Callable[[], float],
    ) -> None:
        self.elapsed = elapsed
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
        """True: we hold the lease. Refused: its holder is alive. False: not known yet."""
        lease = await self._read()
        if lease is None:
            return await self._write_first()
        alive = self._observe(lease.spec)
        holder = lease.spec.holder_identity
        if holder in (None, "", self._identity) or self._is_over(lease.spec):
            return await self._claim(lease)
        return Refused(LEASE_HELD, f"{holder} holds the lease {self._place}") if alive else False

    def _observe(self, spec: LeaseSpec) -> bool:
        """Record the state of the lease; tell whether its holder has renewed it since the last look."""
        before = self._observed
        if before and before.spec == spec:
            return False
        self._observed = _Observed(spec, self.elapsed())
        return before is not None and before.spec.holder_identity == spec.holder_identity

    def _is_over(self, spec: LeaseSpec) -> bool:
        lasts = spec.lease_duration_seconds or self._settings.duration
        return self._observed is not None and self.elapsed() >= self._observed.since + lasts

    def _pause(self) -> float:
        """Look again after the usual time, or when the lease is over if that comes first."""
        if self._observed is None:
            return self._settings.retry_every
        lasts = self._observed.spec.lease_duration_seconds or self._settings.duration
        left = self._observed.since + lasts - self.elapsed()
        return min(self._settings.retry_every, left) if left > 0 else self._settings.retry_every

    async def _read(self) -> Lease | None:
        try:
            return await self._api.get(LEASES, self._settings.name, namespace=self._settings.namespace)
        except errors.NotFound:
            return None

    async def _write_first(self) -> bool:
        sent = self.elapsed()
        lease = Lease(ObjectMeta(name=self._settings.name), self._spec(transitions=0))
        try:
            made = await self._api.create(LEASES, lease, namespace=self._settings.namespace)
        except errors.AlreadyExists:
            return False
        self._hold(made, sent)
        return True

    async def _claim(self, lease: Lease) -> bool:
        """Take over a free lease; a write by another process in between wins."""
        others = lease.spec.holder_identity != self._identity
        transitions = (lease.spec.lease_transitions or 0) + others
        sent = self.elapsed()
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
        """Renew in time; if renewals keep failing, the timeout ends the body."""
        while True:
            await asyncio.sleep(self._settings.retry_every)
            # Timers stand still while the machine is suspended; the lease may have ended meanwhile.
            still = self.find_rest() > 0 and await self._renew()
            leadership.deadline = self.deadline if still else self.elapsed()
            if not expiry.expired():
                expiry.reschedule(asyncio.get_running_loop().time() + leadership.deadline - self.elapsed())
            if not still:
                return

    def find_rest(self) -> float:
        """Give the seconds for which the lease is still held."""
        return self.deadline - self.elapsed()

    async def _renew(self) -> bool:
        """False: the lease is certainly no longer ours. Errors are tolerated until the deadline passes."""
        sent = self.elapsed()
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
        """Find the cause of a conflict: an earlier renewal of ours, a changed annotation, or a new holder."""
        try:
            lease = await self._read()
        except ApiError as error:
            self._report(str(error))
            return True
        holder = lease.spec.holder_identity if lease else None
        if lease is None or holder != self._identity:
            self.trouble = f"{holder} holds the lease now" if holder else "the lease has no holder now"
            return False
        self._version = lease.metadata.resource_version
        return await self._renew() if self.elapsed() < self.deadline else True

    async def release(self, leadership: Leadership) -> None:
        """Release the lease at once, unless another process may hold it by now."""
        if self.elapsed() >= leadership.deadline:
            return
        leadership.deadline = self.elapsed()
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
        """Log the trouble, once until it changes."""
        if trouble != self.trouble:
            log.warning("lease not renewed", lease=self._place, reason=trouble)
        self.trouble = trouble

    @property
    def _place(self) -> str:
        return f"{self._settings.namespace}/{self._settings.name}"
