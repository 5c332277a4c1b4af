"""Makes values safe for a log: plain, short, and with secrets removed.

A field is secret by its name; in text, patterns that only match secrets are removed.
"""

import math
import re

REDACTED = "[redacted]"
_LONGEST_TEXT = 8192
_DEEPEST = 6

_NAMES = (
    r"token|authorization|passw(?:or)?d|pwd|secret|cookie|credentials?"
    r"|(?:api|private|tls|client|access)[-_.]?key|key[-_.]?data"
)
_SECRET_NAME = re.compile(rf"(?:{_NAMES})\Z", re.IGNORECASE)
# How many there are is no secret.
_SECRET_NAMES = re.compile(rf"(?:{_NAMES})s\Z", re.IGNORECASE)
# Of each match only the first group is kept.
_PRIVATE_KEY = r"()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
# A secret's name, and after it the value: bare, quoted, quoted within a quoted text, or as in a printed pair.
_NAMED = rf"""((?:{_NAMES})(?:[\\"']*\s*[:=]\s*|["'],\s*b?(?=["'])))(?:(?:bearer|basic)\s+)?"""
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|\\"[^"\\]*|[^\s"'\\,;&}]+)"""
_BEARER = r"\b(bearer\s+)[\w.~+/=-]+"
# From the start of a run of such characters on, so that no part of a run is looked at twice.
_JWT = r"(?<![\w-])((?:(?!\beyJ)[\w-])*)\beyJ[\w-]*\.[\w-]+\.[\w-]*"
# What follows must look like base64: "basic" is a word, too.
_BASIC = r"\b(basic\s+)(?=[a-z+/]*[0-9=])[a-z0-9+/]{6,}={0,2}"
_OPENSHIFT = r"()\bsha256~[\w-]+"
_USER_IN_URL = r"(://)[^\s/@]+(?=@)"
_SECRETS = [
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (_PRIVATE_KEY, _NAMED + _VALUE, _BEARER, _BASIC, _JWT, _OPENSHIFT, _USER_IN_URL)
]


def redact(text: str) -> str:
    """Give a text without its secrets, truncated to a reasonable length for a log."""
    more = len(text) - _LONGEST_TEXT
    text = text[:_LONGEST_TEXT]
    for secret in _SECRETS:
        text = secret.sub(rf"\1{REDACTED}", text)
    return f"{text}… and {more} more" if more > 0 else text


def plain(value: object, name: str = "", depth: int = 0) -> object:
    """Convert a field's value to a JSON value."""
    if _SECRET_NAME.search(name) or (_SECRET_NAMES.search(name) and not isinstance(value, int)):
        return REDACTED
    if value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {_text(key): plain(part, _text(key), depth + 1) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(part, depth=depth + 1) for part in value]
    return _text(value)


def _text(value: object) -> str:
    try:
        return redact(str(value))
    except Exception:  # noqa: BLE001 - whatever a stranger's __str__ does, the line is written
        return f"<{type(value).__name__} that cannot be printed>"
