"""Requests of pods agree with a definition that takes one resource at a time.

Quantities in these pods are plain numbers, so fractions can read them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from reberth.cluster.pods.requests import Version, count_bound_requests
from reberth.records import Pod
from tests.support import builders
from tests.support.cluster.requests import VERSIONS, Object, bound, incoming, load, pending

NAMES = ["cpu", "memory", "ephemeral-storage", "example.com/gpu"]
WHOLE = {"cpu", "memory"}

Amount = Fraction | None
Reading = Callable[[Object], Amount]

versions = st.sampled_from(VERSIONS)
amounts = st.dictionaries(
    st.sampled_from(NAMES), st.sampled_from(["0", "1", "2", "3.5", "0.0001", "0.25"]), max_size=3
)
requests = st.builds(lambda named: {"requests": named}, amounts)


def containers(prefix: str, policies: list[str | None], least: int) -> st.SearchStrategy[list[Object]]:
    one = st.fixed_dictionaries({"resources": requests, "restartPolicy": st.sampled_from(policies)})
    return st.lists(one, min_size=least, max_size=3).map(
        lambda made: [each | {"name": f"{prefix}{index}"} for index, each in enumerate(made)]
    )


def statuses(prefix: str) -> st.SearchStrategy[list[Object]]:
    name = st.sampled_from([f"{prefix}{index}" for index in range(3)])
    one = st.fixed_dictionaries(
        {"name": name, "resources": st.none() | requests, "allocatedResources": st.none() | amounts}
    )
    return st.lists(one, max_size=3, unique_by=lambda made: str(made["name"]))


specs = st.fixed_dictionaries(
    {
        "containers": containers("c", [None], 1),
        "initContainers": containers("i", [None, "Always"], 0),
        "resources": requests,
        "overhead": amounts,
    }
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.just({"name": "web"}),
        "spec": specs,
        "status": st.fixed_dictionaries(
            {
                "containerStatuses": statuses("c"),
                "initContainerStatuses": statuses("i"),
                "resources": st.none() | requests,
                "allocatedResources": st.none() | amounts,
                "conditions": st.sampled_from([[], [pending("Deferred")], [pending("Infeasible")]]),
            }
        ),
    }
)


def largest(*choices: Amount) -> Amount:
    return max((choice for choice in choices if choice is not None), default=None)


def added(*terms: Amount) -> Amount:
    known = [term for term in terms if term is not None]
    return sum(known, start=Fraction()) if known else None


@dataclass(frozen=True)
class Definition:
    """How much of one resource a bound pod takes."""

    pod: Object
    name: str
    version: Version

    def total(self) -> Amount:
        return added(self.without_overhead(), self.amount(self.pod["spec"]["overhead"]))

    def without_overhead(self) -> Amount:
        asked = self.pod["spec"]["resources"]["requests"]
        if self.name not in WHOLE or not WHOLE & asked.keys():
            return self.of_containers()
        if self.version >= (1, 36) and self.pod["status"]["resources"] is not None:
            return self.of_resized_whole(self.amount(asked))
        return self.amount(asked) if self.name in asked else self.of_containers()

    def of_resized_whole(self, asked: Amount) -> Amount:
        status = self.pod["status"]
        known = largest(self.asked(asked), self.requested(status), self.amount(status["allocatedResources"]))
        if self.version < (1, 37):
            return self.of_containers() if asked is None else largest(known, Fraction(0))
        return self.of_containers() if known is None else known

    def of_containers(self) -> Amount:
        status = self.pod["status"]
        if self.version < (1, 37):
            return self.sum_of(self.own_largest)
        if status["allocatedResources"] and (status["resources"] or {}).get("requests"):
            by_node = largest(self.requested(status), self.amount(status["allocatedResources"]))
        else:
            by_node = largest(self.sum_of(self.actual), self.sum_of(self.allocated))
        return largest(by_node, self.asked(self.sum_of(self.requested)))

    def sum_of(self, amount_of: Reading) -> Amount:
        sidecars: Amount = None
        peaks: list[Amount] = []
        for container in self.pod["spec"]["initContainers"]:
            peaks.append(added(sidecars, amount_of(container)))
            sidecars = peaks[-1] if container["restartPolicy"] else sidecars
        return largest(added(sidecars, *map(amount_of, self.pod["spec"]["containers"])), *peaks)

    def own_largest(self, container: Object) -> Amount:
        asked, status = self.requested(container), self.status_of(container)
        is_initial = container in self.pod["spec"]["initContainers"] and not container["restartPolicy"]
        if is_initial or status["resources"] is None:
            return asked
        return largest(self.asked(asked), self.requested(status), self.amount(status["allocatedResources"]))

    def actual(self, container: Object) -> Amount:
        status = self.status_of(container)
        reported = (status["resources"] or {}).get("requests")
        return self.amount(reported) if reported else self.allocated(container)

    def allocated(self, container: Object) -> Amount:
        allocated = self.status_of(container)["allocatedResources"]
        return self.amount(allocated) if allocated else self.asked(self.requested(container))

    def asked(self, amount: Amount) -> Amount:
        """Give what is asked for, which does not count while it is infeasible."""
        infeasible = pending("Infeasible") in self.pod["status"]["conditions"]
        return None if infeasible else amount

    def status_of(self, container: Object) -> Object:
        status = self.pod["status"]
        every = status["containerStatuses"] + status["initContainerStatuses"]
        known: dict[str, Object] = {each["name"]: each for each in every}
        return known.get(container["name"], {"resources": None, "allocatedResources": None})

    def requested(self, holder: Object) -> Amount:
        return self.amount((holder["resources"] or {}).get("requests"))

    def amount(self, named: Object | None) -> Amount:
        return Fraction(named[self.name]) if named and self.name in named else None


@given(pods, versions)
def test_bound_requests_agree_with_the_definition(pod: Object, version: Version) -> None:
    demand = count_bound_requests(builders.as_record(Pod, pod), version=version)
    for name in NAMES:
        meant = Definition(pod, name, version).total()
        units = 1000 if name == "cpu" else 1
        assert demand.amounts.get(name) == (None if meant is None else ceil(meant * units))


@given(specs, versions)
def test_incoming_pods_count_like_bound_ones_of_which_nothing_is_known(
    asked: Object, version: Version
) -> None:
    assert incoming(asked).amounts == bound(asked, version).amounts


@given(specs, versions)
def test_the_load_equals_that_of_a_pod_that_requests_the_assumed_amounts(
    asked: Object, version: Version
) -> None:
    bare = asked | {"resources": None}
    assumed = {"cpu": "100m", "memory": "200Mi"}
    naming = bare | {
        kind: [
            container | {"resources": {"requests": assumed | container["resources"]["requests"]}}
            for container in bare[kind]
        ]
        for kind in ("containers", "initContainers")
    }
    demand = bound(naming, version)
    assert load(demand) == (demand.amounts["cpu"], demand.amounts["memory"])
    assert load(bound(bare, version)) == load(incoming(bare)) == load(incoming(asked)) == load(demand)
