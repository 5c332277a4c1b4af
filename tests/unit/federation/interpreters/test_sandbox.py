"""Scripts of users run within limits that hold, whatever they try."""

import time
from typing import Any

import pytest

from federation.interpreters.sandbox import LONGEST_SCRIPT, Sandbox, Script, ScriptFailure, ScriptLimits

MEGABYTE = "string.rep('x', 1048576)"
HOLES = "local t = {} for i = 29, 0, -1 do t[2 ^ i] = 2 end"
"""A list of 30 elements whose size is about 2^29."""
BOMBS = {
    "a loop": "while true do end",
    "a loop that catches errors": "while true do pcall(function() while true do end end) end",
    "a loop in a handler": "xpcall(error, function() while true do end end)",
    "a loop in the handler of the end": (
        "xpcall(function() while true do end end, function() while true do end end)"
    ),
    "many tables": "local t = {} while true do t[#t + 1] = {} end",
    "a doubled text": "local s = 'x' while true do s = s .. s end",
    "a doubled text that catches errors": "local s = 'x' while true do pcall(function() s = s .. s end) end",
    "long copies": f"local s = {MEGABYTE} while true do local u = s .. 'y' end",
    "long functions": f"local s = {MEGABYTE} while true do local u = s:upper() end",
    "many results": "local t = {} for i = 1, 7000 do t[i] = i end while true do local u = {unpack(t)} end",
    "insertions": "local t = {} for i = 1, 9e4 do t[i] = i end while true do table.insert(t, 1, i) end",
    "a large sort": "local t = {} for i = 1, 4e5 do t[i] = i % 7 end table.sort(t)",
    "an insertion in a long list with holes": f"{HOLES} table.insert(t, 1, 1)",
    "a removal from a long list with holes": f"{HOLES} table.remove(t, 1)",
    "a large sort by C": "local t = {} for i = 1, 4e5 do t[i] = 2 end table.sort(t, tonumber)",
    "a sort of a long list with holes": f"{HOLES} table.sort(t, tonumber)",
    "a sort of long texts": "local t = {} for i = 1, 4e3 do t[i] = ('\\0'):rep(900) .. i end table.sort(t)",
    "many texts joined": "local t = {} for i = 1, 3e5 do t[i] = '' end repeat table.concat(t) until false",
    "many largest keys": "local t = {} for i = 1, 3e5 do t[i] = '' end while true do table.maxn(t) end",
    "many long formats": f"local s = {MEGABYTE} while true do string.format('%q', s) end",
    "a text found in a long one": "string.find(string.rep('a', 1e6), string.rep('a', 5e5) .. 'b', 1, true)",
    "lazy loops": "string.find(string.rep('a', 60), '.-.-.-.-.-.-.-.-b')",
    "optional letters": "string.match(string.rep('a', 60), string.rep('a?', 40) .. string.rep('a', 61))",
    "greedy loops": "string.gsub(string.rep('a', 60), '.*.*.*.*.*.*.*.*b', '')",
    "matches one by one": "for _ in string.gmatch(string.rep('a', 4000), '.-.-.-b') do end",
    "recursion that catches errors": "local function f() pcall(f) pcall(f) end f()",
}


def run(body: str, *arguments: Any, limits: ScriptLimits | None = None) -> Any:
    sandbox = Sandbox(limits or ScriptLimits())
    script = sandbox.compile(f"function F(o, p) {body} end", "F")
    assert isinstance(script, Script), script
    found = sandbox.run(script, *(arguments or ({},)))
    return found if isinstance(found, ScriptFailure) else found[0]


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_ends_within_its_limits(name: str) -> None:
    sandbox = Sandbox()
    script = sandbox.compile(f"function F(o) {BOMBS[name]} end", "F")
    assert isinstance(script, Script)
    began = time.process_time()
    found = sandbox.run(script, {})
    took = time.process_time() - began
    assert isinstance(found, ScriptFailure)
    assert found.is_spent
    assert took < 0.1
    assert sandbox.memory < 2**22  # nothing of it is left
    after = sandbox.compile("function F(o) return o.a end", "F")
    assert isinstance(after, Script)
    assert sandbox.run(after, {"a": 1}) == (1, None)


def test_bomb_is_stopped_when_it_is_compiled() -> None:
    found = Sandbox().compile("while true do end", "F")
    assert found == ScriptFailure("too many instructions", is_spent=True)


def test_memory_is_capped_for_one_run() -> None:
    body = "local t = {} for i = 1, 2e4 do t[i] = {} end return #t"
    assert run(body) == 20000
    assert run(body, limits=ScriptLimits(memory=2**20)) == ScriptFailure("not enough memory", is_spent=True)


