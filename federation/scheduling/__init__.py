"""The multi-cluster scheduler, pure: from a binding and the clusters to a decision with its reasons."""

from federation.scheduling.decide import decide
from federation.scheduling.demand import name_of
from federation.scheduling.fleet import Fleet
from federation.scheduling.outcome import ClusterVerdict, Decision, Failure, Reason, describe_success

__all__ = [
    "ClusterVerdict",
    "Decision",
    "Failure",
    "Fleet",
    "Reason",
    "decide",
    "describe_success",
    "name_of",
]
