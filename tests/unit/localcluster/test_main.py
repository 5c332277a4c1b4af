"""`python -m localcluster` given what it cannot use: one line that names it, and nothing is begun."""

import asyncio
import socket
from collections.abc import Awaitable
from pathlib import Path

import pytest

from localcluster import __main__ as command
from localcluster import state_dir
from localcluster.build import build
from localcluster.client import all_of
from localcluster.errors import LocalClusterError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; there is nothing to build here."""
    monkeypatch.setenv("LOCALCLUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(build, "programs", lambda *_: {})
    return tmp_path / "home"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["localcluster", *arguments])
    return command.main()


@pytest.mark.parametrize("text", ["", "a/b", "../a", ".", "..", "-x", "a b", "é"])
@pytest.mark.parametrize("verb", ["up", "down", "status", "env", "kubeconfig"])
def test_an_invalid_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path, verb: str, text: str
) -> None:
    assert run(monkeypatch, verb, f"--name={text}") == 1
    assert capsys.readouterr().err.startswith(f"localcluster: {text!r} is not a valid cluster name")
    assert not home.exists()


@pytest.mark.parametrize("verb", ["status", "env", "kubeconfig"])
def test_a_cluster_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path, verb: str
) -> None:
    assert run(monkeypatch, verb, "--name", "gone") == 1
    assert capsys.readouterr().err == f"localcluster: there is no cluster gone in {home}\n"


@pytest.mark.parametrize("content", ["", "{", "{}", '{"components": [], "flags": {}, "stranger": 1}'])
def test_a_cluster_of_another_version_is_named_and_can_be_taken_down(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path, content: str
) -> None:
    (home / "old").mkdir(parents=True)
    (home / "old" / "cluster.json").write_text(content)
    assert run(monkeypatch, "env", "--name", "old") == 1
    assert (
        capsys.readouterr().err
        == f"localcluster: cluster old cannot be read ({home}/old); delete it with `down`\n"
    )
    assert run(monkeypatch, "down", "--name", "old") == 0
    assert not (home / "old").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--nodes", "-3"), ("--nodes", "x"), ("--zones", "0"), ("--pods", "0"), ("--pods", "1.5")],
)
def test_an_invalid_count_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "up", option, value)
    assert ended.value.code == 2
    assert f"argument {option}: '{value}' is not a whole number" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--port", "65536", "localhost:1"), "'65536' is not a valid port: the highest is 65535"),
        (("--port", "0", "localhost:1"), "'0' is not a whole number of at least 1"),
        (("--port", "1", "localhost"), "'localhost' is not of the form HOST:PORT"),
        (("--port", "1", "localhost:http"), "'http' is not a whole number of at least 1"),
    ],
)
def test_an_invalid_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(monkeypatch, "forward", *arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_port_in_use_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(monkeypatch, "forward", "--port", str(port), "127.0.0.1:1") == 1
    said = capsys.readouterr().err
    assert said.startswith("localcluster: ")
    assert f"('127.0.0.1', {port})" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        ("a: [", "is not valid YAML: while parsing"),
        ("- 1", "holds a document that is not a mapping"),
        ("", "holds 0 documents instead of one"),
        ("{}\n---\n{}", "holds 2 documents instead of one"),
    ],
)
def test_a_scheduler_configuration_that_cannot_be_used_begins_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    content: str | None,
    said: str,
) -> None:
    file = tmp_path / "scheduler.yaml"
    if content is not None:
        file.write_text(content)
    assert run(monkeypatch, "up", "--scheduler-config", str(file)) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"localcluster: {file} {said}")
    assert error.count("\n") == 1
    assert state_dir.names() == []


async def test_of_many_calls_the_failure_itself_is_raised() -> None:
    async def fail() -> None:
        raise LocalClusterError("the third node is refused")

    calls: list[Awaitable[object]] = [asyncio.sleep(0), asyncio.sleep(10), fail()]
    with pytest.raises(LocalClusterError, match="the third node"):
        await all_of(calls)
