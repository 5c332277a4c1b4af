"""PromQL expressions that many panels share."""


def write_share(part: str, of: str) -> str:
    """Write the ratio of two counters' increases over the selected time range."""
    return f"sum(increase({part}[$__range])) / sum(increase({of}[$__range]))"


def write_increase(label: str, metric: str) -> str:
    return f"sum by ({label}) (increase({metric}[$__rate_interval]))"


def write_quantile(share: float, metric: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket[$__rate_interval])))"
