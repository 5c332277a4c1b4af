"""python -m bench.interpreters: what scripts of users cost, and what they cost others."""

import operator
import subprocess
import sys
from collections.abc import Iterator

import msgspec

from bench import calling
from bench.interpreters.asking import LOOPS, Figures
from bench.reading.arms import Failed
from bench.reading.conditions import Conditions

RUNS, OBJECTS = 3, 3000
LEAST_RATE, MOST_MS, MOST_MB = 10_000, 100, 30
_RATES = {
    "script": "a script of a user",
    "script_beside_loops": f"the same beside {LOOPS:,} customizations that loop",
    "table": "a rule of the table of kinds",
    "built_in": "a rule that is built in",
}


def ask_apart(size: int) -> Figures:
    """Measure in a new process, so that its memory is that of nothing else."""
    command = [sys.executable, "-m", "bench.interpreters.asking", str(size)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=600)  # noqa: S603 - this file
    if done.returncode:
        raise Failed(done.stderr.decode())
    return msgspec.json.decode(done.stdout, type=Figures)


def _list_goals(least: Figures, most: Figures) -> Iterator[str]:
    goals = (
        ("readings of health by a script, a second of CPU", LEAST_RATE, least.script, "", operator.ge),
        (
            f"CPU time between two answers beside {LOOPS:,} loops",
            MOST_MS,
            most.slowest * 1e3,
            " ms",
            operator.le,
        ),
        (
            f"RSS of {OBJECTS:,} objects with health and replicas",
            MOST_MB,
            most.grown / 1e6,
            " MB",
            operator.le,
        ),
    )
    for what, goal, figure, unit, is_met in goals:
        sign, met = ("≥" if is_met is operator.ge else "≤"), "yes" if is_met(figure, goal) else "no"
        yield f"| {what} | {sign} {goal:,}{unit} | {figure:,.1f}{unit} | {met} |"


def describe(runs: list[Figures], conditions: str) -> str:
    least, most = msgspec.structs.asdict(runs[0]), msgspec.structs.asdict(runs[0])
    for run in runs[1:]:
        for name, value in msgspec.structs.asdict(run).items():
            least[name], most[name] = min(least[name], value), max(most[name], value)
    rows = "\n".join(f"| {name} | {least[key]:,.0f} to {most[key]:,.0f} |" for key, name in _RATES.items())
    reached = "\n".join(_list_goals(Figures(**least), Figures(**most)))
    return f"""## Interpreters of kinds

{conditions}

An object of 1.4 KB with three conditions; its health is read again and again in one process, by the CPU time
of that process. Each of {len(runs)} runs is a process of its own; figures are the lowest and the highest.

| health by | readings a second |
| --- | --- |
{rows}

{LOOPS:,} scripts take {most["lua"] / 1e6:.1f} MB of Lua. Each of them loops and catches errors, and is asked
once; a script that works is asked after each of them.

| goal | wanted | worst of the runs | met |
| --- | --- | --- | --- |
{reached}
"""


async def measure() -> str:
    conditions = Conditions()
    runs = [ask_apart(OBJECTS) for _ in range(RUNS)]
    return describe(runs, conditions.describe())


def main() -> int:
    return calling.run("interpreters", measure(), Failed)


if __name__ == "__main__":
    sys.exit(main())
