"""Record the real scheduler's decisions about cases.

python -m tests.live.forecast.support.record FOLDER FIRST LAST [CONFIGURATION [KUBERNETES]]
"""

import asyncio
import sys
import time
from pathlib import Path

from tests.live.forecast.support import truth
from tests.live.forecast.support.configurations import CONFIGURATIONS
from tests.live.forecast.support.oracle import asking


async def record(
    folder: Path, seeds: range, *, configuration: str | None = None, kubernetes: str | None = None
) -> None:
    async with asking("recording", kubernetes=kubernetes) as oracle:
        if configuration:
            await oracle.configure(CONFIGURATIONS[configuration])
        for seed in seeds:
            started = time.monotonic()
            for number, recorded in enumerate(await oracle.ask(oracle.case(seed))):
                truth.write(folder, f"case-{seed * 3 + number:03d}", recorded)
                found = recorded.truth
                print(seed, number, len(found.feasible), found.bound, found.message)
            print(f"{time.monotonic() - started:.2f} s", flush=True)


def main(folder: str, first: str, last: str, configuration: str = "", kubernetes: str | None = None) -> None:
    seeds = range(int(first), int(last))
    asyncio.run(record(Path(folder), seeds, configuration=configuration or None, kubernetes=kubernetes))


if __name__ == "__main__":
    main(*sys.argv[1:])
