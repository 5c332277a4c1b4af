"""The measurement of interpreters: what it measures, and how it is written down."""

from msgspec.structs import replace

from bench.interpreters.__main__ import describe
from bench.interpreters.asking import GAME, Figures, ask_health, find_slowest, hold, load

WELL = Figures(
    script=52_000.0,
    script_beside_loops=41_000.0,
    table=326_000.0,
    built_in=997_000.0,
    slowest=0.022,
    objects=3000,
    grown=8_000_000,
    lua=580_000,
)


def test_the_worst_of_all_runs_is_held_against_the_goals() -> None:
    text = describe([WELL, replace(WELL, script=9_000.0, slowest=0.05)], "Measured on a machine.")
    assert "| a script of a user | 9,000 to 52,000 |" in text
    assert "| readings of health by a script, a second of CPU | ≥ 10,000 | 9,000.0 | no |" in text
    assert "| CPU time between two answers beside 1,000 loops | ≤ 100 ms | 50.0 ms | yes |" in text
    assert "| RSS of 3,000 objects with health and replicas | ≤ 30 MB | 8.0 MB | yes |" in text


def test_what_is_asked_answers_beside_loops() -> None:
    rules = load(5)
    assert ask_health(GAME, rules)() == "Healthy"
    assert 0 < find_slowest(rules, ask_health(GAME, rules), [f"Bad{at}" for at in range(5)]) < 1
    kept, _ = hold(load(), 3)
    assert [(health, said.replicas) for _, health, said in kept] == [("Healthy", 3)] * 3
