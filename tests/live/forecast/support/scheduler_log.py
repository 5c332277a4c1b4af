"""Parse the scores that kube-scheduler logs with -v=10."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PLUGIN = re.compile(
    r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
_EXTENDER = re.compile(
    r'"Extender scored node for pod" pod="([^"]+)" extender="([^"]+)" node="([^"]+)" score=(-?\d+)'
)
_TOTAL = re.compile(r'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)')
_ARRIVED = re.compile(r'"Add event for (scheduled pod|node)" (?:pod|node)="([^"]+)"')
Scores = Mapping[str, Mapping[str, int]]


@dataclass
class Scored:
    """The scores of one pod's last cycle."""

    plugins: dict[str, dict[str, int]] = field(default_factory=dict)
    extenders: dict[str, dict[str, int]] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)


class LogReader:
    """Reads a log that grows; each line once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = path.stat().st_size if path.exists() else 0
        self.scored: dict[str, Scored] = {}
        self.arrived: set[str] = set()

    def forget(self) -> None:
        self.scored.clear()
        self.arrived.clear()

    def read_on(self) -> None:
        for line in self._lines():
            if "score" in line:
                self._take_score(line)
            elif found := _ARRIVED.search(line):
                self.arrived.add(found[2])

    def _take_score(self, line: str) -> None:
        if found := _PLUGIN.search(line):
            pod, plugin, node, score = found.groups()
            self._of(pod).plugins.setdefault(node, {})[plugin] = int(score)
        elif found := _TOTAL.search(line):
            pod, node, score = found.groups()
            self._of(pod).total[node] = int(score)
        elif found := _EXTENDER.search(line):
            pod, extender, node, score = found.groups()
            self._of(pod).extenders.setdefault(node, {})[extender] = int(score)

    def _of(self, pod: str) -> Scored:
        return self.scored.setdefault(pod, Scored())

    def _lines(self) -> Iterator[str]:
        """Give the whole lines that were written since; half a line waits for its end."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            content = file.read()
        end = content.rfind(b"\n") + 1
        self._read += end
        yield from content[:end].decode(errors="replace").splitlines()
