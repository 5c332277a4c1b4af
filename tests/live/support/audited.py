"""Clusters on which moves are checked at their end: whatever was moved there kept the rules of moves.

async with audited(nodes=14) as cluster:
    ...
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from localcluster import audit_log
from localcluster.cluster import Cluster
from localcluster.credentials import ADMIN
from localcluster.state_dir import running
from localproduct.rescheduler_process import RESCHEDULER_ACCOUNT
from tests.live.support.move_audit import MoveAudit

_USERS = (ADMIN, RESCHEDULER_ACCOUNT)
_AGENT = "reberth"
_SHOWN = 10


class AuditedCluster(NamedTuple):
    """A cluster, and the folder with its audit log."""

    cluster: Cluster
    audit: Path


@asynccontextmanager
async def audited(**options: Any) -> AsyncIterator[Cluster]:
    """Run a cluster with these options, and refuse its moves at the end if one broke a rule."""
    with TemporaryDirectory(prefix="reberth-audit-") as folder:
        flags = audit_log.write_audit_flags(Path(folder), _USERS, memory=True, others=False)
        async with running(**options, flags=flags) as cluster:
            yield cluster
        refuse_violations(Path(folder))


def refuse_violations(folder: Path) -> None:
    """Fail with the rules that the moves of an audit log have broken."""
    found = MoveAudit(audit_log.read_log(folder), agent=_AGENT, apart=False).list_violations()
    assert not found, "\n".join(found[:_SHOWN])
