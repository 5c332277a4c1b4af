"""The value of a metric of this process, for tests that count before and after."""

from reberth.runtime.metrics import REGISTRY


def read_metric(name: str, **labels: str) -> float:
    """Read one sample; a metric that was never counted is zero."""
    return REGISTRY.get_sample_value(name, labels) or 0.0


def rescheduler_metric(name: str, **labels: str) -> float:
    return read_metric(f"reberth_rescheduler_{name}", **labels)
