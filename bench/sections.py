"""docs/benchmarks.md: one section for each measurement, which the measurement itself writes."""

from pathlib import Path

_FILE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_HEAD = """# Benchmarks

Reberth and similar tools, measured in the same run on the same machine. `make bench` measures again and
writes this file.
"""


def write(name: str, text: str) -> Path:
    """Replace the section of this name, or append it."""
    before = _FILE.read_text() if _FILE.exists() else _HEAD
    _FILE.write_text(exchange(before, name, text))
    return _FILE


def exchange(document: str, name: str, text: str) -> str:
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    section = f"{begin}\n{text.strip()}\n{end}\n"
    head, found, rest = document.partition(begin)
    if not found:
        return f"{document.rstrip()}\n\n{section}"
    _, closed, tail = rest.partition(f"{end}\n")
    if not closed:
        raise ValueError(f"{_FILE}: {begin} has no {end}")
    return head + section + tail
