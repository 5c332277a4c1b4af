"""Metrics of plans and moves, and Events."""
