"""The versions of Kubernetes on which the forecast was held against the real scheduler.

`proven_versions.json` is written by the script that runs the proofs, and a page of the docs is made of it.
"""

from collections.abc import Mapping
from importlib.resources import files

import msgspec

from reberth.cluster.pods.requests import Version, read_version, write_version

FORECAST = "forecast"
"""The proof that a version needs: feasible nodes, refusals, scores and choice, in random clusters."""


class ProofResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many rounds of a proof passed, of how many, and when they ended."""

    passed: int
    rounds: int
    ended: str

    @property
    def is_passed(self) -> bool:
        return 0 < self.rounds == self.passed


Results = Mapping[str, Mapping[str, ProofResult]]
"""By release, such as 1.37.1, and by the name of the proof."""


def read_results(content: bytes) -> Results:
    return msgspec.json.decode(content, type=dict[str, dict[str, ProofResult]])


def find_proven(results: Results) -> tuple[Version, ...]:
    """Give the versions of which a release passed, in their order; patches only mend what a version does."""
    releases = (release for release, proofs in results.items() if FORECAST in proofs)
    passed = (release for release in releases if results[release][FORECAST].is_passed)
    return tuple(sorted({read_version(release) for release in passed}))


RESULTS = read_results((files("reberth.forecast.state") / "proven_versions.json").read_bytes())
PROVEN = find_proven(RESULTS)


def describe_unproven(version: Version) -> str | None:
    """Tell that nobody has proven the forecast on this version; None if somebody has."""
    if version in PROVEN:
        return None
    proven = [write_version(each) for each in PROVEN]
    known = " and ".join(filter(None, (", ".join(proven[:-1]), *proven[-1:])))
    return f"forecasts are not proven for Kubernetes {write_version(version)}, only for {known}"
