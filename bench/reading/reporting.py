"""From figures to the section of docs/benchmarks.md: medians, ratios, and goals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.reading.arms import BYTES, DEFAULT, OURS, STEPPED_OVER, Figures

Measured = Mapping[str, Sequence[Figures]]
Row = Sequence[str]


@dataclass(frozen=True)
class Goal:
    """A figure that must not be above a bound."""

    what: str
    most: float
    reached: float
    unit: str

    @property
    def row(self) -> Row:
        verdict = "yes" if self.reached <= self.most else "**no**"
        return (self.what, f"{self.most:g} {self.unit}", f"{self.reached:.4g} {self.unit}", verdict)


def describe_readers(measured: Measured) -> str:
    """One line for each arm."""
    head = (
        "reader",
        "CPU per pod",
        "wall",
        "RSS before",
        "RSS at the end",
        "RSS after collecting",
        "highest RSS",
    )
    return table(head, (_describe_reader(name, runs) for name, runs in measured.items()))


def _describe_reader(name: str, runs: Sequence[Figures]) -> Row:
    collected = [megabytes(figures["collected"]) for figures in runs if "collected" in figures]
    return (
        name,
        spread(map(cpu_per_pod, runs), "µs"),
        spread((figures["wall"] for figures in runs), "s"),
        *(spread((megabytes(figures[part]) for figures in runs), "MB") for part in ("before", "after")),
        spread(collected, "MB") if collected else "",
        spread((megabytes(figures["peak"]) for figures in runs), "MB"),
    )


def describe_ratios(measured: Measured) -> str:
    """Reberth's figures divided by the others'."""
    head = (
        "Reberth divided by",
        "CPU",
        "RSS at the end",
        "RSS at the end, theirs after collecting",
        "highest RSS",
    )
    rows = [
        (
            name,
            ratio(measured, name, cpu_per_pod),
            ratio(measured, name, _after),
            ratio(measured, name, _settled),
            ratio(measured, name, _peak),
        )
        for name in measured
        if name not in (OURS, BYTES, STEPPED_OVER)
    ]
    return table(head, ((name, *(f"{value:.2f}" for value in values)) for name, *values in rows))


def describe_decoding(runs: Sequence[Figures]) -> str:
    head = ("CPU per pod", "snapshot", "its CPU", "RSS before", "RSS at the end", "highest RSS")
    row = (
        spread(map(cpu_per_pod, runs), "µs"),
        *(spread((figures[part] * 1e3 for figures in runs), "ms") for part in ("snapshot", "snapshot_cpu")),
        *(
            spread((megabytes(figures[part]) for figures in runs), "MB")
            for part in ("before", "after", "peak")
        ),
    )
    return table(head, [row])


def describe_goals(measured: Measured, decoded: Sequence[Figures], kept: float) -> str:
    ours = measured[OURS]
    goals = [
        Goal("CPU per pod, read from the API server", 50, middle(map(cpu_per_pod, ours)), "µs"),
        Goal("CPU against client-go's default", 1, ratio(measured, DEFAULT, cpu_per_pod), "times"),
        Goal("RSS, read from the API server", 130, middle(map(megabytes, map(_after, ours))), "MB"),
        Goal("RSS against client-go's default", 0.25, ratio(measured, DEFAULT, _after), "times"),
        Goal("the same, theirs after collecting", 0.25, ratio(measured, DEFAULT, _settled), "times"),
        Goal("kept for each replica", 1000, kept, "bytes"),
        Goal("RSS, generated pods", 300, middle(map(megabytes, map(_after, decoded))), "MB"),
        Goal(
            "snapshot of generated pods", 120, middle(figures["snapshot"] * 1e3 for figures in decoded), "ms"
        ),
    ]
    return table(("goal", "at most", "reached (median)", "met"), (goal.row for goal in goals))


def describe_ours(runs: Sequence[Figures]) -> str:
    parts = ("snapshot", "block", "busy")
    snapshots, blocks, busy = (spread((figures[part] * 1e3 for figures in runs), "ms") for part in parts)
    return (
        f"Reberth's snapshot took {snapshots}. While it read, its event loop was blocked for {blocks} at "
        f"most, and used {busy} of CPU at most in one step."
    )


def describe_floor(measured: Measured) -> str:
    """Describe the lowest cost of reading this stream by this method."""
    coming, over, ours = (middle(map(cpu_per_pod, measured[arm])) for arm in (BYTES, STEPPED_OVER, OURS))
    return (
        f"Of Reberth's {ours:.3g} µs a pod {coming:.3g} are for receiving the bytes: TLS, HTTP in one chunk "
        f"for each pod, the event loop. {over - coming:.3g} more are for msgspec to parse them without "
        f"creating objects. These {over:.3g} µs are the floor of this method on this machine at its speed of "
        f"that hour. The {ours - over:.3g} above it are Reberth's own: creating records, sharing what "
        "replicas have in common, and storing the rest."
    )


def ratio(measured: Measured, name: str, figure: Callable[[Figures], float]) -> float:
    return middle(map(figure, measured[OURS])) / middle(map(figure, measured[name]))


def cpu_per_pod(figures: Figures) -> float:
    return figures["cpu"] / figures["pods"] * 1e6


def kept(traced: Figures) -> float:
    return traced["kept"] / traced["pods"]


def _after(figures: Figures) -> float:
    return figures["after"]


def _settled(figures: Figures) -> float:
    """Memory after a requested garbage collection, if it was measured."""
    return figures.get("collected", figures["after"])


def _peak(figures: Figures) -> float:
    return figures["peak"]


def megabytes(amount: float) -> float:
    return amount / 1e6


def middle(figures: Iterable[float]) -> float:
    return median(list(figures))


def spread(figures: Iterable[float], unit: str) -> str:
    """The median, and between which figures it lies."""
    found = sorted(figures)
    return f"{median(found):.3g} {unit} ({found[0]:.3g} to {found[-1]:.3g})"


def table(head: Row, rows: Iterable[Row]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
