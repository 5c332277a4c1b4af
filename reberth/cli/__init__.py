"""The commands of `python -m reberth`."""
