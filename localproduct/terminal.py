"""Shows snapshots: on a terminal each over the last one, otherwise only lines with what is new."""

import shutil
from collections.abc import Callable
from typing import Generic, TextIO, TypeVar

S = TypeVar("S")


class Screen(Generic[S]):
    """Shows each sight over the last one, or only what is new where that cannot be seen."""

    def __init__(
        self, out: TextIO, draw: Callable[[S, int], list[str]], tell_news: Callable[[S | None, S], list[str]]
    ) -> None:
        self._out = out
        self._draw = draw
        self._tell_news = tell_news
        self._lines = 0
        self._last: S | None = None

    def show(self, sight: S) -> None:
        lines = self._redraw(sight) if self._out.isatty() else self._tell_news(self._last, sight)
        print("\n".join(lines), end="\n" if lines else "", file=self._out, flush=True)
        self._last = sight

    def _redraw(self, sight: S) -> list[str]:
        size = shutil.get_terminal_size((120, 40))
        lines = self._draw(sight, size.columns)[: size.lines - 1]
        back = f"\x1b[{self._lines}A\x1b[J" if self._lines else ""
        self._lines = len(lines)
        return [back + lines[0], *lines[1:]]
