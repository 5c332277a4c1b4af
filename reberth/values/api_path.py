"""Paths of the API: foreign names are quoted, and names that no object can have are refused.

Names reach a path from annotations, histories and ledgers that others may write. Unquoted, `a/../b` or
`b?c` asks for something else than the object that was meant.
"""

import re
from urllib.parse import quote

from reberth.values.errors import ImpossibleName

_LONGEST_SHOWN = 64
_PLAIN = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._:~-]+")
"""Nearly all parts; to quote one takes a dozen calls."""


def join_path(root: str, *parts: str) -> str:
    """Append the parts to a path, each one quoted; raise ImpossibleName if an object cannot have it as name.

    The API server allows neither `.` nor `..` nor a name with `/` or `%` in it.
    """
    return "/".join([root, *map(_quote, parts)])


def _quote(part: str) -> str:
    if _PLAIN.fullmatch(part):
        return part
    if part in {"", ".", ".."} or "/" in part or "%" in part or not part.isprintable():
        shown = repr(part[:_LONGEST_SHOWN])
        raise ImpossibleName("name a path", f"{shown} is no name that an object can have", status=404)
    return quote(part, safe=":")
