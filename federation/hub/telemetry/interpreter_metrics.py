"""Metrics of interpreters: what their scripts answered, and what they take."""

from prometheus_client import Counter, Gauge

from federation.interpreters.operations import Operation
from reberth.runtime.metrics import REGISTRY

RESULTS = Counter(
    "reberth_interpreter_results_total",
    "Results of scripts in Lua, by operation and result: answered, failed, exceeded a limit, or refused.",
    ("operation", "result"),
    registry=REGISTRY,
)
SCRIPTS = Gauge(
    "reberth_interpreter_scripts",
    "Scripts of ResourceInterpreterCustomizations that are loaded.",
    registry=REGISTRY,
)
FAILING = Gauge(
    "reberth_interpreter_failing_customizations",
    "ResourceInterpreterCustomizations whose scripts cannot be used, or failed in the last minute.",
    registry=REGISTRY,
)
MEMORY = Gauge("reberth_interpreter_memory_bytes", "Bytes that Lua holds.", registry=REGISTRY)


def count_result(operation: Operation, result: str) -> None:
    RESULTS.labels(str(operation), result).inc()
