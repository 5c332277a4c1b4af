"""The API server's time: right whatever this machine's clock says, and whatever a single answer says."""

import inspect
import time
from contextlib import nullcontext
from email.utils import formatdate
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reberth.client.access import Access
from reberth.client.api import Api, ApiSettings
from reberth.client.lease import leading
from reberth.client.rate_limit import RateLimiter
from reberth.client.server_clock import CONTRADICTED_FOR, CONTRADICTIONS, ServerClock, measure_elapsed
from reberth.cluster.kinds import NODES, PODS
from reberth.values.errors import ApiError

HOUR = 3600.0
MIDNIGHT = 1_767_225_600.0
UNREADABLE = (
    None,
    "",
    "2026-01-01T00:00:00Z",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 CET",
    "Sun, 31 Feb 1994 08:49:37 GMT",
    "Sun, 06 Foo 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT",
    "Sun, 06 Nov 1994 08:49:37 GMT" * 1000,
)


class Answer(NamedTuple):
    """How long after the last answer it was asked for, and how long it took, there and back."""

    pause: float = 0.37
    there: float = 0.002
    back: float = 0.002


class Machine:
    """A machine and its API server: the true time is the server's."""

    def __init__(self, *, ahead: float = 0.0, fast: float = 0.0, begins: float = MIDNIGHT) -> None:
        self.time = begins
        self.ahead = ahead
        """How far this machine's clock is ahead of the server's; it may be changed."""
        self._begins = begins
        self._fast = fast
        self.clock = ServerClock(elapsed=self._elapsed, wall=lambda: self.time + self.ahead)

    def _elapsed(self) -> float:
        return 77.0 + (self.time - self._begins) * (1 + self._fast)

    def hear(self, answer: Answer = Answer(), *, wrong: float = 0.0) -> None:  # noqa: B008 - frozen
        self.time += answer.pause
        sent = self._elapsed()
        self.time += answer.there
        date = formatdate(self.time // 1 + wrong, usegmt=True)
        self.time += answer.back
        self.clock.hear(date, sent=sent)

    @property
    def error(self) -> float:
        return abs(self.clock.now() - self.time)


skews = st.floats(-1e6, 1e6)
beginnings = st.floats(MIDNIGHT, MIDNIGHT + 10)
answers = st.builds(Answer, pause=st.floats(0.0, 20.0), there=st.floats(0.0, 2.0), back=st.floats(0.0, 2.0))
absurdities = st.one_of(st.integers(10, 10**7), st.integers(-(10**7), -10))


@given(skew=skews, begins=beginnings, heard=st.lists(answers, min_size=1, max_size=30))
def test_it_is_wrong_by_less_than_a_second_and_the_time_of_the_first_answer(
    skew: float, begins: float, heard: list[Answer]
) -> None:
    machine = Machine(ahead=skew, begins=begins)
    for answer in heard:
        machine.hear(answer)
        passed = machine.time - begins
        assert machine.error <= 1 + heard[0].there + heard[0].back + 0.001 * passed + 1e-5


@given(skew=skews, begins=beginnings, heard=st.lists(answers, min_size=1, max_size=20), data=st.data())
def test_one_absurd_answer_changes_nothing(
    skew: float, begins: float, heard: list[Answer], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(heard)))
    wrong = data.draw(absurdities)
    honest, fooled = Machine(ahead=skew, begins=begins), Machine(ahead=skew, begins=begins)
    for number, answer in enumerate([*heard, Answer(pause=0.0)], start=1):
        honest.hear(answer)
        fooled.hear(answer)
        if number == place:
            fooled.hear(Answer(0.0, 0.0, 0.0), wrong=wrong)
        assert fooled.clock.now() == honest.clock.now()


@given(skew=skews, begins=beginnings, wrong=absurdities)
def test_an_absurd_first_answer_is_forgotten_when_others_contradict_it(
    skew: float, begins: float, wrong: int
) -> None:
    machine = Machine(ahead=skew, begins=begins)
    machine.hear(wrong=wrong)
    for _ in range(CONTRADICTIONS):
        machine.hear()
    assert machine.error < 1.01


@given(skew=skews, begins=beginnings, step=absurdities)
def test_it_follows_an_api_server_whose_clock_is_changed(skew: float, begins: float, step: int) -> None:
    machine = Machine(ahead=skew, begins=begins)
    for _ in range(9):
        machine.hear()
    for _ in range(CONTRADICTIONS):
        assert machine.error < 1.01
        machine.hear(Answer(pause=CONTRADICTED_FOR / 2 + 0.1), wrong=step)
    assert abs(machine.clock.now() - machine.time - step) < 1.01


def test_answers_that_contradict_each_other_are_not_believed() -> None:
    machine = Machine()
    machine.hear()
    for wrong in (50.0, 500.0, 5000.0, 50.0, 500.0):
        machine.hear(wrong=wrong)
    assert machine.error < 1.01


