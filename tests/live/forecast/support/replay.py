"""Compare the forecast with recorded truth: `python -m tests.live.forecast.support.replay FILE...`."""

import sys
from pathlib import Path

from tests.live.forecast.support import truth
from tests.live.forecast.support.verdicts import compare


def main(names: list[str]) -> int:
    """Exit code 1 if anything differs."""
    found = {name: compare(truth.read(Path(name))) for name in names}
    wrong = {name: lines for name, lines in found.items() if lines}
    for name, lines in wrong.items():
        print("\n  ".join([name, *lines]))
    print(f"{len(found) - len(wrong)} of {len(found)} equal")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
