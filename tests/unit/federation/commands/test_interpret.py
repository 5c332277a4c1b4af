"""`python -m federation interpret`: what it prints, and how it refuses."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from federation.__main__ import main
from tests.support.federation.crds import example

GAME = """
apiVersion: example.com/v1
kind: Game
metadata: {name: chess, generation: 2}
spec:
  replicas: 3
  template: {spec: {containers: [{name: a, resources: {requests: {cpu: 500m}}}]}}
status: {observedGeneration: 2, readyReplicas: 3}
"""
MORE = """
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: more}
spec:
  target: {apiVersion: example.com/v1, kind: Game}
  customizations:
    retention:
      luaScript: "function Retain(d, o) d.spec.replicas = o.spec.replicas return d end"
    statusAggregation:
      luaScript: "function AggregateStatus(d, items) d.status.sum = #items return d end"
    dependencyInterpretation:
      luaScript: "function GetDependencies(d) return {{apiVersion = 'v1', kind = 'Secret', name = 'a'}} end"
    statusReflection:
      luaScript: "function ReflectStatus(o) return o.none.there end"
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    (tmp_path / "kind.yaml").write_text(yaml.safe_dump(example("ResourceInterpreterCustomization")))
    (tmp_path / "more.yaml").write_text(MORE)
    (tmp_path / "game.yaml").write_text(GAME)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["federation", "interpret", *arguments])
        code = main()
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_all_operations_that_have_a_script_are_tried(run: Run) -> None:
    code, out, _ = run("--kind", "kind.yaml", "--object", "game.yaml", "--desired-replica", "7")
    first, second, third = out.splitlines()
    assert code == 0
    assert first == "InterpretHealth: true"
    assert second == 'InterpretReplica: 3, {"resourceRequest": {"cpu": "500m"}}'
    assert third.startswith("ReviseReplica: ")
    assert '"replicas": 7' in third


def test_operation_may_need_more_than_the_object(run: Run, tmp_path: Path) -> None:
    (tmp_path / "copy.yaml").write_text(GAME.replace("replicas: 3", "replicas: 9"))
    (tmp_path / "items.yaml").write_text("clusterName: m1\n---\nclusterName: m2\n")
    files = ("--kind", "more.yaml", "--object", "game.yaml")
    code, out, _ = run(*files, "--operation", "Retain", "--observed", "copy.yaml")
    assert (code, '"replicas": 9' in out) == (0, True)
    code, out, _ = run(*files, "--operation", "AggregateStatus", "--status", "items.yaml")
    assert (code, '"sum": 2' in out) == (0, True)
    code, out, _ = run(*files, "--operation", "InterpretDependency")
    assert out == 'InterpretDependency: [[{"apiVersion": "v1", "kind": "Secret", "name": "a"}]]\n'
    code, _, err = run(*files, "--operation", "Retain")
    assert (code, err) == (2, "federation: --observed: is needed for this operation\n")


def test_script_that_fails_is_told(run: Run) -> None:
    files = ("--kind", "kind.yaml", "--kind", "more.yaml", "--object", "game.yaml")
    code, out, _ = run(*files, "--operation", "InterpretStatus")
    assert code == 1
    assert out.startswith("InterpretStatus: failed: ReflectStatus:1: attempt to index field 'none'")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (("kind.yaml", "missing.yaml"), "--object: missing.yaml: cannot be read: No such file or directory"),
        (("game.yaml", "game.yaml"), "--kind: game.yaml: has a Game, not a ResourceInterpreterCustomization"),
        (("kind.yaml", "more.yaml"), "--kind: no script for any operation of config.karmada.io/v1alpha1"),
        (("kind.yaml", "two.yaml"), "--object: two.yaml: has 2 objects, one is expected"),
        (("kind.yaml", "empty.yaml"), "--object: empty.yaml: has no object"),
        (
            ("misspelt.yaml", "game.yaml"),
            "--kind: misspelt.yaml: spec.customizations.health: unknown field; known: ",
        ),
        (("kindless.yaml", "game.yaml"), "--kind: kindless.yaml: spec.target.kind: must be set"),
        (("odd.yaml", "game.yaml"), "--kind: odd.yaml: Expected `object`, got `int` - at `$.spec`"),
    ],
)
def test_wrong_file_is_named(run: Run, tmp_path: Path, files: tuple[str, str], said: str) -> None:
    (tmp_path / "two.yaml").write_text(GAME + "---" + GAME)
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "odd.yaml").write_text(
        "kind: ResourceInterpreterCustomization\nmetadata: {name: a}\nspec: 7\n"
    )
    (tmp_path / "misspelt.yaml").write_text(MORE.replace("retention:", "health:"))
    (tmp_path / "kindless.yaml").write_text(MORE.replace(", kind: Game", ""))
    code, out, err = run("--kind", files[0], "--object", files[1])
    assert (code, out) == (2, "")
    assert err.startswith(f"federation: {said}")


DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 1}
spec: {replicas: 2, template: {spec: {containers: [{name: a}]}}}
status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}
"""


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (DEPLOYMENT, 0, "InterpretHealth: true\nInterpretReplica: 2, null\n"),
        (DEPLOYMENT.replace("updatedReplicas: 2, ", ""), 0, "InterpretHealth: false"),
        ("apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: a}", 0, "InterpretHealth: false\n"),
        (GAME, 2, "federation: --kind: is needed: nothing is known of the health of example.com/v1 Game\n"),
        (
            DEPLOYMENT.replace("[{name: a}]", "7"),
            2,
            "federation: --object: Deployment web: spec.template.spec: ",
        ),
        (DEPLOYMENT.replace("{name: web, generation: 1}", "7"), 2, "federation: --object: Expected `object`"),
    ],
)
def test_without_scripts_it_says_what_is_built_in(
    run: Run, tmp_path: Path, text: str, code: int, said: str
) -> None:
    (tmp_path / "one.yaml").write_text(text)
    found, out, err = run("--object", "one.yaml")
    assert (found, (out or err)[: len(said)]) == (code, said)
