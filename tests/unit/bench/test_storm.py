"""The fleet of a storm, what is read of its moves from the audit log, and its report."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench.storm import __main__ as command
from bench.storm import reporting
from bench.storm.fleet import HIGH, LOW, Fleet
from bench.storm.storming import OURS, THEIRS
from bench.storm.tracing import Quantiles, count_calls, measure, trace
from bench.storm.watching import EvictionCounter, Prober, subtract
from localcluster.audit_log import Call

FLEET = Fleet(nodes=500, seed=1)


def call(resource: str, at: float, body: dict[str, Any], *, code: int | None = 200, **more: Any) -> Call:
    answered = None if code is None else at + 0.25
    named = {"user": "us", "credential": "", "verb": "create", "namespace": "shop", "name": "web", **more}
    return Call(resource=resource, received=at, answered=answered, code=code, body=body, **named)


def eviction(at: float, move: str, **more: Any) -> Call:
    body = {"metadata": {"annotations": {"reberth.dev/move": move}}, "deleteOptions": {}}
    return call("pods/eviction", at, body, **more)


def history(at: float, *, opened: tuple[str, ...] = (), past: tuple[str, ...] = (), **more: Any) -> Call:
    status = {"open": [{"id": each} for each in opened], "past": [{"id": each} for each in past]}
    return call("evictionhistories/status", at, {"status": status}, **more)


def test_a_fifth_of_the_nodes_is_full_and_gives_away_half() -> None:
    assert FLEET.places == Fleet(nodes=500, seed=1).places != Fleet(nodes=500, seed=2).places
    counts = Counter(FLEET.places)
    assert (len(counts), set(counts.values()), FLEET.moves) == (100, {8}, 400)
    # One fewer on a full node is still too much, and an empty node with one more is still under-utilised.
    assert (8 - 4) / 8 == HIGH / 100 > LOW / 100 > 1 / 8
    owners = list(FLEET.list_owners())
    uids = {each["metadata"]["name"]: f"uid of {each['metadata']['name']}" for each in owners}
    pods = list(FLEET.list_pods(uids))
    assert len(pods) == sum(each["spec"]["replicas"] for each in owners) == 800
    assert all("status" not in each for each in pods)
    (of,) = pods[7]["metadata"]["ownerReferences"]
    assert of["uid"] == f"uid of {pods[7]['metadata']['labels']['app']}"


def test_the_times_of_a_move_are_those_of_its_first_write_its_eviction_and_its_outcome() -> None:
    found = trace(
        [
            history(10, opened=("m-1",)),
            history(11, opened=("m-1", "m-2")),
            call("pods/eviction", 11.5, {"deleteOptions": {"dryRun": ["All"]}}),
            eviction(12, "m-1", code=201),
            eviction(13, "m-2", code=429),
            eviction(13, "m-3", code=None),
            history(14, opened=("m-2",), past=("m-1",), code=409),
            history(15, opened=("m-2",), past=("m-1",)),
            history(16, past=("m-1", "m-2")),
            call("pods/eviction", 100, {"deleteOptions": {}}, code=201),
        ]
    )
    assert found.measure_until_evicted() == (2.25, 2.25, 1)
    assert found.measure_until_ended() == (5.25, 5.25, 1)
    assert found.measure_requests() == (0.25, 0.25, 2)
    assert dict(found.refused) == {"429": 1}
    assert found.count_by_minute(12.25, 120) == [1, 1]
    assert found.count_by_minute(12.25, 30) == [1]


def test_quantiles_are_those_of_ordered_figures() -> None:
    assert measure([]) == Quantiles(0, 0, 0)
    assert measure(range(100, -1, -1)) == (50, 99, 101)


def test_calls_are_counted_by_verb_and_resource() -> None:
    calls = [history(1), history(2), eviction(3, "m", user="them")]
    assert count_calls(calls, "us") == {"create evictionhistories/status": 2}


def test_evictions_are_counted_as_the_log_grows(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    counter = EvictionCounter(log)
    assert counter.look() == 0
    line = '{"stage":"ResponseComplete","objectRef":{"resource":"pods","subresource":"eviction"}}\n'
    with log.open("a") as file:
        file.write(line + '{"stage":"ResponseComplete","objectRef":{"resource":"pods"}}\n' + line[:40])
        file.flush()
        assert (counter.look(), counter.look()) == (1, 1)
        file.write(line[40:])
        file.flush()
        assert counter.look() == 2
    log.write_text(line)  # the server has begun a new file
    assert counter.look() == 3


async def test_probes_are_answered_when_the_event_loop_is_free(unused_tcp_port: int) -> None:
    async def answer(_: web.Request) -> web.Response:
        await asyncio.sleep(0.01)
        return web.Response()

    app = web.Application()
    app.router.add_get("/healthz", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    prober = Prober(f"http://127.0.0.1:{unused_tcp_port}/healthz")
    task = asyncio.create_task(prober.run())
    try:
        await asyncio.sleep(0.1)  # nobody answers yet
        assert not prober.seconds
        await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
        while not prober.seconds:
            await asyncio.sleep(0.01)
    finally:
        task.cancel()
        await runner.cleanup()
    assert prober.seconds[0] >= 0.01


def figures(**more: Any) -> dict[str, Any]:
    return {
        "evicted": 1300,
        "by minute": [600, 700],
        "until evicted": [0.4, 1.25, 1300],
        "until ended": [3.0, 6.0, 1290],
        "requests": [0.009, 0.02, 1300],
        "calls": {"us": {"create pods/eviction": 1300}, "extender": {"watch pods": 1300}},
        "usage": {"rescheduler-0": {"cpu": 12.0, "memory": 2e8, "highest": 3e8}},
        "probes": [0.001, 0.002],
        **more,
    }


def test_each_arm_is_a_row_and_each_program_too() -> None:
    theirs = figures(**{"until evicted": [0, 0, 0], "until ended": [0, 0, 0], "probes": []}, usage={})
    measured = {OURS: figures(), THEIRS: theirs}
    ours, other = reporting.describe_moves(measured).splitlines()[2:]
    assert ours == ("| Reberth | 1,300 | 600, 700 | 400 ms | 1.2 s | 3.0 s | 6.0 s | 9 ms | 20 ms | 2.0 |")
    assert other.startswith("| descheduler | 1,300 | 600, 700 | - | - | - | - | 9 ms |")
    assert "| rescheduler | 12.0 s, 200 MB (300) | - |" in reporting.describe_usage(measured)
    assert reporting.describe_probes(measured).splitlines()[2:] == ["| Reberth | 1 ms | 2 ms | 2 ms | 2 |"]


def test_cpu_is_that_of_the_time_in_between() -> None:
    before = {"etcd": {"cpu": 1.0, "memory": 5.0}}
    after = {"etcd": {"cpu": 3.0, "memory": 6.0}, "kwok": {"cpu": 1.0, "memory": 1.0}}
    assert subtract(after, before) == {
        "etcd": {"cpu": 2.0, "memory": 6.0},
        "kwok": {"cpu": 1.0, "memory": 1.0},
    }


async def test_arms_that_have_ended_before_are_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    async def storm(arm: str, *_: Any, **__: Any) -> dict[str, Any]:
        measured.append(arm)
        return figures()

    monkeypatch.setattr(command, "storm", storm)
    kept = tmp_path / THEIRS / "figures.json"
    kept.parent.mkdir()
    kept.write_text(json.dumps(figures(evicted=77)))
    monkeypatch.setattr("sys.argv", ["bench.storm", "--keep", str(tmp_path)])
    text = await command.measure(command._parse())
    assert measured == [OURS]
    assert "| Reberth | 1,300 |" in text
    assert "| descheduler | 77 |" in text
    assert (tmp_path / OURS / "figures.json").exists()


def test_the_short_variant_has_fewer_nodes_and_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench.storm", "--short"])
    options = command._parse()
    assert (options.nodes, options.seconds, options.short) == (500, 30, True)


def test_another_checkout_must_have_the_benchmark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["bench.storm", "--beside", f"Before={tmp_path}"])
    with pytest.raises(SystemExit):
        command._parse()
