"""A predictable extender: it draws lots, always the same for a node."""

from collections.abc import Iterable
from zlib import crc32

REASON = "drew a blank"
_HIGHEST = 10


def blanks(nodes: Iterable[str]) -> dict[str, str]:
    """Refuse about every seventh node."""
    return {node: REASON for node in nodes if crc32(node.encode()) % 7 == 0}


def lots(nodes: Iterable[str]) -> dict[str, int]:
    """Give each node 0 to 10."""
    return {node: crc32(node.encode()) % (_HIGHEST + 1) for node in nodes}
