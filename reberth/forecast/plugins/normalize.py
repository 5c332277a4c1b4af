"""How kube-scheduler brings raw scores into 0..100."""

import numpy as np

from reberth.cluster.columns import Ints

MAX_NODE_SCORE = 100


def normalize_scores(raw: Ints, *, reverse: bool = False) -> Ints:
    """Let the largest become 100, or 0 if less is better. Where all are 0 nothing speaks against any node."""
    highest = int(raw.max(initial=0))
    scores = MAX_NODE_SCORE * raw // highest if highest else np.zeros(len(raw), np.int64)
    return MAX_NODE_SCORE - scores if reverse else scores
