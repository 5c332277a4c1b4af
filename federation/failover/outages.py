"""For how long workloads have no ready pod in any cluster, as far as it was seen: a restart begins anew."""

from federation.objects.names import Key


class Outages:
    """Since when each workload that had a ready pod has none."""

    def __init__(self) -> None:
        self._up: set[Key] = set()
        self._down: dict[Key, float] = {}

    @property
    def count(self) -> int:
        return len(self._down)

    def find_longest(self, now: float) -> float:
        return max((now - since for since in self._down.values()), default=0.0)

    def observe(self, key: Key, *, is_ready: bool | None, now: float) -> float | None:
        """Note what is seen of a workload; return how long it was down if it just came back.

        One that never had a ready pod is not down, it has not begun. None stands for one that is gone.
        """
        if is_ready is None:
            self._up.discard(key)
            self._down.pop(key, None)
            return None
        if is_ready:
            self._up.add(key)
            since = self._down.pop(key, None)
            return None if since is None else now - since
        if key in self._up:
            self._up.remove(key)
            self._down[key] = now
        return None
