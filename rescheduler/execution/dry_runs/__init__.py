"""The replacement as a dry run, before an eviction: whether it may be asked for, and what it shows."""
