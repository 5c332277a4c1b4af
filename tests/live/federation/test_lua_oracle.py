"""Scripts answer as in gopher-lua, in which Karmada runs them; what differs is listed in the docs."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from federation.interpreters.sandbox import Sandbox, Script, ScriptFailure
from localcluster.build import build, products
from tests.support.federation.drawn_scripts import DOCUMENTED, OBJECT, draw_scripts, write_function
from tests.support.repository import DOCS

pytestmark = pytest.mark.live

SCRIPTS, SEED = 200, 7
SOAKED, AT_ONCE = 100, 1000


@pytest.fixture(scope="module")
def oracle() -> str:
    return str(build.programs(products.LUA_ORACLE)["lua-oracle"])


def ask_oracle(oracle: str, scripts: Sequence[str]) -> list[Any]:
    asked = ({"Script": each, "Function": "F", "Argument": OBJECT} for each in scripts)
    lines = "".join(f"{json.dumps(each)}\n" for each in asked)
    done = subprocess.run([oracle], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_ours(sandbox: Sandbox, script: str) -> Any:
    compiled = sandbox.compile(script, "F")
    assert isinstance(compiled, Script), compiled
    found = sandbox.run(compiled, OBJECT)
    return {"error": found.reason} if isinstance(found, ScriptFailure) else {"result": found[0]}


def is_same(ours: Any, theirs: Any) -> bool:
    """Errors have texts of their own; JSON does not tell an empty list from an empty object of Lua."""
    if "error" in ours or "error" in theirs:
        return "error" in ours and "error" in theirs
    return bool(plain(ours["result"]) == plain(theirs["result"]))


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()} or []
    return [plain(each) for each in value] if isinstance(value, list) else value


def find_differences(oracle: str, scripts: Sequence[str]) -> list[str]:
    sandbox, answers = Sandbox(), ask_oracle(oracle, scripts)
    pairs = ((each, ask_ours(sandbox, each), theirs) for each, theirs in zip(scripts, answers, strict=True))
    return [f"{each}\n  {ours}\n  {theirs}" for each, ours, theirs in pairs if not is_same(ours, theirs)]


def test_drawn_scripts_and_documented_ones_answer_as_in_gopher_lua(oracle: str) -> None:
    scripts = [*draw_scripts(SEED, SCRIPTS), *map(write_function, DOCUMENTED)]
    assert not find_differences(oracle, scripts)
    failed = sum("error" in each for each in ask_oracle(oracle, scripts))
    assert failed < len(scripts) / 10  # else nothing was compared


@pytest.mark.parametrize(
    ("body", "ours", "theirs"),
    [
        ("return tostring(1 / 3)", "0.33333333333333", "0.3333333333333333"),
        ("return (string.gsub('a1', '%f[%w]%w+', '<%0>'))", "<a1>", "a1"),
        ("return table.concat({'a', 'b'}, 7)", "a7b", None),
        ("return tostring(string.match('a', 'b'))", "nil", None),
        ("for each in string.gmatch('ab', '^.') do return each end return 'none'", "none", "a"),
    ],
)
def test_the_listed_differences_are_as_listed(oracle: str, body: str, ours: str, theirs: str | None) -> None:
    script = write_function(body)
    assert ask_ours(Sandbox(), script) == {"result": ours}
    (said,) = ask_oracle(oracle, [script])
    assert said.get("result") == theirs
    assert ("error" in said) == (theirs is None)


def test_a_difference_is_noticed(oracle: str) -> None:
    assert len(find_differences(oracle, [write_function("return tostring(1 / 3)")])) == 1
    page = (DOCS / "federation-interpreters.md").read_text()
    assert all(
        each in page for each in ("`0.33333333333333`", "`0.3333333333333333`", "`%f[set]`", "`gmatch`")
    )


@pytest.mark.soak
@pytest.mark.parametrize("turn", range(SOAKED))
def test_many_drawn_scripts_answer_as_in_gopher_lua(oracle: str, turn: int) -> None:
    assert not find_differences(oracle, list(draw_scripts(SEED + 1 + turn, AT_ONCE)))
