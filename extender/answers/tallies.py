"""How many of the things that have their time still count."""


class ExpiryCounts:
    """The ends of what many objects hold."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[float, ...]] = {}

    def put(self, name: str, ends: tuple[float, ...]) -> None:
        self.drop(name)
        if ends:
            self._ends[name] = ends

    def drop(self, name: str) -> None:
        self._ends.pop(name, None)

    def valid(self, now: float) -> int:
        return sum(end > now for ends in self._ends.values() for end in ends)

    def expired(self, now: float) -> int:
        return sum(end <= now for ends in self._ends.values() for end in ends)
