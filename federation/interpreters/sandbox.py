"""A Lua in which scripts of users run: without files, processes or Python, and within limits that hold.

It is Lua 5.1, as Karmada's. Memory is capped by the allocator. Instructions are counted by a hook, and
`pcall` raises the error of the end again. Functions of C that could take long are bounded, or written in Lua
(see the folder `lua`).
"""

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec
from lupa.lua51 import LuaError, LuaMemoryError, LuaRuntime

from federation.interpreters.lua_values import (
    MOST_GIVEN,
    ConversionError,
    ResultReader,
    TooLarge,
    has_too_many,
)

LONGEST_SCRIPT = 2**16
_HARD_CAP = 2**28
"""Bytes of the whole runtime at any time."""


class ScriptLimits(NamedTuple):
    """What one run of a script may take."""

    instructions: int = 1_000_000
    seconds: float = 0.03
    memory: int = 2**23


class ScriptFailure(NamedTuple):
    """Why a script has no result; `is_spent` if it exceeded a limit, `is_waiting` if it may not run yet."""

    reason: str
    is_spent: bool = False
    is_waiting: bool = False


class Script(NamedTuple):
    chunk: Any
    function: str


_LIMITS = ("too many instructions", "too much time", "not enough memory")


class Sandbox:
    """Compiles and runs scripts, one at a time."""

    def __init__(self, limits: ScriptLimits = ScriptLimits()) -> None:  # noqa: B008 - it cannot be changed
        self._limits = limits
        self._lua = LuaRuntime(
            unpack_returned_tuples=True,
            register_eval=False,
            register_builtins=False,
            attribute_filter=_deny,
            max_memory=_HARD_CAP,
        )
        for name in ("python", "io", "package", "coroutine"):
            self._lua.globals()[name] = None
        quantity = self._load("quantity")
        driver = self._load("driver", self._load("patterns"), self._load("kube", quantity))
        self._compile, self._run = driver["compile"], driver["run"]
        self._take, self._collect, self._stop = driver["take"], driver["collect"], driver["stop"]

    @property
    def memory(self) -> int:
        """Bytes that Lua holds."""
        return int(self._lua.get_memory_used(total=True))

    def compile(self, source: str, function: str, *, is_tried: bool = True) -> Script | ScriptFailure:
        """Compile a script that defines the function; `is_tried`: run it once to see that it does."""
        try:
            if len(source.encode()) > LONGEST_SCRIPT:
                return ScriptFailure(f"the script is longer than {LONGEST_SCRIPT} bytes")
            chunk, problem = self._compile(source, function)
        except (LuaError, UnicodeError) as error:
            return ScriptFailure(_first_line(error))
        if chunk is None:
            return ScriptFailure(_read_reason(problem))
        script = Script(chunk, function)
        return (self._call(script, (), self._limits) if is_tried else None) or script

    def run(
        self,
        script: Script,
        *arguments: Any,  # noqa: ANN401 - any JSON
        limits: ScriptLimits | None = None,
    ) -> tuple[Any, Any] | ScriptFailure:
        """Call the function of a script, and return its first two results as JSON."""
        limits = limits or self._limits
        failure = self._call(script, arguments, limits)
        if failure is not None and failure.reason == _LIMITS[2]:
            self._collect()
            failure = self._call(script, arguments, limits)
        if failure is not None:
            return failure
        try:
            (first, second), reader = self._take(), ResultReader(limits.seconds)
            return reader.read(first, arguments), reader.read(second, ())
        except TooLarge as error:
            self._collect()
            return ScriptFailure(f"the result is too large: {error}", is_spent=True)
        except (ConversionError, UnicodeDecodeError) as error:
            return ScriptFailure(f"the result cannot be read: {error}")

    def _call(self, script: Script, arguments: Sequence[Any], limits: ScriptLimits) -> ScriptFailure | None:
        """Run a script under the cap. Nothing is converted meanwhile, since that could not be undone."""
        try:
            if has_too_many(arguments):
                return ScriptFailure(f"the object has more than {MOST_GIVEN} values")
            given = [self._convert(each) for each in arguments]
        except (LuaError, OverflowError, UnicodeEncodeError, msgspec.MsgspecError) as error:
            return ScriptFailure(f"the object cannot be read in Lua: {_first_line(error)}")
        self._lua.set_max_memory(self.memory + limits.memory, total=True)
        try:
            answer = self._run(script.chunk, script.function, limits.instructions, limits.seconds, *given)
        except (LuaError, UnicodeError) as error:
            # The budget ended, or memory did, between the script and the driver.
            self._stop()
            answer = (False, _LIMITS[2] if isinstance(error, LuaMemoryError) else _first_line(error))
        finally:
            self._lua.set_max_memory(_HARD_CAP, total=True)
        if answer is True or answer[0]:
            return None
        reason = _read_reason(answer[1])
        is_spent = reason in _LIMITS
        if is_spent:
            self._collect()
        return ScriptFailure(reason, is_spent)

    def _convert(self, value: Any) -> Any:  # noqa: ANN401 - any JSON in, a value of Lua out
        return self._lua.table_from(value, recursive=True) if isinstance(value, (dict, list)) else value

    def _load(self, name: str, *arguments: Any) -> Any:  # noqa: ANN401 - a Lua value
        return self._lua.execute(_read_source(name), *arguments)


@cache
def _read_source(name: str) -> str:
    return (files("federation.interpreters") / "lua" / f"{name}.lua").read_text()


def _deny(*_: object) -> None:
    raise AttributeError("scripts cannot reach Python")


def _read_reason(escaped: object) -> str:
    """Read the text of an error as the driver writes it; what is no UTF-8 becomes a replacement character."""
    return unquote_to_bytes(str(escaped)).decode(errors="replace")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
