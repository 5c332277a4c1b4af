"""A cache of answers about the last views of a plan; those about older views are dropped."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from reberth.forecast.state.view import View

T = TypeVar("T")

# The view before a move and the one after it: the two are compared.
_VIEWS = 2


class ViewCache(Generic[T]):
    """Answers by view and key, each found once."""

    def __init__(self) -> None:
        self._by_view: dict[View, dict[Hashable, T]] = {}

    def once(self, view: View, key: Hashable, find: Callable[[], T]) -> T:
        """Give the answer under this key for this view, or find it."""
        known = self._by_view.get(view)
        if known is None:
            while len(self._by_view) >= _VIEWS:
                del self._by_view[next(iter(self._by_view))]
            known = self._by_view[view] = {}
        if key not in known:
            known[key] = find()
        return known[key]
