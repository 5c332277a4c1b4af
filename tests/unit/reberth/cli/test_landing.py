"""`python -m reberth landing` for an operator."""

import json
from pathlib import Path
from typing import Any

import pytest

from reberth.__main__ import main
from tests.support.builders import node, owner, pod

OBJECTS = [
    node("a"),
    node("b"),
    pod("waiting", cpu="1"),
    pod("web-1", node="a", namespace="shop", owned_by=owner("ReplicaSet", "web"), cpu="1"),
    pod("done", node="a", phase="Succeeded"),
]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return str(file)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["reberth", "landing", *arguments])
    return main()


def answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(monkeypatch, *arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_pods_are_forecast_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    now = "2026-01-02T03:04:05Z"
    found = answer(monkeypatch, capsys, "--cluster", cluster, "waiting", "shop/web-1", "--now", now)
    assert (found["now"], found["kubernetes"]) == (now, "1.37")
    states = {name: pod["state"] for name, pod in found["pods"].items()}
    assert states == {"default/waiting": "pending", "shop/web-1": "next"}


def test_the_namespace_of_a_pod_may_be_given_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    """The kubeconfig says nothing about the objects in a file."""
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    found = answer(monkeypatch, capsys, "--cluster", cluster, "-n", "shop", "web-1", "default/waiting")
    assert list(found["pods"]) == ["shop/web-1", "default/waiting"]


def test_all_pending_pods_can_be_forecast(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    found = answer(monkeypatch, capsys, "--cluster", cluster, "--pending", "--kubernetes", "v1.35.4")
    assert (list(found["pods"]), found["kubernetes"]) == (["default/waiting"], "1.35")


@pytest.mark.parametrize("output", ["-otable", "-owide", "--output=table", "--output=wide"])
def test_output_table_is_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str, output: str
) -> None:
    assert run(monkeypatch, "--cluster", cluster, "waiting", output) == 0
    assert capsys.readouterr().out.startswith("default/waiting (pending)\n")


def test_an_unusable_object_is_named_and_ignored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    bad = node("c")
    bad["status"]["allocatable"]["cpu"] = "lots"
    file = tmp_path / "bad.json"
    file.write_text(json.dumps({"kind": "List", "items": [*OBJECTS, bad]}))
    assert run(monkeypatch, "--cluster", str(file), "waiting") == 0
    assert "skipped: Node c: status.allocatable.cpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "name a pod, or use --pending"),
        (("missing",), "the objects contain no pod default/missing"),
        (("done",), "POD: default/done has finished"),
        (("waiting", "--now", "noon"), "--now: invalid time 'noon'"),
        (("waiting", "--scheduler-config", "/nowhere"), "/nowhere: cannot be read: No such file"),
        (("waiting", "--scheduler-config", __file__), "test_landing.py"),
    ],
)
def test_bad_arguments_get_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cluster: str,
    arguments: tuple[str, ...],
    complaint: str,
) -> None:
    assert run(monkeypatch, "--cluster", cluster, *arguments) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert len(said.splitlines()) == 1


def test_binary_objects_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "binary"
    file.write_bytes(b"\xff\xfe{")
    assert run(monkeypatch, "--cluster", str(file), "waiting") == 2
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("text", ["hello", "5", "# no\n", '{"kind": "List", "items": null}'])
def test_a_file_without_objects_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    file = tmp_path / "objects"
    file.write_text(text)
    assert run(monkeypatch, "--cluster", str(file), "--pending") == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"reberth: --cluster: {file}: contains no usable object")
    assert (said.out, said.err.count("\n")) == ("", 1)


def test_objects_without_a_node_give_a_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "pods.json"
    file.write_text(json.dumps(pod("web", node="a")))
    assert run(monkeypatch, "--cluster", str(file), "--pending", "-o", "wide") == 0
    said = capsys.readouterr()
    assert said.err == "reberth: no node in the objects\n"
    assert said.out == "no pending pods\n"


@pytest.mark.parametrize(
    ("version", "warns"), [("1.34", True), ("1.35", False), ("1.36", False), ("1.37", False), ("1.38", True)]
)
def test_an_unverified_version_gives_a_warning(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cluster: str,
    version: str,
    *,
    warns: bool,
) -> None:
    assert run(monkeypatch, "--cluster", cluster, "waiting", "--kubernetes", version) == 0
    expected = f"reberth: forecasts are not proven for Kubernetes {version}, only for 1.35, 1.36 and 1.37\n"
    assert capsys.readouterr().err == (expected if warns else "")


def test_a_malformed_version_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, "--cluster", cluster, "waiting", "--kubernetes", "newest")
    assert "invalid version 'newest', e.g. 1.36" in capsys.readouterr().err


def test_forecast_takes_the_settings_file_that_the_extender_reads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cluster: str, tmp_path: Path
) -> None:
    file = tmp_path / "extender.yaml"
    file.write_text(
        "apiVersion: reberth.dev/v1alpha1\nkind: ExtenderSettings\nadvice: {draw: false}\nserver: {port: 1}\n"
    )
    options = ("--cluster", cluster, "--extender-settings", str(file))
    assert "waiting" in str(answer(monkeypatch, capsys, "waiting", *options))
