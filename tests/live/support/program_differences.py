"""What the programs of two versions of Kubernetes differ in: feature gates, and the kinds that are served."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from localcluster.client import Client

_GATE = re.compile(r"^\s*(?:--feature-gates \S+\s.*?)?(?:kube:)?(\w+)=true\|false \((\w+) - default=(\w+)\)")


def read_gates(program: Path) -> dict[str, str]:
    """Read the feature gates of a program with their stage and default, from its own help."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    found = filter(None, map(_GATE.match, told.splitlines()))
    return {gate[1]: f"{gate[2]}, {'on' if gate[3] == 'true' else 'off'}" for gate in found}


async def list_served(client: Client) -> dict[str, str]:
    """List the kinds that an API server serves, each with its verbs."""
    groups = (await client.get("/apis"))["groups"]
    versions = [each["groupVersion"] for group in groups for each in group["versions"]]
    served = {}
    for path in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        for each in (await client.get(path))["resources"]:
            served[f"{path.removeprefix('/apis/')} {each['name']}"] = ", ".join(sorted(each["verbs"]))
    return served


def list_changes(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    """Tell each entry that is new, gone, or another."""
    for name in sorted(one.keys() | other.keys()):
        ours, theirs = one.get(name), other.get(name)
        if ours != theirs:
            yield f"{name}: {ours or 'not there'} -> {theirs or 'gone'}"
