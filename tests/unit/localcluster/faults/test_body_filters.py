"""Filters change bodies in the same way, whatever the pieces."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localcluster.faults import (
    ANY,
    Bytes,
    Cut,
    Delay,
    Duplicate,
    Effect,
    Ending,
    ErrorEvent,
    Lines,
    Memory,
    Record,
    Remember,
    RequestInfo,
    Rule,
    Slow,
    Stall,
    Tape,
    read_request_info,
    status_bodies,
)
from localcluster.faults.body_filters import (
    BodyFilter,
    Finish,
    Hold,
    Pause,
    Step,
    begin,
    create_filter,
    feed,
    flush,
)
from localcluster.faults.rules import Act
from localcluster.faults.status_bodies import Reply

LIST = read_request_info("a", "GET", target="/api/v1/pods")
OK = Reply(200, {}, b"")

UNHURRIED = settings(deadline=None)  # a busy machine is no defect

bodies = st.lists(st.sampled_from([b"\n", b"a", b"bc\n", b"defgh\n", b"i" * 30]), max_size=12)
marks = st.one_of(
    st.integers(0, 60).map(Bytes), st.sampled_from([0, 0.01, 0.5, 0.99, 1, 1.5, 2, 2.25, 7.5]).map(Lines)
)


def filters_of(
    *effects: Effect, request: RequestInfo = LIST, reply: Reply = OK
) -> tuple[list[Rule], list[BodyFilter]]:
    rules = [Rule(ANY, effect) for effect in effects]
    made = [create_filter(Act(rule, lambda: None), request, reply) for rule in rules]
    return rules, [body_filter for body_filter in made if body_filter is not None]


def steps_of(filters: list[BodyFilter], pieces: list[bytes]) -> Iterator[Step]:
    """All steps, up to the one that ends the body."""
    for source in (begin(filters), *(feed(filters, piece) for piece in pieces), flush(filters)):
        for step in source:
            if step != b"":
                yield step
            if isinstance(step, Finish):
                return


def passed(steps: list[Step]) -> bytes:
    return b"".join(step for step in steps if isinstance(step, bytes))


def before(mark: Bytes | Lines, body: bytes) -> bytes | None:
    """What a mark leaves of a body, said in another way; None if the body ends before it."""
    if isinstance(mark, Bytes):
        return body[: mark.count] if len(body) >= mark.count else None
    lines = body.split(b"\n")
    whole, part = int(mark.count), mark.count % 1
    if len(lines) <= whole:
        return None
    begun, rest = b"\n".join([*lines[:whole], b""]) if whole else b"", b"\n".join(lines[whole:])
    if not part:
        return begun
    return begun + rest[: max(1, int(len(lines[whole]) * part))] if rest else None


@UNHURRIED
@given(pieces=bodies, mark=marks)
def test_a_cut_body_is_the_part_before_the_mark(pieces: list[bytes], mark: Bytes | Lines) -> None:
    (rule,), filters = filters_of(Cut(mark, Ending.BROKEN))
    steps = list(steps_of(filters, pieces))
    wanted = before(mark, b"".join(pieces))
    assert passed(steps) == (b"".join(pieces) if wanted is None else wanted)
    assert (Finish(Ending.BROKEN) in steps) is (wanted is not None)
    assert rule.acted == (wanted is not None)


@UNHURRIED
@given(pieces=bodies, mark=marks)
def test_a_stalled_body_is_held_once_and_whole(pieces: list[bytes], mark: Bytes | Lines) -> None:
    (rule,), filters = filters_of(Stall(mark))
    steps = list(steps_of(filters, pieces))
    assert passed(steps) == b"".join(pieces)
    wanted = before(mark, b"".join(pieces))
    assert steps.count(Hold(rule)) == rule.acted == (wanted is not None)
    if wanted is not None:
        assert passed(steps[: steps.index(Hold(rule))]) == wanted


@UNHURRIED
@given(pieces=bodies)
def test_whole_lines_are_doubled_and_a_begun_one_is_not(pieces: list[bytes]) -> None:
    _, filters = filters_of(Duplicate())
    *lines, rest = b"".join(pieces).split(b"\n")
    assert passed(list(steps_of(filters, pieces))) == b"".join((line + b"\n") * 2 for line in lines) + rest


@UNHURRIED
@given(pieces=bodies)
def test_a_tape_gets_the_whole_lines_and_everything_passes(pieces: list[bytes]) -> None:
    tape = Tape()
    (rule,), filters = filters_of(Record(tape))
    assert passed(list(steps_of(filters, pieces))) == b"".join(pieces)
    assert tape.lines == [line + b"\n" for line in b"".join(pieces).split(b"\n")[:-1]]
    assert rule.acted == bool(tape.lines)


@UNHURRIED
@given(pieces=bodies, rate=st.sampled_from([0.5, 7, 100, 1e6]))
def test_a_slow_body_is_sent_at_its_rate(pieces: list[bytes], rate: float) -> None:
    (rule,), filters = filters_of(Slow(rate))
    steps = list(steps_of(filters, pieces))
    body = b"".join(pieces)
    assert passed(steps) == body
    seconds = sum(step.seconds for step in steps if isinstance(step, Pause))
    assert seconds == pytest.approx(len(body) / rate)
    assert rule.acted == bool(body)


def test_the_rest_of_a_slow_body_comes_at_once_when_the_rule_is_lifted() -> None:
    (rule,), filters = filters_of(Slow(40))
    steps = feed(filters, b"abcdefgh")
    assert [next(steps), next(steps)] == [Pause(0.05), b"ab"]
    rule.lifted = True
    assert list(steps) == [b"cdefgh"]
    assert list(feed(filters, b"ijk")) == [b"ijk"]


def test_only_the_divided_line_is_held_back() -> None:
    _, filters = filters_of(Cut(Lines(1.5)))
    assert list(feed(filters, b"on")) == [b"on"]
    assert list(feed(filters, b"e\ntw")) == [b"e\n"]
    assert [step for step in feed(filters, b"oo\n") if step != b""][:2] == [b"tw", Finish(Ending.RESET)]


def test_a_bend_acts_at_the_very_start_also_behind_others() -> None:
    event = ErrorEvent(status_bodies.watch_expired(), Lines(0))
    rules, filters = filters_of(Slow(100), Duplicate(), event)
    line = status_bodies.watch_expired().event()
    assert [step for step in begin(filters) if step != b""] == [line, Finish(Ending.CLEAN)]
    assert [rule.acted for rule in rules] == [0, 0, 1]


def test_bytes_held_back_to_the_end_pass_the_filters_after_it() -> None:
    tape = Tape()
    _, filters = filters_of(Stall(Lines(0.5)), Slow(1e9), Record(tape), Cut(Bytes(3), Ending.CLEAN))
    steps = list(steps_of(filters, [b"ab", b"cd"]))
    assert passed(steps) == b"abc"
    assert steps[-1] == Finish(Ending.CLEAN)


def test_an_effect_that_leaves_the_body_alone_is_no_bend() -> None:
    assert filters_of(Delay(1), Stall())[1] == []
    assert list(feed([], b"data")) == [b"data"]


def test_a_whole_answer_is_remembered_once_it_has_passed() -> None:
    memory = Memory()
    body = b'{"metadata":{"resourceVersion":"7"}}'
    (rule,), filters = filters_of(Remember(memory))
    assert list(feed(filters, body[:9])) == [body[:9]]
    assert (len(memory), rule.acted) == (0, 0)
    assert passed(list(feed(filters, body[9:]))) == body[9:]
    assert list(flush(filters)) == []
    assert (len(memory), rule.acted) == (1, 1)


def test_an_answer_that_cannot_be_cached_is_not_remembered() -> None:
    memory = Memory()
    (rule,), filters = filters_of(Remember(memory), reply=Reply(500, {}, b""))
    assert passed(list(steps_of(filters, [b"{}"]))) == b"{}"
    assert (len(memory), rule.acted) == (0, 0)
