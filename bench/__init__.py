"""Comparisons with similar tools: `python -m bench.NAME` writes its section of docs/benchmarks.md."""
