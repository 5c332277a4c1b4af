"""`python -m rescheduler report`: what there is to gain in a cluster; nothing is installed or written."""

import argparse
import shutil

from reberth.cli.inputs import add_output_argument
from rescheduler.commands import cluster_inputs
from rescheduler.commands.spinner import show_progress
from rescheduler.report.cluster_report import make_report
from rescheduler.report.output import write_json, write_text
from rescheduler.report.page import write_page

DESCRIPTION = (
    "Show what would move in a cluster and why it pays, what cannot move and by which rule, and what to "
    "switch on first. It only reads: the right to list is enough, and nothing has to be installed."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    cluster_inputs.add_arguments(parser)
    add_output_argument(parser, "html", "json", "table")


async def answer(arguments: argparse.Namespace) -> str:
    """Give what is printed. Raises ConfigurationError, or ReberthError for a cluster that cannot be read."""
    inputs = await cluster_inputs.read_inputs(arguments)
    with show_progress(inputs.describe):
        report = make_report(inputs.snapshot, inputs.policy, inputs.model, gaps=inputs.gaps)
    if arguments.output == "html":
        return write_page(report)
    if arguments.output == "json":
        return write_json(report)
    return write_text(report, width=shutil.get_terminal_size((120, 0)).columns)
