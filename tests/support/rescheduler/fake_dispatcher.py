"""A dispatcher that makes no moves, for tests of cycles."""

from rescheduler.model.plan import PlannedMove


class FakeDispatcher:
    """Takes moves, and does nothing with them."""

    def __init__(self, *, refuses: int = 0, fails: Exception | None = None) -> None:
        self.begun: list[PlannedMove] = []
        self.failed = fails is not None
        self.waiting = 0
        self.resumed = 0
        self._refuses = refuses
        self._fails = fails

    def __len__(self) -> int:
        return len(self.begun)

    def has_orphans(self) -> bool:
        return False

    async def resume(self) -> None:
        self.resumed += 1
        if self._fails:
            raise self._fails

    def begin(self, planned: PlannedMove) -> bool:
        self._refuses -= 1
        if self._refuses >= 0:
            return False
        self.begun.append(planned)
        return True
