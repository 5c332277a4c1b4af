"""Drawn scripts in Lua, of what interpreters use: numbers, texts, patterns, tables, loops, recursion, errors.

What the documentation lists as different in gopher-lua is not drawn, such as fractions as texts.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.support.builders import Object

OBJECT: Final[Object] = {
    "metadata": {"name": "web-1", "labels": {"app": "shop", "tier": "a-b.c"}},
    "spec": {
        "replicas": 3,
        "image": "registry.io:5000/shop/web:v1.2.3",
        "list": [3, 1, 2],
        "names": ["b", "a", "c"],
        "ratio": 0.25,
        "empty": "",
    },
    "status": {
        "ready": 3,
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Progressing", "status": "False"}],
    },
}
DOCUMENTED: Final = (
    "if o.status.ready == o.spec.replicas then return true end return false",
    "local r = {nodeClaim = {}} r.nodeClaim.selector = o.spec.none r.request = {cpu = '1'} return r",
    "local n, found = o.metadata.name, {} if n ~= 'default' then found[1] = {name = n} end return found",
    "o.spec.replicas = 5 return o",
    "local status = {} status.ready = o.status.ready return status",
    "local sum = 0 for i = 1, #o.spec.list do sum = sum + o.spec.list[i] end o.status = {sum = sum} return o",
)
"""What the examples in Karmada's documentation do, in words of our own."""

# What @n, @t, @c, @p, @g and @i stand for, the simple forms first: those alone where it is deep.
_SIMPLE: Mapping[str, Sequence[str]] = {
    "n": (
        *("o.spec.replicas", "o.status.ready", "#o.spec.list", "7", "0", "2.5", "-3", "o.spec.ratio"),
        *("tonumber('12')", "10", "(tonumber('x') or 1)", "0x1f"),
    ),
    "t": (
        *("o.metadata.name", "o.spec.image", "o.status.phase", "o.spec.empty", "('x-y_z')"),
        "o.metadata.labels.tier",
    ),
    "c": (
        *("o.status.ready == o.spec.replicas", "o.status.phase ~= 'Running'", "o.none == nil"),
        "o.spec.list[1] > 2",
    ),
    "p": (
        *("%d+", "[%w%.]+$", "^(%w+)%-", "(%w+)[:/]", "%.", "a*", "[^:]+", "(.-):", "v(%d+)%.(%d+)", "%s"),
        *("%w-$", "()b", "[a-f]+", "%a%d?", "^.", ".$", "%b/:", "[%-_]"),
    ),
    "g": ("%d+", "[%w%.]+$", "(%w+)[:/]", "%.", "a*", "[^:]+", "(.-):", "%w-$", "()b", "[a-f]+", "%a%d?"),
    "i": tuple(map(str, range(-4, 6))),
}
_DEEP: Mapping[str, Sequence[str]] = {
    "n": (
        *("(@n + @n)", "(@n - @n)", "(@n * @n)", "(@n / (@n ^ 2 + 11))", "(@n % 4)", "math.floor(@n)"),
        *("math.max(@n, @n)", "math.min(@n, @n)", "math.abs(@n)", "(@n ^ 2)"),
    ),
    "t": (
        *("@t .. @t", "string.upper(@t)", "string.sub(@t, @i, @i)", "(string.gsub(@t, '@p', ''))"),
        *("(string.gsub(@t, '@p', '<%0>'))", "tostring((string.match(@t, '@p')))", "(@t):lower()"),
        *("tostring(math.floor(@n) % 1000)", "string.format('%s/%d', @t, math.floor(@n) % 1000)"),
        *("string.rep(@t, @i)", "string.reverse(@t)", "(@t .. math.floor(@n) % 1000)", "tostring(@c)"),
        *("string.format('%q', @t)", "string.char(string.byte(@t .. 'x', 1))"),
    ),
    "c": (
        *("(@c and @c)", "(@c or @c)", "not (@c)", "@n < @n", "@n >= @n", "(@t) == (@t)", "(@t) < (@t)"),
        "string.find(@t, '@p') ~= nil",
    ),
}
_JOINED = "table.sort(k) return table.concat(k, @t)"
_BODIES = (
    "return @n",
    "return @t",
    "return @c",
    "local n = 0 for i = 1, #o.spec.list do n = n + o.spec.list[i] * @n end return n",
    "for _, c in ipairs(o.status.conditions) do if c.type == 'Ready' then return c.status == 'True' end end",
    f"local k = {{}} for n in pairs(o.metadata.labels) do k[#k + 1] = n end {_JOINED}",
    "local ok, e = pcall(function() error('x', 0) end) return {ok, type(e), @c}",
    "local ok, e = pcall(function() return o.a.b end) return {ok, type(e)}",
    "local ok, e = pcall(function() error({code = @n}) end) return {ok, e.code}",
    "o.status.sum = @n o.status.phase = @t return o.status",
    f"local k = o.spec.names table.sort(k, function(a, b) return a > b end) table.insert(k, 2, @t) {_JOINED}",
    f"local k = {{}} for each in string.gmatch(@t, '@g') do k[#k + 1] = tostring(each) end {_JOINED}",
    "local function f(n) if n < 1 then return 0 end return n + f(n - 1) end return f(@i) + select('#', @n)",
    "local i, s = 0, @t while i < 3 do i = i + 1 s = s .. i end repeat i = i - 1 until i == 0 return {s, #s}",
)
_HOLE = re.compile("@([ntcpgi])")
_DEEPEST, _SIMPLE_SHARE = 3, 0.35


def draw_scripts(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        yield write_function(_fill(chance, chance.choice(_BODIES), 0))


def _fill(chance: random.Random, form: str, depth: int) -> str:
    return _HOLE.sub(lambda hole: _draw(chance, hole[1], depth), form)


def _draw(chance: random.Random, kind: str, depth: int) -> str:
    if kind not in _DEEP or depth >= _DEEPEST or chance.random() < _SIMPLE_SHARE:
        return chance.choice(_SIMPLE[kind])
    return _fill(chance, chance.choice(_DEEP[kind]), depth + 1)


def write_function(body: str) -> str:
    return f"function F(o) {body} end"
