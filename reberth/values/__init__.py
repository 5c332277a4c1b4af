"""Small values: quantities, durations, times, refusals and errors."""
