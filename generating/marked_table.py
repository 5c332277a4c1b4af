"""Tables of pages that are written between two marks, so that the rest of the page stays as it is."""

from collections.abc import Iterable, Sequence

_END = "<!-- The end of the table. -->\n"


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def put_table(page: str, source: str, table: str) -> str:
    """Put a table that is made from a source between its marks. Raises ValueError if they are missing."""
    mark = f"<!-- The table is made by `make generate`, from {source}. -->\n"
    before, begin, rest = page.partition(mark)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError("the marks of the table are missing")
    return f"{before}{mark}\n{table}\n{_END}{after}"
