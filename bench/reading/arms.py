"""The arms of the measurement: each is a program that prints its figures as JSON."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from localcluster.build import build
from localcluster.build.products import Product

Figures = Mapping[str, float]

OURS = "Reberth"
BYTES = "Reberth, the bytes alone"
STEPPED_OVER = "Reberth, the bytes stepped over"
DEFAULT = "client-go, protobuf (its default)"
LEAN = "client-go, protobuf, without managedFields"
JSON = "client-go, JSON"

INFORMER = Product(
    "informer",
    "0.36.3",  # of client-go
    "bench/reading/informer",
    {"informer": "."},
    folder=Path(__file__).parent / "informer",
)
_LONGEST = 300.0


class Failed(Exception):
    """An arm did not come to its end."""


def reading(kubeconfig: Path) -> dict[str, list[str]]:
    """The command of each arm that reads from an API server."""
    informer = [str(build.programs(INFORMER)["informer"]), f"-kubeconfig={kubeconfig}"]
    return {
        OURS: [sys.executable, "-m", "bench.reading.mirror", str(kubeconfig)],
        BYTES: [sys.executable, "-m", "bench.reading.bytes_alone", str(kubeconfig)],
        STEPPED_OVER: [sys.executable, "-m", "bench.reading.bytes_alone", str(kubeconfig), "--step-over"],
        DEFAULT: informer,
        LEAN: [*informer, "-drop-managed-fields"],
        JSON: [*informer, "-content-type=application/json"],
    }


def decoding(pods: int, nodes: int, *extra: str) -> list[str]:
    return [sys.executable, "-m", "bench.reading.decoding", str(pods), str(nodes), *extra]


async def interleave(commands: Mapping[str, Sequence[str]], *, runs: int) -> dict[str, list[Figures]]:
    """Run the arms in turn, again and again, so that other load affects all of them equally."""
    figures: dict[str, list[Figures]] = {arm: [] for arm in commands}
    for _ in range(runs):
        for arm, command in commands.items():
            figures[arm].append(await run(command))
            print(f"{arm}: {figures[arm][-1]}", file=sys.stderr, flush=True)  # noqa: T201 - tells progress
    return figures


async def run(command: Sequence[str]) -> Figures:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(_LONGEST):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Failed(f"{' '.join(command)} ended with {process.returncode}")
    figures: Figures = json.loads(said)
    return figures
