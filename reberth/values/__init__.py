"""Small values: quantities, durations, times, a refusal, errors."""
