"""The nodes that can reach a volume, found by many or few labels."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reberth.forecast.volumes.reachability import find_reachable, is_reachable, read_node_affinity
from reberth.records import NodeSelector
from tests.support.builders import as_record, node
from tests.support.forecast.volumes import HOSTNAME, ZONE
from tests.support.forecast.worlds import world

MANY = 140
RARE = 3


def labels_of(number: int) -> dict[str, str]:
    rare = {"rare": "x"} if number < RARE else {}
    return {HOSTNAME: f"h{number}", ZONE: "ab"[number % 2], **rare}


VIEW = world(*(node(f"n{number:03}", labels=labels_of(number)) for number in range(MANY)))
LABELS = [record.metadata.labels or {} for record in VIEW.nodes.records]
requirements = st.sampled_from(
    [
        {"key": HOSTNAME, "operator": "In", "values": ["h7"]},
        {"key": HOSTNAME, "operator": "In", "values": ["h2"]},
        {"key": HOSTNAME, "operator": "In", "values": ["h7", "h90"]},
        {"key": HOSTNAME, "operator": "In", "values": ["unknown"]},
        {"key": ZONE, "operator": "In", "values": ["a"]},
        {"key": ZONE, "operator": "NotIn", "values": ["a"]},
        {"key": "rare", "operator": "In", "values": ["x"]},
        {"key": "rare", "operator": "Exists"},
        {"key": "missing", "operator": "In", "values": ["x"]},
    ]
)
terms = st.fixed_dictionaries({"matchExpressions": st.lists(requirements, min_size=1, max_size=3)})


def holds(requirement: dict[str, Any], labels: dict[str, str]) -> bool:
    value = labels.get(requirement["key"])
    known = {"In": value in requirement.get("values", ()), "Exists": value is not None}
    return known.get(requirement["operator"], not known["In"])


@settings(deadline=None)
@given(st.lists(terms, max_size=3))
def test_the_nodes_near_a_volume_are_those_that_its_affinity_means(
    alternatives: list[dict[str, Any]],
) -> None:
    selector = as_record(NodeSelector, {"nodeSelectorTerms": alternatives})
    expected = [
        number
        for number, labels in enumerate(LABELS)
        if any(all(holds(each, labels) for each in term["matchExpressions"]) for term in alternatives)
    ]
    found = read_node_affinity(selector)
    assert find_reachable(VIEW.facts, found).tolist() == expected
    assert is_reachable(VIEW.facts, found).nonzero()[0].tolist() == expected


def test_a_volume_without_affinity_is_reachable_everywhere() -> None:
    assert find_reachable(VIEW.facts, read_node_affinity(None)).tolist() == list(range(MANY))
