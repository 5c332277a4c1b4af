"""Measurements side by side with peers: `python -m bench.NAME` writes its section of docs/benchmarks.md."""
