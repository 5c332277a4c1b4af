"""docs/benchmarks.md: one section for each measurement, each written by the measurement itself."""

from pathlib import Path

_FILE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
_HEAD = """# Benchmarks

Measured side by side, in one run on one machine. `make bench` measures again and writes this file.
"""


def write(name: str, text: str) -> Path:
    """Put the section in the place of the one that had this name, else at the end."""
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
