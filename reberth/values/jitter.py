"""Exponential back-off with jitter, so that clients do not retry in step."""

import math
import random
from collections.abc import Callable

# 2.0 ** 1024 overflows; the longest pause is reached long before that.
_MOST_DOUBLINGS = 30


def jittered_backoff(
    failures: int,
    *,
    first: float,
    longest: float = math.inf,
    at_least: float = 0.0,
    draw: Callable[[float, float], float] = random.uniform,
) -> float:
    """Give the seconds to wait after this many failures in a row, at least one.

    The pause is random between half of its length and the whole: clients that failed together do not come
    back together, and none comes back at once. `at_least` is the delay that the server requested
    (Retry-After).
    """
    doubled = first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS)
    return max(at_least, min(doubled, longest) * draw(0.5, 1.0))
