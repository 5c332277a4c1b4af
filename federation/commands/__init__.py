"""Commands of `python -m federation` beside `run` and `schedule`."""
