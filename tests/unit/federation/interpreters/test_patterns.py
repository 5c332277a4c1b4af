"""The pattern functions written in Lua answer as those of Lua itself do."""

from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lupa.lua51 import LuaRuntime

SOURCE = (files("federation.interpreters") / "lua" / "patterns.lua").read_text()
ITEMS = ["a", "b", ".", "%a", "%d", "%s", "%W", "[ab]", "[^a]", "[a-c1]", "[%d_]", "%.", "%-", "-", "x"]
LOOPS = ["", "", "*", "+", "-", "?"]
SPECIAL = ["()", "%b()", "%f[%w]", "%1", "(a*)", "(.-)", "(b)", "((a)b)", "%", "[", "(", ")", "]", "%f"]


@pytest.fixture(scope="module")
def ask() -> Any:
    lua = LuaRuntime(unpack_returned_tuples=True)
    own = lua.execute(SOURCE, 0)
    return lua.execute(
        """
        local own = ...
        local function all(call, ...)
          local found = { pcall(call, ...) }
          for i = 1, 20 do found[i] = tostring(found[i]) end
          if found[1] == "false" then return "error" end
          return table.concat(found, "|")
        end
        local function each(gmatch, text, pattern)
          local found = {}
          for a, b in gmatch(text, pattern) do found[#found + 1] = tostring(a) .. "," .. tostring(b) end
          return table.concat(found, ";")
        end
        local function compare(name, ...)
          if name == "gmatch" then return all(each, string.gmatch, ...), all(each, own.gmatch, ...) end
          return all(string[name], ...), all(own[name], ...)
        end
        local replacements = {
          ["a-table"] = { a = "x", b = false },
          ["a-function"] = function(c) if c == "a" then return 7 end end,
          ["a-wrong-table"] = { a = {} },
        }
        return function(name, text, pattern, by, ...)
          return compare(name, text, pattern, replacements[by] or by, ...)
        end
        """,
        own,
    )


patterns = st.builds(
    lambda head, parts, tail: head + "".join(parts) + tail,
    st.sampled_from(["", "", "^"]),
    st.lists(
        st.one_of(
            st.builds(str.__add__, st.sampled_from(ITEMS), st.sampled_from(LOOPS)), st.sampled_from(SPECIAL)
        ),
        max_size=5,
    ),
    st.sampled_from(["", "", "$"]),
)
texts = st.text(alphabet="aab1 ._-(x)", max_size=12)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(text=texts, pattern=patterns, name=st.sampled_from(["find", "match", "gmatch"]))
def test_own_search_answers_as_that_of_lua(ask: Any, text: str, pattern: str, name: str) -> None:
    expected, found = ask(name, text, pattern)
    assert found == expected


@settings(max_examples=300, deadline=None, derandomize=True)
@given(text=texts, pattern=patterns, by=st.sampled_from(["", "<%0>", "%1-", "%%", "x", "%2"]))
def test_own_replacement_is_that_of_lua(ask: Any, text: str, pattern: str, by: str) -> None:
    expected, found = ask("gsub", text, pattern, by)
    assert found == expected


@pytest.mark.parametrize("start", [-3, 0, 1, 2, 5, 6, 9])
@pytest.mark.parametrize("is_plain", [False, True])
def test_search_starts_where_it_is_told_to(ask: Any, start: int, is_plain: bool) -> None:  # noqa: FBT001
    for pattern in ("b", "", "a.", "l*"):
        expected, found = ask("find", "abala", pattern, start, is_plain)
        assert found == expected


@pytest.mark.parametrize("most", [0, 1, 9])
def test_replacements_may_be_tables_functions_and_counted(ask: Any, most: int) -> None:
    for by in ("a-table", "a-function", "a-wrong-table"):
        expected, found = ask("gsub", "abc", "%w", by, most)
        assert found == expected
