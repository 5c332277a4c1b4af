"""Pods by what they have in common: a question is asked once for all that share the answer."""

from collections.abc import Iterator

import numpy as np

from reberth.cluster.columns import Indices


def group(codes: Indices) -> Iterator[tuple[int, Indices]]:
    """Give each code that occurs, smallest first, and the places where it does, in their order."""
    order = np.argsort(codes, kind="stable").astype(np.int32)
    found = codes[order]
    first = np.flatnonzero(np.diff(found, prepend=-1)) if len(found) else order
    for places in np.split(order, first[1:]) if len(first) else ():
        yield int(codes[places[0]]), places