@given(random=st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_with_several_api_servers_it_keeps_the_time_of_one(random: Random) -> None:
    """Any of them may answer many times in a row."""
    machine = Machine(ahead=HOUR)
    for _ in range(CONTRADICTIONS):
        machine.hear()
    errors = []
    for _ in range(400):
        machine.hear(Answer(pause=0.05), wrong=4.0 if random.random() < 0.5 else 0.0)
        errors.append(machine.error)
    assert max(errors) < 1.01


@pytest.mark.parametrize("skew", [-HOUR, -5.0, 5.0, HOUR])
def test_answers_narrow_the_bounds_to_the_time_that_they_take(skew: float) -> None:
    machine = Machine(ahead=skew)
    for _ in range(50):
        machine.hear()
    assert machine.error < 0.03
    assert machine.clock.find_offset() == pytest.approx(-skew, abs=0.03)


def test_a_clock_that_is_not_contradicted_is_believed_and_nothing_jumps() -> None:
    machine, times = Machine(), []
    for _ in range(50):
        machine.hear()
        times.append(machine.clock.now() - machine.time)
    assert times == pytest.approx([0.0] * 50, abs=1e-6)


@pytest.mark.parametrize("fast", [-0.0009, 0.0009])
def test_a_machine_that_counts_its_seconds_badly_stays_right_for_a_day(fast: float) -> None:
    machine, errors = Machine(ahead=HOUR, fast=fast), []
    for _ in range(300):
        machine.hear(Answer(pause=290.0))
        errors.append(machine.error)
    assert max(errors) < 1.5


def test_a_change_of_this_machines_clock_changes_only_the_offset() -> None:
    machine = Machine()
    machine.hear()
    before = machine.clock.now()
    machine.ahead = HOUR
    assert machine.clock.now() == before
    assert machine.clock.find_offset() == pytest.approx(-HOUR)
    for _ in range(9):
        machine.hear()
        assert machine.error < 1e-5


def test_time_passes_between_answers() -> None:
    machine = Machine(ahead=-HOUR)
    machine.hear()
    times = []
    for _ in range(5):
        times.append(machine.clock.now())
        machine.time += 1.5
    assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([1.5] * 4)


@pytest.mark.parametrize("date", UNREADABLE)
def test_an_unreadable_date_teaches_nothing(date: str | None) -> None:
    machine = Machine(ahead=HOUR)
    machine.clock.hear(date, sent=0.0)
    assert machine.error == pytest.approx(HOUR)
    machine.hear()
    for _ in range(9):
        machine.clock.hear(date, sent=0.0)
    assert machine.error < 1.01


class Reply:
    """What an API server says that is two hours ahead."""

    connection = None

    def __init__(self, status: int, date: str) -> None:
        self.status = status
        self.headers = {"Date": date}
        self.content = self
        self._left = [b'{"metadata":{"name":"n1"}}']

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    async def read(self) -> bytes:
        return b""

    async def readany(self) -> bytes:
        return self._left.pop() if self._left else b""


class Connection:
    renewals = 0

    def __init__(self, status: int, date: str) -> None:
        self._reply = status, date

    async def send(self, *_: Any, **__: Any) -> Reply:
        return Reply(*self._reply)


async def ask(api: Api, verb: str) -> None:
    if verb == "watch":
        async with api.watch(PODS, since="7", seconds=1):
            return
    await (api.get(NODES, "n1") if verb == "get" else api.merge(NODES, "n1", {}))


@pytest.mark.parametrize("status", [200, 404, 409, 500])
@pytest.mark.parametrize("verb", ["get", "patch", "watch"])
async def test_the_client_hears_every_answer(status: int, verb: str) -> None:
    machine = Machine()
    api: Any = Api(Access(), ApiSettings(tries=1), machine.clock)
    api._connection = Connection(status, formatdate(MIDNIGHT + 2 * HOUR, usegmt=True))
    api._throttle = RateLimiter(rate=1.0, burst=9, clock=lambda: 0.0)
    with nullcontext() if status == 200 else pytest.raises(ApiError):
        await ask(api.guarded(lambda: None), verb)
    assert machine.clock.now() == pytest.approx(MIDNIGHT + 2 * HOUR, abs=1.0)


def test_the_time_passes_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only CLOCK_BOOTTIME goes on: by another clock a leader that was suspended could still write."""
    asked: list[int] = []
    monkeypatch.setattr(time, "clock_gettime", lambda clock: asked.append(clock) or 5.0)
    assert measure_elapsed() == 5.0
    assert asked == [time.CLOCK_BOOTTIME]
    for user in (leading, ServerClock):
        assert inspect.signature(user).parameters["elapsed"].default is measure_elapsed
