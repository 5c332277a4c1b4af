"""The display of a rebalance: replicas of each cluster, and the WorkloadRebalancer's status."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_GREEN, _YELLOW = 32, 33


class ClusterBar(NamedTuple):
    """One cluster: replicas desired, kept until the other clusters are ready, and ready."""

    cluster: str
    given: int
    kept: int
    ready: int


class RebalanceSnapshot(NamedTuple):
    wanted: int
    shares: tuple[ClusterBar, ...]
    fewest: int
    """So many were ready at every moment."""
    said: str = ""
    """By the rebalancer."""
    is_healthy: bool = False
    """So the rebalancer says."""

    @property
    def ready(self) -> int:
        return sum(each.ready for each in self.shares)

    @property
    def is_home(self) -> bool:
        """Tell whether every cluster has exactly its desired replicas."""
        return self.is_healthy and all(each.given == each.ready and not each.kept for each in self.shares)


def look(
    binding: Any,  # noqa: ANN401 - an object of the API
    rebalancer: Any,  # noqa: ANN401 - an object of the API
    *,
    ready: Mapping[str, int],
    fewest: int,
    clusters: Iterable[str],
) -> RebalanceSnapshot:
    spec = binding["spec"]
    given = _count(spec.get("clusters"))
    kept = _count(spec.get("handover", {}).get("clusters"))
    shares = (
        ClusterBar(name, given.get(name, 0), kept.get(name, 0), ready.get(name, 0))
        for name in sorted(clusters)
    )
    entry = _read_entry(rebalancer)
    said = _tell_entry(rebalancer["metadata"]["name"], entry) if entry else ""
    return RebalanceSnapshot(spec["replicas"], tuple(shares), fewest, said, entry.get("health") == "Healthy")


def draw(sight: RebalanceSnapshot, width: int, *, color: bool = True) -> list[str]:
    """Draw a bar for each cluster, and say what is said."""
    longest = max((*(each.ready for each in sight.shares), sight.wanted, 1))
    room = max(width - 46, longest)
    lines = [_draw_share(each, room // longest, longest, color=color) for each in sight.shares]
    return [*lines, summarize(sight), *([sight.said[:width]] if sight.said else [])]


def tell_news(last: RebalanceSnapshot | None, sight: RebalanceSnapshot) -> list[str]:
    """Say in lines what is not as it was at the last look."""
    has_said = last is not None and last.said == sight.said
    where = ", ".join(_tell_share(each) for each in sight.shares)
    return [*([sight.said] if sight.said and not has_said else []), f"{where}; {summarize(sight)}"]


def summarize(sight: RebalanceSnapshot) -> str:
    return f"{sight.ready} ready for {sight.wanted} wanted, never fewer than {sight.fewest}"


def _draw_share(share: ClusterBar, each: int, longest: int, *, color: bool) -> str:
    stays, goes = min(share.ready, share.given), max(share.ready - share.given, 0)
    bar, rest = "█" * (each * stays) + "▒" * (each * goes), " " * (each * (longest - share.ready))
    code = _YELLOW if goes else _GREEN
    painted = f"\x1b[{code}m{bar}\x1b[0m" if color and bar else bar
    return f"{share.cluster[-12:]:<12} {painted}{rest} {_tell_counts(share)}"


def _tell_share(share: ClusterBar) -> str:
    return f"{share.cluster} {_tell_counts(share)}"


def _tell_counts(share: ClusterBar) -> str:
    kept = f", keeps {share.kept} for now" if share.kept else ""
    return f"{share.ready} ready of {share.given}{kept}"


def _read_entry(rebalancer: Any) -> Any:  # noqa: ANN401 - an object of the API
    """Read what the status says of the only workload."""
    entries = rebalancer.get("status", {}).get("observedWorkloads")
    return entries[0] if entries else {}


def _tell_entry(name: str, entry: Any) -> str:  # noqa: ANN401 - a part of an object of the API
    path = f"from {_write(entry['from'])} to {_write(entry['to'])}" if entry.get("to") else ""
    parts = (entry.get("result"), path, entry.get("health"), entry.get("message"))
    return f"WorkloadRebalancer {name}: {', '.join(filter(None, parts))}"


def _write(clusters: Iterable[Any]) -> str:
    return f"{{{', '.join(f'{name}:{count}' for name, count in _count(clusters).items())}}}"


def _count(clusters: Iterable[Any] | None) -> dict[str, int]:
    return {each["name"]: each.get("replicas", 0) for each in clusters or ()}
