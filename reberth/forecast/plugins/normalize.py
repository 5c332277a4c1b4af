"""Scale raw scores to 0..100, as kube-scheduler's plugins do when they normalize.

kube-scheduler: `pkg/scheduler/framework/plugins/helper/normalize_score.go`: `DefaultNormalizeScore`
"""

import numpy as np

from reberth.cluster.columns import Ints

# `k8s.io/kube-scheduler/framework/interface.go`: `MaxNodeScore`
MAX_NODE_SCORE = 100


def normalize_scores(raw: Ints, *, reverse: bool = False) -> Ints:
    """Scale so that the largest becomes 100; reversed, 0. If all are 0, they stay 0; reversed, become 100."""
    highest = int(raw.max(initial=0))
    scores = MAX_NODE_SCORE * raw // highest if highest else np.zeros(len(raw), np.int64)
    return MAX_NODE_SCORE - scores if reverse else scores
