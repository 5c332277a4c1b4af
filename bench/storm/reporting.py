"""Writes the section of docs/benchmarks.md from the figures of the arms."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.reading.reporting import megabytes, table
from bench.storm.tracing import Quantiles, measure

Measured = Mapping[str, Mapping[str, Any]]
"""The figures of each arm."""
_OF_THE_CLUSTER = ("kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager", "kwok")
_OURS = {"rescheduler-0": "rescheduler", "extender-0": "extender"}


def describe_moves(measured: Measured) -> str:
    """One line for each arm: how many, and how long each one took."""
    head = (
        *("", "evictions", "in each minute", "until evicted, half", "99 %"),
        *("until its outcome, half", "99 %", "the eviction itself, half", "99 %", "API calls for each"),
    )
    return table(head, (_describe_arm(arm, figures) for arm, figures in measured.items()))


def describe_usage(measured: Measured) -> str:
    """One line for each program: CPU and memory in each arm."""
    names = dict.fromkeys(name for figures in measured.values() for name in figures["usage"])
    ours = [name for name in names if name not in _OF_THE_CLUSTER]
    rows = (
        (_OURS.get(name, name), *(_describe_process(figures, name) for figures in measured.values()))
        for name in [*ours, *_OF_THE_CLUSTER]
    )
    return table(("", *measured), rows)


def describe_probes(measured: Measured) -> str:
    """One line for each daemon that was probed."""
    rows = [
        (arm, *_describe_probes(figures["probes"])) for arm, figures in measured.items() if figures["probes"]
    ]
    return table(("", "half", "99 %", "longest", "probes"), rows)


def count_calls(figures: Mapping[str, Any]) -> int:
    return sum(sum(calls.values()) for calls in figures["calls"].values())


def _describe_arm(arm: str, figures: Mapping[str, Any]) -> Sequence[str]:
    return (
        arm,
        f"{figures['evicted']:,}",
        ", ".join(f"{count:,}" for count in figures["by minute"]),
        *_describe(figures["until evicted"]),
        *_describe(figures["until ended"]),
        *_describe(figures["requests"]),
        f"{count_calls(figures) / max(figures['evicted'], 1):.1f}",
    )


def _describe(found: Sequence[float]) -> tuple[str, str]:
    quantiles = Quantiles(found[0], found[1], int(found[2]))
    if not quantiles.size:
        return "-", "-"
    return _write(quantiles.half), _write(quantiles.most)


def _describe_process(figures: Mapping[str, Any], name: str) -> str:
    usage = figures["usage"].get(name)
    if usage is None:
        return "-"
    return f"{usage['cpu']:.1f} s, {megabytes(usage['memory']):.0f} MB ({megabytes(usage['highest']):.0f})"


def _describe_probes(seconds: Sequence[float]) -> tuple[str, ...]:
    found = measure(seconds)
    return _write(found.half), _write(found.most), _write(max(seconds)), f"{found.size:,}"


def _write(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
