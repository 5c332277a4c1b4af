"""The pod and the nodes of a move are told apart wherever they stand."""

import argparse
from pathlib import Path

import pytest

from reberth.cli.inputs import UsageError, add_access_arguments
from rescheduler.commands.move_arguments import MoveArguments, add_arguments, read_arguments
from tests.support.kubeconfig import write_contexts


def read(*words: str) -> MoveArguments:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    add_access_arguments(parser)
    return read_arguments(parser.parse_args(words))


@pytest.mark.parametrize(
    "words",
    [
        "shop/web --to n1,n2 --to n3",
        "shop/web --to n1 n2 n3",
        "shop/web --to n1 n2 --to n3 n1",
        "--to n1 n2 n3 shop/web",
        "--to n1,n2,n3 shop/web",
        "--to n1,n2 --to n3 shop/web",
        "--to n1,n2 --to n3 -- shop/web",
        "--to n1,n2 n3 -n shop web",
        "--to n1,n2 n3 web -n shop",
        "-n other --to n1,n2 n3 shop/web",
    ],
)
def test_the_pod_is_found_before_and_behind_the_nodes(words: str) -> None:
    assert read(*words.split())[:2] == (("shop", "web"), ("n1", "n2", "n3"))


def test_without_nodes_the_forecast_chooses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    assert read("web") == (("default", "web"), (), "requested by hand")


def test_without_a_namespace_that_of_the_context_is_taken(tmp_path: Path) -> None:
    file = str(write_contexts(tmp_path / "kubeconfig", current="c", c="shop", d="bank"))
    assert read("web", "--kubeconfig", file).pod == ("shop", "web")
    assert read("web", "--kubeconfig", file, "--context", "d").pod == ("bank", "web")
    assert read("web", "--kubeconfig", file, "-n", "other").pod == ("other", "web")
    assert read("own/web", "--kubeconfig", file, "-n", "other").pod == ("own", "web")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "POD is missing: such as `move shop/web-1 --to node-7,node-12`"),
        ("--to n1", "POD is missing"),
        ("--to n1 --to n2", "POD is missing"),
        ("web --to n1,", "--to: 'n1,' is no list of nodes"),
        ("web --to n1 shop/web", "--to: 'shop/web' is no list of nodes"),
        ("--to shop/web n1", "--to: 'shop/web' is no list of nodes"),
        ("/web", "POD: '/web' must be NAME or NAMESPACE/NAME"),
        ("a/b/c", "POD: 'a/b/c' must be NAME or NAMESPACE/NAME"),
    ],
)
def test_an_error_names_the_argument(words: str, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        read(*words.split())
