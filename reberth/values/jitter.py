"""How long to wait before the next try: twice as long after every failure, and never in step with others."""

import math
import random
from collections.abc import Callable

# 2.0 ** 1024 overflows, and long before that the longest pause is reached.
_MOST_DOUBLINGS = 30


def jittered_backoff(
    failures: int,
    *,
    first: float,
    longest: float = math.inf,
    at_least: float = 0.0,
    draw: Callable[[float, float], float] = random.uniform,
) -> float:
    """Give the seconds to wait after this many failures in a row, of which there was at least one.

    The pause is drawn from the upper half of what it may be: clients that failed together do not come back
    together, and none of them comes back at once. `at_least` is what the server asked for (Retry-After).
    """
    doubled = first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    return max(at_least, min(doubled, longest) * draw(0.5, 1.0))
