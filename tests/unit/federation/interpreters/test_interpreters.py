"""The customizations of all kinds: merged, live, and each failing alone."""

from typing import Any

import msgspec

from federation.api import ResourceInterpreterCustomization
from federation.interpreters.interpreters import Interpreters
from federation.interpreters.operations import FORMS, Operation
from federation.interpreters.sandbox import Sandbox, Script, ScriptFailure
from federation.interpreters.script_pauses import FIRST_PAUSE, LONGEST_PAUSE, ScriptPauses

FOO = ("example.com/v1", "Foo")
HEALTH, DEPENDENCIES = Operation.HEALTH, Operation.DEPENDENCIES
LOOP = "function InterpretHealth() while true do end end"


def customization(name: str, kind: str = "Foo", **scripts: str) -> ResourceInterpreterCustomization:
    rules = {FORMS[Operation[each.upper()]].field: {"luaScript": text} for each, text in scripts.items()}
    target = {"apiVersion": "example.com/v1", "kind": kind}
    wire = {"metadata": {"name": name}, "spec": {"target": target, "customizations": rules}}
    return msgspec.convert(wire, ResourceInterpreterCustomization)


def says(value: str) -> str:
    return f"function InterpretHealth(o) return {value} end"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_first_script_by_name_counts_for_each_operation() -> None:
    found = Interpreters()
    found.load(
        [
            customization("c", health=says("3")),
            customization("b", health=says("2"), replicas="function GetReplicas() return 5, {a = 1} end"),
            customization("a", status="function ReflectStatus() return {x = 1} end"),
        ]
    )
    assert found.ask(FOO, HEALTH, {}) == 2
    assert found.ask(FOO, Operation.REPLICAS, {}) == (5, {"a": 1})
    assert found.ask(FOO, Operation.STATUS, {}) == {"x": 1}
    assert not found.has(*FOO, Operation.RETENTION)
    assert not found.has("example.com/v2", "Foo", HEALTH)
    assert found.list_kinds(HEALTH) == [FOO]


def test_dependencies_are_those_of_all() -> None:
    found = Interpreters()
    script = "function GetDependencies(o) return {{name = '%s'}} end"
    found.load([customization(name, dependencies=script % name) for name in ("b", "a")])
    assert found.ask_all(FOO, DEPENDENCIES, {}) == [[{"name": "a"}], [{"name": "b"}]]


def test_only_kinds_that_changed_are_told() -> None:
    found = Interpreters()
    one, two = customization("a", health=says("1")), customization("b", kind="Bar", health=says("1"))
    assert found.load([one, two]) == {FOO, ("example.com/v1", "Bar")}
    assert found.load([two, one]) == set()
    assert found.load([customization("a", health=says("2")), two]) == {FOO}
    assert found.load([two]) == {FOO}
    assert not found.has(*FOO, HEALTH)


def test_wrong_script_fails_alone() -> None:
    counted: list[tuple[str, str]] = []
    found = Interpreters(count=lambda operation, result: counted.append((operation, result)))
    wrong = customization("a", health="function InterpretHealth(", status="function ReflectStatus() end")
    found.load([wrong, customization("b", kind="Bar", health=says("true"))])
    failed = found.ask(FOO, HEALTH, {})
    assert isinstance(failed, ScriptFailure)
    assert found.ask(("example.com/v1", "Bar"), HEALTH, {}) is True
    assert found.list_failures() == {"a": [f"InterpretHealth: {failed.reason}"]}
    assert ("InterpretHealth", "refused") in counted
    assert ("InterpretHealth", "answered") in counted


def test_script_that_cannot_be_loaded_fails_alone() -> None:
    class Breaking(Sandbox):
        def compile(self, source: str, function: str, *, is_tried: bool = True) -> Script | ScriptFailure:
            if "breaks" in source:
                raise RuntimeError("no")
            return super().compile(source, function, is_tried=is_tried)

    found = Interpreters(sandbox=Breaking())
    found.load([customization("a", health="breaks"), customization("b", kind="Bar", health=says("true"))])
    assert found.ask(FOO, HEALTH, {}) == ScriptFailure("it cannot be loaded: RuntimeError('no')")
    assert found.ask(("example.com/v1", "Bar"), HEALTH, {}) is True


def test_failure_is_told_for_a_minute_and_until_the_script_is_another() -> None:
    clock = Clock()
    found = Interpreters(clock)
    found.load([customization("a", health="function InterpretHealth(o) return o.a.b end")])
    assert isinstance(found.ask(FOO, HEALTH, {}), ScriptFailure)
    assert found.ask(FOO, HEALTH, {"a": {"b": True}}) is True
    ((said,),) = found.list_failures().values()
    assert said.startswith("InterpretHealth: InterpretHealth:1: attempt to index field 'a'")
    clock.now += 61
    assert found.list_failures() == {}
    assert isinstance(found.ask(FOO, HEALTH, {}), ScriptFailure)
    found.load([customization("a", health=says("true"))])
    assert found.list_failures() == {}