def test_garbage_of_earlier_runs_does_not_count() -> None:
    sandbox = Sandbox(ScriptLimits(memory=2**21))
    script = sandbox.compile("function F(o) local t = {} for i = 1, 1e4 do t[i] = {} end return #t end", "F")
    assert isinstance(script, Script)
    assert {sandbox.run(script, {}) for _ in range(20)} == {(10000, None)}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("error('no')", "F:1: no"),
        ("error('\\255 is odd')", "F:1: \ufffd is odd"),
        ("error(o.name:sub(1, 4))", "F:1: gr\u00f6"),
        ("error(o.name:sub(1, 3))", "F:1: gr\ufffd"),
        ("error('100%25')", "F:1: 100%25"),
        ("table.insert({}, -2147483646, 1)", "bad argument #2 to 'insert' (position out of bounds)"),
        ("table.insert({}, 0 / 0, 1)", "bad argument #2 to 'insert' (position out of bounds)"),
        ("table.insert({}, 3, 1)", "bad argument #2 to 'insert' (position out of bounds)"),
        ("table.insert({}, 1, 1, 1)", "wrong number of arguments to 'insert'"),
        ("table.insert({}, 'x', 1)", "number expected, got string"),
        ("return ('x'):rep(0 / 0)", "resulting string too large"),
        ("string.format('%099999d', 1)", "invalid format"),
        ("return {unpack({}, 1, 2147483647)}", "too many results to unpack"),
        ("os.date(('%t'):rep(5e5))", "format of the date too long"),
        ("error({})", "an error of type table"),
        ("return nil + 1", "F:1: attempt to perform arithmetic on a nil value"),
        ("local function f(n) return 1 + f(n) end return f(1)", "stack overflow"),
        ("return string.rep('x', 1e9)", "resulting string too large"),
        ("string.find = nil", "the library cannot be changed: find"),
        ("return require('io')", "module io not found: only kube is there"),
        ("return ('x'):dump()", "attempt to call method 'dump' (a nil value)"),
        ("return setmetatable({}, {})", "call function setmetatable is not supported"),
        ("o.o = o return o", "contains itself"),
        ("return '\\255'", "can't decode byte 0xff"),
        ("return {[1] = 1, [3] = 3}", "neither a list nor an object"),
        ("return {1, a = 2}", "neither a list nor an object"),
        ("return {print}", "it has a function"),
        ("return 1 / 0", "not finite"),
    ],
)
def test_error_is_a_failure_with_its_reason(body: str, reason: str) -> None:
    found = run(body, {"name": "gr\u00f6\u00dfe"})
    assert isinstance(found, ScriptFailure)
    assert reason in found.reason
    assert not found.is_spent


@pytest.mark.parametrize(
    ("given", "is_read"),
    [
        ({"a": [1] * 65_000}, True),
        ({"a": [1] * 66_000}, False),
        ({"a": [{} for _ in range(500_000)]}, False),
        ({"a": {str(number): [[]] for number in range(60_000)}}, False),
        ({"a": "x" * 1_500_000, "b": [{"c": "x" * 100}] * 2000}, True),
    ],
    ids=["most", "one list", "many objects", "many names", "long texts"],
)
def test_an_object_with_too_many_values_is_not_turned_into_tables(given: Any, is_read: bool) -> None:  # noqa: FBT001 - a case
    sandbox = Sandbox()
    script = sandbox.compile("function F(o) return o ~= nil end", "F")
    assert isinstance(script, Script)
    before, began = sandbox.memory, time.process_time()
    found = sandbox.run(script, given)
    took = time.process_time() - began
    assert found == ((True, None) if is_read else ScriptFailure("the object has more than 65536 values"))
    assert took < 0.1
    assert is_read or sandbox.memory < before + 2**16


LARGE_RESULTS = {
    "a long text in many places": f"local s, t = {MEGABYTE}, {{}} for i = 1, 5000 do t[i] = s end return t",
    "long names in many places": (
        f"local t, name = {{}}, {MEGABYTE} for i = 1, 5000 do t[i] = {{[name] = 1}} end return t"
    ),
    "many values": "local t = {} for i = 1, 150000 do t[i] = i end return t",
    "many values at once": "local t, u = {}, {} for i = 1, 300 do t[i] = u u[i] = 1 end return t",
    "two results": "local t = {} for i = 1, 20000 do t[i] = i end return t, t",
}


