"""Prove Reberth on a version of Kubernetes: build it, list what differs, run the proofs, write their results.

python -m tests.live.support.prove_version VERSION [--against VERSION] [--clusters N] [--only PART ...]
"""

import argparse
import asyncio
import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from localcluster.build import build, products
from localcluster.components import API_SERVER, CONTROLLERS, KWOK, SCHEDULER
from localcluster.state_dir import running
from reberth.forecast.state.proven_versions import FORECAST, ProofResult, read_results
from tests.live.forecast.support.configurations import CONFIGURATIONS
from tests.live.forecast.support.extender_oracle import recalling
from tests.live.forecast.support.oracle import Oracle, asking
from tests.live.forecast.support.verdicts import judge
from tests.live.forecast.support.version_differences import count_differences
from tests.live.support.program_differences import list_changes, list_served, read_gates
from tests.support.resumable_rounds import RESULTS_FILE, Proof

WITH_EXTENDER = f"{FORECAST}, with Reberth's extender"
PARTS = ("programs", "schedulers", "proofs")
_FIRST_SEED = 1000
LEAST_WRITTEN = 50
"""Fewer clusters try the script, and prove nothing."""


async def list_program_differences(version: str, against: str) -> None:
    """Print what the programs and the served kinds differ in."""
    built = [build.programs(products.kubernetes(each)) for each in (against, version)]
    for name in (API_SERVER, CONTROLLERS, SCHEDULER):
        one, other = (read_gates(programs[name]) for programs in built)
        _print(f"Feature gates of {name}", list_changes(one, other))
    one, other = [await _ask_served(each) for each in (against, version)]
    _print("Served kinds", list_changes(one, other))


async def _ask_served(version: str) -> dict[str, str]:
    unneeded = [CONTROLLERS, SCHEDULER, KWOK]
    async with running(kubernetes=version, without=unneeded) as cluster, cluster.client() as client:
        return await list_served(client)


async def list_scheduler_differences(version: str, against: str, clusters: int) -> None:
    """Print what the schedulers answer differently about the same pods."""
    found, pods = Counter[str](), 0
    async with asking("one", kubernetes=against) as one, asking("other", kubernetes=version) as other:
        for seed in range(_FIRST_SEED, _FIRST_SEED + clusters):
            case = one.case(seed)
            for ours, theirs in zip(await one.ask(case), await other.ask(other.case(seed)), strict=True):
                pods += 1
                found += count_differences(ours.truth, theirs.truth)
    _print(f"Of {pods} pods", (f"{count} with another {what}" for what, count in found.most_common()))


async def prove(version: str, clusters: int) -> None:
    """Run the proofs one after another; the result of each is written when it ends."""
    async with asking("proving", kubernetes=version) as oracle:
        await _judge(version, FORECAST, oracle, clusters)
        for name, configuration in CONFIGURATIONS.items():
            await oracle.configure(configuration)
            await _judge(version, f"{FORECAST}, {name}", oracle, clusters)
    async with recalling("proving", kubernetes=version) as oracle:
        await oracle.ask_extender(weight_of_scores=2)
        await _judge(version, WITH_EXTENDER, oracle, clusters)


async def _judge(version: str, name: str, oracle: Oracle, clusters: int) -> None:
    """Judge the clusters that this very code has not passed yet."""
    seeds = range(_FIRST_SEED, _FIRST_SEED + clusters)
    proof = Proof(f"{version}-{name.replace(' ', '-')}")
    for seed in proof.remaining(seeds):
        judgement = await judge(oracle, [seed])
        _print("", judgement.wrong)
        proof.note([] if judgement.wrong else [seed])
    passed = len(proof.passed() & set(seeds))
    found = ProofResult(passed, clusters, dt.datetime.now(dt.UTC).date().isoformat())
    is_written = write_result(RESULTS_FILE, version, name, found)
    print(f"{version}, {name}: {passed} of {clusters}{'' if is_written else ', not written'}", flush=True)


def write_result(file: Path, version: str, name: str, found: ProofResult) -> bool:
    """Write the result of a proof, versions in descending order, unless it says less than what is there."""
    results = {release: dict(proofs) for release, proofs in read_results(file.read_bytes()).items()}
    known = results.get(version, {}).get(name)
    if found.rounds < LEAST_WRITTEN or (found.is_passed and known and known.rounds > found.rounds):
        return False
    results.setdefault(version, {})[name] = found
    newest = sorted(results, key=lambda release: [*map(int, release.split("."))], reverse=True)
    content = {release: results[release] for release in newest}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    return True


def _print(title: str, lines: Sequence[str] | Iterator[str]) -> None:
    said = [*([f"\n{title}:"] if title else []), *(f"  {line}" for line in lines)]
    print("\n".join(said), flush=True) if said else None


async def main(arguments: argparse.Namespace) -> None:
    version, against, clusters = arguments.version, arguments.against, arguments.clusters
    if "programs" in arguments.only:
        await list_program_differences(version, against)
    if "schedulers" in arguments.only:
        await list_scheduler_differences(version, against, min(clusters, 100))
    if "proofs" in arguments.only:
        await prove(version, clusters)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.live.support.prove_version", description=__doc__)
    parser.add_argument("version", choices=products.KUBERNETES_VERSIONS)
    parser.add_argument("--against", default=products.KUBERNETES, choices=products.KUBERNETES_VERSIONS)
    parser.add_argument("--clusters", type=int, default=500, help="random clusters for each proof")
    parser.add_argument("--only", nargs="+", default=PARTS, choices=PARTS, help="leave out the other parts")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main(_parse()))