def test_result_of_another_form_is_a_failure() -> None:
    found = Interpreters()
    found.load([customization("a", health=says("7"))])
    found.fail(FOO, HEALTH, "a boolean was expected")
    assert found.list_failures() == {"a": ["InterpretHealth: a boolean was expected"]}


def test_script_that_takes_too_much_pauses_longer_each_time() -> None:
    clock = Clock()
    found = Interpreters(clock)
    found.load([customization("a", health="x = ... " + LOOP.replace("while true", "while x == nil"))])
    for pause in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE):
        first = found.ask(FOO, HEALTH, {})
        assert isinstance(first, ScriptFailure)
        assert first.is_spent
        again = found.ask(FOO, HEALTH, {})
        assert again == ScriptFailure("too many instructions", is_waiting=True)  # it did not run
        assert found.take_due() == set()
        clock.now += pause
        assert found.take_due() == {FOO}
        assert found.take_due() == set()


class TickingClock(Clock):
    """Each look at it takes some time: so much takes a run."""

    def __call__(self) -> float:
        self.now += 0.005
        return self.now


BAR, NEW = ("example.com/v1", "Bar"), ("example.com/v1", "New")


def test_other_kinds_answer_while_one_pauses() -> None:
    clock = TickingClock()
    found = Interpreters(clock)
    kinds = {"b": "Bar", "c": "New"}
    good = [customization(name, kind=kind, health=says("true")) for name, kind in kinds.items()]
    found.load([customization("a", health=LOOP), *good])
    assert found.ask(BAR, HEALTH, {}) is True
    assert isinstance(found.ask(FOO, HEALTH, {}), ScriptFailure)
    assert found.ask(BAR, HEALTH, {}) is True
    waiting = found.ask(NEW, HEALTH, {})
    assert waiting == ScriptFailure("waits for scripts that take too much time", is_waiting=True)
    assert found.list_failures().keys() == {"a"}
    clock.now += 0.2
    assert found.take_due() == {NEW}
    assert found.ask(NEW, HEALTH, {}) is True


def test_script_that_needs_more_than_there_is_while_another_pauses_waits_and_is_not_blamed() -> None:
    clock = TickingClock()
    found = Interpreters(clock)
    large = "function InterpretHealth(o) for i = 1, 4e5 do end return true end"
    found.load([customization("a", health=LOOP), customization("b", kind="Bar", health=large)])
    assert found.ask(BAR, HEALTH, {}) is True
    found.ask(FOO, HEALTH, {})
    for _ in range(3):
        assert found.ask(BAR, HEALTH, {}).is_waiting
    assert found.list_failures().keys() == {"a"}
    clock.now += 0.2
    assert found.take_due() == {BAR}
    assert found.ask(BAR, HEALTH, {}) is True


def test_pauses_share_the_time() -> None:
    pauses = ScriptPauses()
    pauses.note_result("good")
    pauses.note_excess("bad", now=10.0, took=0.1)
    assert pauses.find_wait("good", 10.0) == 0
    assert abs(pauses.find_wait("new", 10.0) - 0.9) < 1e-9
    assert pauses.is_crowded(10.8)
    assert not pauses.is_crowded(10.95)
    assert pauses.find_wait("new", 10.95) == 0
    for _ in range(20):
        pauses.note_excess("bad", now=10.0, took=0.0)
    assert pauses.find_wait("bad", 10.0) == LONGEST_PAUSE
    pauses.forget("bad")
    assert pauses.find_wait("bad", 11.0) == 0


def test_thousand_loops_keep_nobody_waiting() -> None:
    """Nearly all of them wait for their turn; the ones that work answer as ever."""
    clock = Clock()

    def tick() -> float:
        clock.now += 0.005  # so long a loop takes at most
        return clock.now

    found = Interpreters(tick)
    good = [
        customization(f"good-{number}", kind=f"Good{number}", health=says("true")) for number in range(10)
    ]
    bad = [customization(f"bad-{number}", kind=f"Bad{number}", health=LOOP) for number in range(1000)]
    found.load([*good, *bad])
    for number in range(10):
        found.ask(("example.com/v1", f"Good{number}"), HEALTH, {})
    answers: list[Any] = [found.ask(("example.com/v1", f"Bad{number}"), HEALTH, {}) for number in range(1000)]
    ran = [each for each in answers if each.is_spent]
    assert 1 <= len(ran) < 250
    assert all(found.ask(("example.com/v1", f"Good{number}"), HEALTH, {}) is True for number in range(10))
