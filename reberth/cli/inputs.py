"""Arguments of the commands: files, times and versions; an error names the invalid argument."""

import argparse
import sys
import time
from pathlib import Path
from typing import TypeVar

import msgspec

from reberth import __version__
from reberth.client.access import Access, find_namespace
from reberth.cluster.object_files import LoadedObjects, TextError, load_objects
from reberth.cluster.pods.requests import Version, read_version
from reberth.config import settings
from reberth.forecast.state.profile import KubeScheduler, default_scheduler, parse_scheduler
from reberth.values.errors import ConfigurationError
from reberth.values.timestamp import TimeError, parse_time

S = TypeVar("S", bound=msgspec.Struct)


class UsageError(ConfigurationError):
    """The arguments, or the files that they name, are invalid."""


def add_version_argument(parser: argparse.ArgumentParser) -> None:
    """Add --version: all programs have the same one."""
    parser.add_argument("--version", action="version", version=f"reberth {__version__}")


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --kubeconfig and --context, which have the same meaning in every program."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig file (default: $KUBECONFIG, else the pod's service account, else ~/.kube/config)",
    )
    parser.add_argument(
        "--context", metavar="NAME", help="context of the kubeconfig (default: its current context)"
    )


def read_access(arguments: argparse.Namespace) -> Access:
    """Give the values of the arguments that `add_access_arguments` has added."""
    return Access(arguments.kubeconfig, arguments.context)


def add_namespace_argument(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add -n; `default` says what applies without it."""
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAMESPACE",
        type=_namespace_argument,
        help=f"namespace of a name that has none (default: {default})",
    )


def list_access_options(arguments: argparse.Namespace) -> list[str]:
    """Give the options again that lead to the same cluster, for a command that the user may run next."""
    given = {"--kubeconfig": arguments.kubeconfig, "--context": arguments.context}
    return [word for option, value in given.items() if value for word in (option, value)]


def add_output_argument(parser: argparse.ArgumentParser, *formats: str, default: str = "table") -> None:
    """Add -o; `wide`, which kubectl has taught people to type, is the table."""
    parser.add_argument(
        "-o",
        "--output",
        choices=formats,
        type=lambda text: "table" if text == "wide" else text,
        default=default,
        help=f"output format (default: {default})",
    )


def _namespace_argument(text: str) -> str:
    if not text or "/" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no namespace")
    return text


def read_name(text: str, argument: str, arguments: argparse.Namespace, *, live: bool) -> tuple[str, str]:
    """Read NAMESPACE/NAME or NAME, given as this argument; `live` names are of the kubeconfig's cluster.

    Objects in a file may be of any cluster, so the kubeconfig says nothing about them.
    """
    namespace, slash, name = text.rpartition("/")
    if not name or "/" in namespace or (slash and not namespace):
        raise UsageError(f"{argument}: {text!r} must be NAME or NAMESPACE/NAME")
    if namespace or arguments.namespace:
        return namespace or arguments.namespace, name
    return find_namespace(read_access(arguments)) if live else "default", name


def read_bytes(path: str, argument: str) -> bytes:
    """Read the file that an argument names; - is standard input."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{argument}: {path}: cannot be read: {error.strerror}") from None


def read_settings(path: str | None, default: S, argument: str) -> S:
    """Read settings of the same type as the default; without a file, give the default."""
    if path is None:
        return default
    return settings.parse(read_bytes(path, argument), type(default), source=path)


def read_scheduler(path: str | None, version: Version, argument: str = "--scheduler-config") -> KubeScheduler:
    """Read the scheduler's configuration; without a file, give the default one."""
    if path is None:
        return default_scheduler(version)
    return parse_scheduler(read_bytes(path, argument), version=version, source=path)


def read_objects(
    path: str, *, now: float, version: Version, annotations: frozenset[str] = frozenset()
) -> LoadedObjects:
    """Read objects from the output of kubectl; pods keep these annotations, too.

    Raises UsageError if no object is usable: the answer would be about an empty cluster.
    """
    content = read_bytes(path, "--cluster")
    try:
        reading = load_objects(content, now=now, version=version, annotations=annotations)
    except TextError as error:
        raise UsageError(f"--cluster: {path}: {error}") from None
    if reading.is_useless:
        fault = ": ".join([path, "contains no usable object", *map(str, reading.faults[:1])])
        raise UsageError(f"--cluster: {fault}")
    return reading


def read_now(text: str | None) -> float:
    """Read a time; without one, give the current time."""
    try:
        return time.time() if text is None else parse_time(text)
    except TimeError as error:
        raise UsageError(f"--now: {error}") from None


def version_argument(text: str) -> Version:
    """Read a version; argparse needs its own error."""
    try:
        return read_version(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
