"""The arguments of `python -m rescheduler move`: which pod, to which nodes, and why."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from reberth.cli.inputs import UsageError, add_namespace_argument, read_name
from rescheduler.moves.move_request import LONGEST_REASON

_EXAMPLE = "such as `move shop/web-1 --to node-7,node-12`"


class MoveArguments(NamedTuple):
    """The pod as (namespace, name), and its destinations, the best one first."""

    pod: tuple[str, str]
    to: tuple[str, ...]
    reason: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pod",
        nargs="?",
        metavar="POD",
        help="NAMESPACE/NAME, or NAME with -n; required, before or behind the nodes",
    )
    add_namespace_argument(parser, default="that of the kubeconfig's context")
    parser.add_argument(
        "--to",
        action="append",
        nargs="+",
        default=[],
        metavar="NODE",
        help="destinations, the best one first: N1,N2 or N1 N2; repeatable (default: the forecast chooses)",
    )
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="FILE",
        help="file of kind ReschedulerPolicy, for its rates and back-off (default: all defaults)",
    )
    parser.add_argument(
        "--reason", default="requested by hand", help="reason, shown in the note, the history and the Event"
    )


def read_arguments(arguments: argparse.Namespace) -> MoveArguments:
    """Raises UsageError with the name of the argument."""
    pod, to = _split(arguments.pod, arguments.to)
    nodes = dict.fromkeys(node for words in to for word in words for node in _read_nodes(word))
    name = read_name(pod, "POD", arguments, live=True)
    return MoveArguments(name, tuple(nodes), _read_reason(arguments.reason))


def _split(pod: str | None, to: Sequence[Sequence[str]]) -> tuple[str, Sequence[Sequence[str]]]:
    """Tell POD from the nodes: in `--to n1 n2 POD` argparse takes all three for nodes.

    POD is required, so without another one the last word is POD.
    """
    if pod is not None:
        return pod, to
    if not to or len(to[-1]) == 1:
        raise UsageError(f"POD is missing: {_EXAMPLE}")
    *before, last = to
    return last[-1], [*before, last[:-1]]


def _read_nodes(word: str) -> Iterator[str]:
    for node in word.split(","):
        if not node or "/" in node:
            raise UsageError(f"--to: {word!r} is no list of nodes, {_EXAMPLE}")
        yield node


def _read_reason(text: str) -> str:
    """The eviction history limits its length, and `notes list` shows it in one line."""
    if not text.isprintable() or len(text.encode()) > LONGEST_REASON:
        raise UsageError(f"--reason: must be one line of at most {LONGEST_REASON} bytes")
    return text
