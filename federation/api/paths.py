"""A JSONPath into a status: names and numbers one after the other, such as `{.conditions[0].reason}`.

Filters, slices and wildcards may give many values; of a label there is one.
"""

import re
from typing import Any

JsonPath = tuple[str | int, ...]

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]|\[(\d+)\]")


def read_path(text: str) -> JsonPath | None:
    """Read the steps of a path; None for one that cannot be followed to a single value."""
    body, steps, place = text.strip().removeprefix("{").removesuffix("}").strip(), [], 0
    while place < len(body):
        found = _STEP.match(body, place)
        if found is None:
            return None
        name, quoted, number = found.groups()
        steps.append(int(number) if number else name or quoted)
        place = found.end()
    return tuple(steps) or None


def follow(path: JsonPath, found: Any) -> Any:  # noqa: ANN401 - any JSON
    """Give what stands at the end of the path; None where it leads nowhere."""
    for step in path:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    return found
