"""How much memory this process has had at most."""

import resource


def most_memory() -> float:
    """In megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
