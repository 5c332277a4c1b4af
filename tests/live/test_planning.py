"""`python -m rescheduler plan` of the live cluster: it needs no file, and touches nothing."""

import argparse
import json

import pytest

from localcluster.cluster import Cluster
from reberth.errors import ReberthError
from rescheduler import plan_command

pytestmark = pytest.mark.live


async def ask(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    plan_command.add_arguments(parser)
    return await plan_command.answer(parser.parse_args(arguments))


async def test_a_live_cluster_is_planned_without_a_file(
    shared: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(await ask("--kubeconfig", str(shared.kubeconfig), "-o", "json"))
    assert (made["kind"], made["moves"]) == ("Plan", [])
    assert "planned without evictionhistories: not installed" in capsys.readouterr().err


async def test_without_a_right_to_see_pods_there_is_no_plan(shared: Cluster) -> None:
    with pytest.raises(ReberthError, match="nodes cannot be read"):
        await ask("--kubeconfig", str(shared.user("without-rights")))
