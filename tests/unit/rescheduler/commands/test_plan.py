"""`python -m rescheduler plan` for an operator."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from reberth.cli.inputs import read_objects
from reberth.values.errors import ConfigurationError, ReberthError
from rescheduler.commands import cluster_inputs
from rescheduler.planning.output import write_guide
from rescheduler.planning.planner import plan as plan_pods
from rescheduler.planning.policy_file import ReschedulerPolicy
from tests.support.rescheduler.plans import NOW as NOON
from tests.support.rescheduler.plans import PLAIN_MODEL, ROOT, WITH_EXTENDER, run_command

CASES = ROOT / "tests" / "cases"
FULL = CASES / "a2-preferred-node-full" / "objects.yaml"
ROOMY = CASES / "a2-preferred-node-with-room" / "objects.yaml"
NOW = ("--now", "2026-11-18T12:00:00Z")


def test_json_and_yaml_have_the_same_content() -> None:
    told = [run_command("--cluster", ROOMY, *NOW, "-o", form) for form in ("json", "yaml")]
    assert json.loads(told[0]) == yaml.safe_load(told[1])
    assert json.loads(told[0])["kind"] == "Plan"


def test_a_plan_has_every_documented_field() -> None:
    made = json.loads(run_command("--cluster", ROOMY, *NOW, "-o", "json"))
    assert list(made) == ["kind", "now", "moves", "refused", "nodes", "score", "warnings"]
    assert list(made["moves"][0]) == [
        "pod",
        "uid",
        "workload",
        "from",
        "destinations",
        "policy",
        "mode",
        "level",
        "gain",
        "cost",
        "risk",
        "worth",
        "reason",
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_keeps_to_the_width_of_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run_command("--cluster", FULL, *NOW).splitlines()
    assert max(map(len, lines)) <= max(width, 60)
    assert lines[0] == "Plan of 2026-11-18T12:00:00Z: 0 moves, 3 refusals"


@pytest.mark.parametrize(
    ("width", "before", "after"),
    [
        (
            200,
            "shop/web-1  hdd-1  ssd-1  100%",
            "2      84     other nodes meet more of its preferred node affinity",
        ),
        (90, "shop/web-1  hdd-1  ssd-1  100%", "    other nodes meet more of its preferred node affinity"),
        (60, "shop/web-1", "    other nodes meet more of its preferred node affinity"),
    ],
)
def test_a_narrow_table_leaves_nothing_out(
    width: int, before: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run_command("--cluster", ROOMY, *NOW).splitlines()
    assert any(line.startswith(before) for line in lines)
    assert any(line.endswith(after) for line in lines)


def test_figures_have_units_and_no_needless_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    cluster = CASES / "a4-room-for-one-of-four" / "objects.yaml"
    told = run_command("--cluster", cluster, *NOW)
    score = [re.split(r"  +", line) for line in told.splitlines()[-4:]]
    assert score == [
        ["broken rules", "4", "3"],
        ["pods on leaving nodes", "0", "0"],
        ["requests above the thresholds", "0.00 nodes", "0.08 nodes"],
        ["spread of the nodes' utilisation", "20.8%", "13.5%"],
    ]
    assert "  brokenRules  recommend  1      187    its node" in told
    assert not re.search(r"\d\.\d{3}", told)


def test_a_terminal_gets_a_legend_and_the_next_step_and_a_pipe_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    piped = run_command("--cluster", ROOMY, *NOW)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    told = run_command("--cluster", ROOMY, *NOW)
    assert told.startswith(f"{piped}\n\n")
    guide = told.removeprefix(piped)
    for term in ("CHANCE", "MODE", "LEVEL", "WORTH", "gain", "cost", "risk"):
        assert f"\n{term} " in guide
    assert "set mode: apply in its policy" in guide
    assert "--to" not in guide  # the pods of a file cannot be moved
    refused = run_command("--cluster", FULL, *NOW)
    assert refused.endswith("Why was a pod not moved? Add --why shop/db-1")
    assert "WORTH" not in refused
    for output in ("json", "yaml"):
        assert "CHANCE" not in run_command("--cluster", ROOMY, *NOW, "-o", output)


def test_the_next_step_leads_to_the_same_cluster() -> None:
    objects = read_objects(str(ROOMY), now=NOON, version=(1, 36)).snapshot
    made, _ = plan_pods(objects, ReschedulerPolicy(), None, model=PLAIN_MODEL)
    told = write_guide(made, width=300, access=["--context", "my cluster"])
    command = "python -m rescheduler move --context 'my cluster' shop/web-1 --to ssd-1"
    assert f"To make one of these moves now: {command}" in told.splitlines()


def test_why_is_printed_in_full_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    told = run_command("--cluster", ROOMY, *NOW, "--why", "shop/web-1")
    assert max(map(len, told.splitlines())) <= 64
    words = " ".join(told.split())
    assert words.count("other nodes meet more of its preferred node affinity") == 3


def test_many_refusals_are_counted_by_rule(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all((CASES / "a8-budget-allows-nothing" / "objects.yaml").read_text()))
    pods = [each for each in objects if each["kind"] == "Pod"]
    more = [
        {**pod, "metadata": {**pod["metadata"], "name": f"more-{number}", "uid": f"more-{number}"}}
        for number, pod in enumerate(pods)
    ]
    file = tmp_path / "many.yaml"
    file.write_text(yaml.safe_dump_all([*objects, *more[:2], *more[2:9]]))
    told = run_command("--cluster", file, *NOW)
    assert "NOT MOVED BY RULE" in told
    assert "PDB" in told


@pytest.mark.parametrize("form", ["json", "yaml", "table"])
def test_why_explains_one_pod(form: str) -> None:
    told = run_command("--cluster", FULL, *NOW, "--why", "shop/web-1", "-o", form)
    assert "no better node has room" in told
    assert "LastReady" in told


def test_the_namespace_of_why_may_be_given_apart() -> None:
    told = run_command("--cluster", FULL, *NOW, "--why", "web-1", "-n", "shop")
    assert told.startswith("shop/web-1 on ")


def test_why_of_a_pod_that_no_policy_proposes() -> None:
    told = run_command("--cluster", ROOMY, *NOW, "--why", "shop/db-2")
    assert told.startswith("shop/db-2 on hdd-1: no policy proposes to move it")


def test_a_memory_passes_from_plan_to_plan(tmp_path: Path) -> None:
    memory, cluster = tmp_path / "memory.json", CASES / "a7-one-toleration-for-two-taints" / "objects.yaml"
    memory.write_text("{}")
    counts = []
    for minute in (0, 4, 5):
        now = ("--now", f"2026-11-18T12:0{minute}:00Z")
        told = run_command("--cluster", cluster, *now, "--memory", memory, "--remember", memory, "-o", "json")
        counts.append(len(json.loads(told)["moves"]))
    assert counts == [0, 0, 1]


def test_an_annotation_of_the_policys_own_choice_protects(tmp_path: Path) -> None:
    pinned, asked = tmp_path / "objects.yaml", tmp_path / "policy.yaml"
    pods = list(yaml.safe_load_all(ROOMY.read_text()))
    for each in pods:
        each["metadata"].setdefault("annotations", {})["example.com/pinned"] = "yes"
    pinned.write_text(yaml.safe_dump_all(pods))
    head = "apiVersion: reberth.dev/v1alpha1\nkind: ReschedulerPolicy\n"
    asked.write_text(f"{head}protections: {{protectedPodAnnotations: [example.com/pinned]}}\n")
    assert "1 move" in run_command("--cluster", pinned, *NOW)
    told = run_command("--cluster", pinned, *NOW, "--policy", asked)
    assert "0 moves" in told
    assert "annotation example.com/pinned" in " ".join(told.split())


def test_an_unreadable_object_is_named_and_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "objects.yaml"
    bad = "kind: Node\napiVersion: v1\nmetadata: {name: bad}\nstatus: {allocatable: {cpu: lots}}\n"
    file.write_text(f"{ROOMY.read_text()}---\n{bad}")
    run_command("--cluster", file, *NOW)
    assert "skipped: Node bad: status.allocatable.cpu" in capsys.readouterr().err


def test_objects_without_a_node_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "objects.json"
    file.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    assert "0 moves" in run_command("--cluster", file, *NOW)
    assert "the objects contain no node" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cluster", "/nowhere"), "--cluster: /nowhere: cannot be read: No such file"),
        (("--cluster", "/dev/null"), "--cluster: /dev/null: contains no usable object"),
        (("--cluster", FULL, "--now", "noon"), "--now: invalid time 'noon'"),
        (("--cluster", FULL, "--why", "nobody"), "--why: there is no pod default/nobody"),
        (("--cluster", FULL, "--why", "a/b/c"), "--why: 'a/b/c' must be NAME or NAMESPACE/NAME"),
        (("--cluster", FULL, "--memory", FULL), "--memory: .*objects.yaml is not a plan-memory file"),
        (("--cluster", FULL, "--policy", WITH_EXTENDER), "kind"),
        (
            ("--cluster", FULL, "--remember", "/nowhere/memory"),
            "--remember: /nowhere/memory cannot be written",
        ),
        (("--cluster", FULL, "--scheduler-config", FULL), "objects.yaml"),
        (
            ("--cluster", FULL, "--extender-settings", "/nowhere"),
            "--extender-settings: /nowhere: cannot be read",
        ),
        (("--cluster", FULL, "--policy", "/nowhere"), "--policy: /nowhere: cannot be read"),
        (
            ("--cluster", FULL, "--scheduler-config", "/nowhere"),
            "--scheduler-config: /nowhere: cannot be read",
        ),
    ],
)
def test_bad_input_is_named(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        run_command(*arguments)


def test_input_that_is_neither_json_nor_yaml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text("{")
    with pytest.raises(ConfigurationError, match=r"objects\.yaml: "):
        run_command("--cluster", file)


@pytest.mark.parametrize("version", ["1.35", "v1.36.3"])
def test_the_version_of_kubernetes_may_be_named(version: str) -> None:
    assert "1 move" in run_command("--cluster", ROOMY, *NOW, "--kubernetes", version)


def test_no_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_command("--cluster", ROOMY, "--kubernetes", "latest")
    assert "invalid version 'latest', e.g. 1.36" in capsys.readouterr().err


def test_stdin_is_read_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.write(writing, ROOMY.read_bytes())
    os.close(writing)
    with os.fdopen(reading) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert "1 move" in run_command("--cluster", "-", *NOW)


class Look:
    """One look that is over after a second, or never."""

    def __init__(self, *, ends: bool) -> None:
        self.waiting = {"pods"}
        self._seconds = 1 if ends else 10_000

    async def take(self, *_: object) -> None:
        await asyncio.sleep(self._seconds)


@pytest.mark.looptime
async def test_a_cluster_that_does_not_answer_is_waited_for_a_minute() -> None:
    await cluster_inputs._take(Look(ends=True), None, None)  # type: ignore[arg-type] # asked for no more
    with pytest.raises(ReberthError, match="not read within 60 s"):
        await cluster_inputs._take(Look(ends=False), None, None)  # type: ignore[arg-type] # likewise
