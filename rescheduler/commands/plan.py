"""`python -m rescheduler plan`: which pods would be moved where and why, for a file or the live cluster."""

import argparse
import shutil
import sys
from pathlib import Path

import msgspec

from reberth.cli.inputs import (
    UsageError,
    add_output_argument,
    list_access_options,
    read_bytes,
    read_name,
)
from reberth.cluster.snapshot import Snapshot
from reberth.values.table import wrap_text
from rescheduler.commands import cluster_inputs
from rescheduler.commands.spinner import show_progress
from rescheduler.model.plan import Plan
from rescheduler.model.plan_memory import PlanMemory
from rescheduler.planning.explain import PodExplanation, explain_pod
from rescheduler.planning.output import write_guide, write_json, write_table, write_words, write_yaml
from rescheduler.planning.planner import plan

DESCRIPTION = "Show which pods would be moved where and why, and why the others stay."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cluster_inputs.add_arguments(parser)
    parser.add_argument("--memory", metavar="FILE", help="read the memory of the last plan from this file")
    parser.add_argument("--remember", metavar="FILE", help="write the memory for the next plan to this file")
    parser.add_argument("--why", metavar="POD", help="explain why NAMESPACE/NAME is or is not moved")
    add_output_argument(parser, "json", "yaml", "table")


async def answer(arguments: argparse.Namespace) -> str:
    """Give what is printed. Raises ConfigurationError, or ReberthError for a cluster that cannot be read."""
    memory = None if arguments.memory is None else _read_memory(arguments.memory)
    inputs = await cluster_inputs.read_inputs(arguments)
    width = shutil.get_terminal_size((160, 0)).columns
    if arguments.why:
        place = _find_pod(inputs.snapshot, arguments)
        with show_progress(inputs.describe):
            why = explain_pod(place, inputs.snapshot, inputs.policy, memory, model=inputs.model)
        return _write_why(why, arguments.output, width)
    with show_progress(inputs.describe):
        made, remembered = plan(inputs.snapshot, inputs.policy, memory, model=inputs.model)
    if arguments.remember:
        _write(arguments.remember, msgspec.json.encode(remembered, order="deterministic"))
    if arguments.output == "table":
        return _write_table(made, arguments, width)
    return write_json(made) if arguments.output == "json" else write_yaml(made)


def _write_table(made: Plan, arguments: argparse.Namespace, width: int) -> str:
    """Explain the table to people; a pipe or a file gets the table alone."""
    table = write_table(made, width=width)
    if not sys.stdout.isatty():
        return table
    live = arguments.cluster is None
    guide = write_guide(made, width=width, access=list_access_options(arguments) if live else None)
    return f"{table}\n\n{guide}"


def _find_pod(snapshot: Snapshot, arguments: argparse.Namespace) -> int:
    namespace, name = read_name(arguments.why, "--why", arguments, live=arguments.cluster is None)
    place = snapshot.pods.named(namespace, name)
    if place is None:
        raise UsageError(f"--why: there is no pod {namespace}/{name}")
    return place


def _write_why(why: PodExplanation, output: str, width: int) -> str:
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(why), indent=2).decode()
    if output == "yaml":
        return msgspec.yaml.encode(why).decode().rstrip()
    parts = (("policies:", why.policies), ("rules:", why.rules), ("plan:", why.plan))
    lines = wrap_text(f"{why.pod} on {why.node or 'no node'}: {why.verdict}", width=width, rest="    ")
    for title, words in parts:
        rows = [(f"{'!' if word.against else ' '} {word.who}", word.says) for word in words]
        lines += write_words(title, rows, width=width)
    return "\n".join(lines)


def _read_memory(path: str) -> PlanMemory:
    try:
        return msgspec.json.decode(read_bytes(path, "--memory"), type=PlanMemory)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"--memory: {path} is not a plan-memory file: {error}") from None


def _write(path: str, content: bytes) -> None:
    try:
        Path(path).write_bytes(content)
    except OSError as error:
        raise UsageError(f"--remember: {path} cannot be written: {error.strerror}") from None
