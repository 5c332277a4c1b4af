"""PromQL expressions that many panels and alerts share.

A Prometheus may hold many installations: `namespace` is the one that an installation runs in, `cluster` a
label that a Prometheus of several clusters adds. Where one is missing, all series have the same, empty one.
"""

import re

# Braces without `cluster` and `namespace` yet; metrics of other projects are not ours to select.
_METRIC = re.compile(r"\b(reberth_[a-z_]+)(?:\{([^{}]*)\})?")
_SELECTED = 'cluster=~"$cluster", namespace=~"$namespace"'


def by(*labels: str) -> str:
    """Write the grouping that keeps installations apart."""
    return f"by ({', '.join(('cluster', 'namespace', *labels))})"


def select_installations(expression: str) -> str:
    """Let every metric of an expression follow the variables of the dashboard."""
    return _METRIC.sub(_select, expression)


def _select(found: re.Match[str]) -> str:
    name, selector = found.groups()
    return f"{name}{{{', '.join(filter(None, (_SELECTED, selector)))}}}"


def write_missing(metric: str) -> str:
    """Write what is true of installations that had this metric within a day, or if none had it."""
    had, has = f"group {by()} (present_over_time({metric}[1d]))", f"group {by()} ({metric})"
    return f"{had} unless {has} or absent_over_time({metric}[1d])"


def write_total(metric: str, *labels: str) -> str:
    """Write the total over installations of a gauge that every replica of one shows."""
    kept = f" by ({', '.join(labels)}) " if labels else ""
    return f"sum{kept}(max {by(*labels)} ({metric}))"


def write_share(part: str, of: str) -> str:
    """Write the ratio of two counters' increases over the selected time range."""
    return f"sum(increase({part}[$__range])) / sum(increase({of}[$__range]))"


def write_increase(label: str, metric: str) -> str:
    return f"sum by ({label}) (increase({metric}[$__rate_interval]))"


def write_quantile(share: float, metric: str, *labels: str) -> str:
    kept = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({kept}) (rate({metric}_bucket[$__rate_interval])))"
