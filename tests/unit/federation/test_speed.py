"""A gate on the cost of decisions, against parsing the same clusters in plain Python.

Both are interpreted, stand in one process and are measured in CPU time: so neither a busy machine nor another
processor matters much.
"""

import random
from statistics import median

import msgspec
import pytest

from bench.federation.deciding import decide_apart
from bench.interpreters.asking import GAME, LOOPS, ask_health, find_slowest, load
from federation.scheduling import Fleet, decide
from tests.support.cpu_cost import PlainDecoder, cost, few_collections
from tests.support.federation.many_bindings import draw_bindings, draw_clusters
from tests.support.federation.objects import NOW

pytestmark = pytest.mark.speed

CLUSTERS = 100
BINDINGS = 1000
TURNS = 9
NAMES = [f"member{number:03}" for number in range(CLUSTERS)]
# Where this was measured a core parsed the page 425 times a second and made 7,200 decisions, 0.06 pages each;
# 2,000 a second are 0.21.
MOST_PAGES = 0.12

# There a script said the health of an object 80,000 times a second, 0.0053 pages each; 10,000 are 0.043.
MOST_PAGES_FOR_HEALTH = 0.02
MOST_CPU_BETWEEN_ANSWERS = 0.1

# A process of its own took 1.4 s and 160 MB.
MOST_SECONDS, MOST_MEMORY = 10, 600e6


def test_a_core_makes_two_thousand_decisions_a_second_on_a_hundred_clusters() -> None:
    chance = random.Random(1)
    clusters, bindings = draw_clusters(chance, NAMES), draw_bindings(chance, BINDINGS, NAMES)
    page, fleet = msgspec.json.encode(clusters).decode(), Fleet(clusters)
    parse = PlainDecoder().decode
    with few_collections():
        turns = [
            (
                cost(lambda: [decide(each, fleet, now=NOW) for each in bindings]) / BINDINGS,
                cost(lambda: [parse(page) for _ in range(10)]) / 10,
            )
            for _ in range(TURNS)
        ]
    rate, pages = (1 / median(costs) for costs in zip(*turns, strict=True))
    print(f"{rate:.0f} decisions a second where the page is parsed {pages:.0f} times")
    assert median(decision / parsing for decision, parsing in turns) <= MOST_PAGES


def test_a_core_reads_ten_thousand_healths_a_second_by_a_script() -> None:
    clusters = draw_clusters(random.Random(1), NAMES)
    page, ask = msgspec.json.encode(clusters).decode(), ask_health(GAME, load())
    parse = PlainDecoder().decode
    with few_collections():
        turns = [
            (
                cost(lambda: [ask() for _ in range(2000)]) / 2000,
                cost(lambda: [parse(page) for _ in range(10)]) / 10,
            )
            for _ in range(TURNS)
        ]
    rate, pages = (1 / median(costs) for costs in zip(*turns, strict=True))
    print(f"{rate:.0f} readings a second where the page is parsed {pages:.0f} times")
    assert median(reading / parsing for reading, parsing in turns) <= MOST_PAGES_FOR_HEALTH


def test_a_thousand_loops_delay_the_health_of_others_by_a_tenth_of_a_second_at_most() -> None:
    rules = load(LOOPS)
    slowest = find_slowest(rules, ask_health(GAME, rules), [f"Bad{at}" for at in range(LOOPS)])
    print(f"{slowest * 1e3:.1f} ms of CPU between two answers")
    assert slowest <= MOST_CPU_BETWEEN_ANSWERS
    assert rules.interpreters.memory < 2**24


def test_ten_thousand_bindings_on_fifty_members_are_decided_in_seconds_and_little_memory() -> None:
    run = decide_apart("decisions", size=10_000)
    print(f"{run.cpu:.2f} s of CPU, {run.resident / 1e6:.0f} MB")
    assert run.cpu < MOST_SECONDS
    assert run.resident < MOST_MEMORY
