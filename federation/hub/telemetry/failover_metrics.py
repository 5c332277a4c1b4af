"""Metrics of what matters when clusters fail: evictions, states of clusters, workloads without a copy."""

from contextlib import suppress

from prometheus_client import Counter, Gauge, Histogram

from federation.failover.eviction_history import APPLICATION_FAILURE
from federation.failover.eviction_tasks import LEAVING, UNTOLERATED
from federation.membership.cluster_status import STATES
from reberth.runtime.metrics import REGISTRY

OTHER_CAUSE = "Other"
CAUSES = (UNTOLERATED, LEAVING, APPLICATION_FAILURE, OTHER_CAUSE)
REPLACED, TIMED_OUT, ENDED_BY_HAND, WITHDRAWN = "replaced", "timedOut", "byHand", "withdrawn"

EVICTIONS = Counter(
    "reberth_federation_evictions_total",
    "Evictions of workloads from clusters that have ended, by their cause and how they ended.",
    ("cause", "outcome"),
    registry=REGISTRY,
)
EVICTING = Gauge(
    "reberth_federation_evictions_under_way",
    "Evictions of workloads from clusters that have not ended, by their cause.",
    ("cause",),
    registry=REGISTRY,
)
CLUSTERS = Gauge(
    "reberth_federation_clusters",
    "Clusters by their state.",
    ("state",),
    registry=REGISTRY,
)
WORD_AGE = Gauge(
    "reberth_federation_member_word_age_seconds",
    "Seconds since a member answered a probe, or since it is known if it never did.",
    ("member",),
    registry=REGISTRY,
)
DOWN = Gauge(
    "reberth_federation_workloads_without_ready_copy",
    "Workloads that had ready pods and have none now, in no cluster of which anything is heard.",
    registry=REGISTRY,
)
LONGEST_DOWN = Gauge(
    "reberth_federation_longest_without_ready_copy_seconds",
    "Seconds for which the worst of these workloads has had no ready pod.",
    registry=REGISTRY,
)
OUTAGES = Histogram(
    "reberth_federation_outage_seconds",
    "Seconds for which a workload had no ready pod in any cluster, until it had one again.",
    registry=REGISTRY,
    buckets=(1, 2, 5, 10, 30, 60, 300, 900, 3600),
)

# All series start at 0: increase() does not see the first event of a series that appears with it.
for _cause in CAUSES:
    EVICTING.labels(_cause)
    for _outcome in (REPLACED, TIMED_OUT, ENDED_BY_HAND, WITHDRAWN):
        EVICTIONS.labels(_cause, _outcome)
for _state in STATES:
    CLUSTERS.labels(_state)


def name_cause(reason: str) -> str:
    """Return the value of the label: other producers write reasons of their own."""
    return reason if reason in CAUSES else OTHER_CAUSE


def forget_word(member: str) -> None:
    with suppress(KeyError):
        WORD_AGE.remove(member)
