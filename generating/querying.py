"""Parts of queries that many panels have in common."""


def write_share(part: str, of: str) -> str:
    """Write the share of one counter's increase in another's, over the range that is looked at."""
    return f"sum(increase({part}[$__range])) / sum(increase({of}[$__range]))"


def write_increase(label: str, metric: str) -> str:
    return f"sum by ({label}) (increase({metric}[$__rate_interval]))"


def write_quantile(share: float, metric: str, *labels: str) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket[$__rate_interval])))"
