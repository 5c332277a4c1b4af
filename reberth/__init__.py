"""The library: what is known of a cluster, what is remembered, forecasts, and the way to the API server."""

__version__ = "0.1.0"
"""Of all programs, the wheel and the image: `pyproject.toml` reads it from here."""
