"""The commands of `python -m rescheduler`: plan, move, notes."""