@pytest.mark.parametrize("name", LARGE_RESULTS)
def test_result_that_is_too_large_exceeds_a_limit(name: str) -> None:
    began = time.process_time()
    found = run(LARGE_RESULTS[name])
    assert isinstance(found, ScriptFailure)
    assert found.is_spent
    assert time.process_time() - began < 0.5


def test_reading_a_result_takes_no_more_time_than_running() -> None:
    sandbox = Sandbox()
    script = sandbox.compile("function F(o) o.new = true return o end", "F")
    assert isinstance(script, Script)
    large = {str(number): {"a": number} for number in range(10_000)}
    assert isinstance(sandbox.run(script, large, limits=ScriptLimits(seconds=1.0)), tuple)
    failure = sandbox.run(script, large, limits=ScriptLimits(seconds=0.001))
    assert failure == ScriptFailure("the result is too large: it takes too much time", is_spent=True)


def test_lists_change_as_in_lua() -> None:
    body = """
        local t, gone = {1, 2, 3}, {}
        table.insert(t, 4) table.insert(t, 5, 5) table.insert(t, '1', 0)
        gone[1], gone[2] = table.remove(t), table.remove(t, 2)
        gone[3] = select('#', table.remove(t, 9)) + select('#', table.remove(t, -2147483646))
        t[9] = 9
        return {t[1], t[2], #table.concat(t, '-', 1, 4), table.maxn(t), table.concat(gone, ',')}
    """
    assert run(body) == [0, 2, 7, 9, "5,1,0"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("table.sort({1, 'a'})", "attempt to compare string with number"),
        ("table.sort({}, 3)", "bad argument #2 to 'sort' (function expected, got number)"),
        ("table.concat({{}})", "invalid value (table) at index 1 in table for 'concat'"),
    ],
)
def test_reason_names_no_place_outside_the_script(body: str, reason: str) -> None:
    assert run(body) == ScriptFailure(reason)


def test_reason_is_not_longer_than_people_read() -> None:
    found = run(f"error({MEGABYTE})")
    assert isinstance(found, ScriptFailure)
    assert len(found.reason) == 1024


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("function F(", "F:1: <name> or '...' expected near '<eof>'"),
        ("function G() end", "no function F"),
        ("F = 1", "no function F"),
        ("\x1bLua", "compiled code is not taken"),
        ("return " + "(" * 500, "too many syntax levels"),
        ("--" + "x" * LONGEST_SCRIPT, f"longer than {LONGEST_SCRIPT} bytes"),
        ("function F() return \u201cx\u201d end", "F:1: unexpected symbol near '\ufffd'"),
        ("x = \u00e9", "F:1: unexpected symbol near '\ufffd'"),
        ("error('\u00fcber')", "F:1: \u00fcber"),
        ("-- \ud800", "surrogates not allowed"),
        ("error('at once')", "F:1: at once"),
    ],
)
def test_script_that_cannot_be_used_is_refused(source: str, reason: str) -> None:
    found = Sandbox().compile(source, "F")
    assert isinstance(found, ScriptFailure)
    assert reason in found.reason


def test_script_reaches_nothing_but_the_safe_libraries() -> None:
    body = "return {python, io, debug, coroutine, package, jit, os.execute, os.getenv, os.exit, string.dump}"
    assert run(body) == {}
    assert run(
        "local n = 0 for k in pairs(os) do n = n + 1 end return {n, type(os.time()), type(os.date())}"
    ) == [
        0,
        "number",
        "string",
    ]


def test_script_leaves_nothing_to_the_next_one() -> None:
    sandbox = Sandbox()
    first = sandbox.compile("x = (x or 0) + 1 string = nil function F() return x end", "F")
    second = sandbox.compile("function F() return {type(x), type(string)} end", "F")
    assert isinstance(first, Script)
    assert isinstance(second, Script)
    assert [sandbox.run(first, {})[0], sandbox.run(first, {})[0]] == [1, 1]
    assert sandbox.run(second, {})[0] == ["nil", "table"]


def test_empty_table_is_what_stood_there() -> None:
    had = {"a": [], "b": {}, "c": [1, {"d": []}], "e": 1.5, "f": "ü", "g": True, "h": 2**40}
    assert run("o.new = {} return o", had) == {**had, "new": {}}
    assert run("return o", {"a": None, "b": [{}]}) == {"b": [{}]}


def test_object_that_lua_cannot_hold_is_a_failure() -> None:
    for odd in ({"a": "\ud800"}, {"a": 10**400}):
        found = run("return 1", odd)
        assert isinstance(found, ScriptFailure)
        assert "cannot be read in Lua" in found.reason
