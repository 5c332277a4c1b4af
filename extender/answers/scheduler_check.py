"""Checks kube-scheduler's configuration: how it calls the extender, and whether the weight suffices.

A plugin gives a node up to 100 points times its weight, an extender up to 100 times its own. A destination
wins over all of them together if the weight of /avoid is larger than the sum of all other weights of the
profile. Few plugins give all of their points at once, so a slightly smaller weight may suffice.
"""

from collections.abc import Iterator

from reberth.forecast.state.profile import ExtenderConfig, KubeScheduler, Profile

AVOID = "/avoid"


def find_faults(scheduler: KubeScheduler) -> list[str]:
    """List the faults of the configuration, one per line; none if it fits."""
    ours = [one for one in scheduler.extenders if one.url_prefix.rstrip("/").endswith(AVOID)]
    if len(ours) != 1:
        return [f"{len(ours)} extenders have a urlPrefix that ends with {AVOID}, one is needed"]
    others = sum(one.weight for one in scheduler.extenders if one is not ours[0])
    return [*_faults_of(ours[0]), *_faults_of_weight(ours[0], scheduler, others)]


def find_smallest_weight(profile: Profile, *, others: int) -> int:
    """Give the smallest weight that always wins over the profile's plugins and the other extenders."""
    return sum(weight for _, weight in profile.scores) + others + 1


def _faults_of(avoid: ExtenderConfig) -> Iterator[str]:
    if not avoid.node_cache_capable:
        yield f"{AVOID} needs nodeCacheCapable: true, without it every call is refused"
    if not avoid.ignorable:
        yield f"{AVOID} needs ignorable: true, without it nothing is scheduled while it is unreachable"
    if not avoid.prioritize_verb:
        yield f"{AVOID} needs a prioritizeVerb, without it no pod is drawn anywhere"


def _faults_of_weight(avoid: ExtenderConfig, scheduler: KubeScheduler, others: int) -> Iterator[str]:
    for profile in scheduler.profiles.values():
        needed = find_smallest_weight(profile, others=others)
        if avoid.weight < needed:
            yield f"{AVOID} has the weight {avoid.weight}, profile {profile.name} needs at least {needed}"
