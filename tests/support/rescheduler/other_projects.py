"""The table of docs/protections.md about pods of other projects: what keeps them and what moves them."""

import re
from typing import Any, NamedTuple

from tests.support.builders import owner
from tests.support.repository import DOCS

_TITLE = "\n## Pods of other projects\n"
_SETTING = re.compile(r"`(\w+): \[(.*?)\]`")


class OtherProject(NamedTuple):
    """A row of the table; without a rule its pods are moved, without settings nothing makes them movable."""

    controller: str
    restart_policy: str
    rule: str
    settings: dict[str, list[str]]

    @property
    def kind(self) -> str:
        return self.controller.rpartition("/")[2]

    @property
    def api_version(self) -> str:
        return self.controller.rpartition("/")[0]

    def own(self, name: str, uid: str | None = None) -> dict[str, Any]:
        """The ownerReference of its pods."""
        return owner(self.kind, name, uid=uid, api_version=self.api_version)


def read_other_projects() -> list[OtherProject]:
    section = (DOCS / "protections.md").read_text().split(_TITLE)[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| a")]
    return [_read_row(*(cell.strip() for cell in row)) for row in rows]


def _read_row(_pods: str, controller: str, policy: str, rule: str, moved_with: str) -> OtherProject:
    settings = {name: values.split(", ") for name, values in _SETTING.findall(moved_with)}
    return OtherProject(controller.strip("`"), policy.strip("`"), rule.strip("`"), settings)
