"""A JSONPath into a status: names and numbers one after the other, such as `{.conditions[0].reason}`.

Filters, slices and wildcards may yield several values, but a label takes only one; so they are not supported.
"""

import re
from typing import Any

from reberth.values.text_limits import LONGEST_TEXT

JsonPath = tuple[str | int, ...]

_STEP = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^']+)'\]|\[([0-9]{1,9})\]")


def read_path(text: str) -> JsonPath | None:
    """Parse a path; None if it does not lead to a single value, or is longer than any."""
    if len(text) > LONGEST_TEXT:
        return None
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
    """Return the value at the path, or None."""
    for step in path:
        if isinstance(step, str):
            found = found.get(step) if isinstance(found, dict) else None
        else:
            found = found[step] if isinstance(found, list) and step < len(found) else None
    return found
