"""The commands of `python -m rescheduler`: plan, move and notes."""
