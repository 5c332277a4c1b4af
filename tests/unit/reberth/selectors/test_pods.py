"""Terms of pod affinity: which pods they select."""

import pytest

from reberth.records import Labels, LabelSelector, LabelSelectorRequirement, PodAffinityTerm
from reberth.selectors import SelectorError, compile_pod_term

WEB = LabelSelector(match_labels={"app": "web"})
TEAM = LabelSelector(match_labels={"team": "blue"})
EMPTY = LabelSelector()
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("a", "NotIn"),))
BLUE = {"team": "blue"}


def term(
    selector: LabelSelector | None = WEB,
    namespaces: tuple[str, ...] | None = None,
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    return PodAffinityTerm("zone", selector, namespaces, namespace_selector)


@pytest.mark.parametrize(
    ("asked", "namespace", "namespace_labels", "meant"),
    [
        (term(), "own", {}, True),
        (term(), "other", {}, False),
        (term(namespaces=()), "own", {}, True),
        (term(namespaces=("other",)), "other", {}, True),
        (term(namespaces=("other",)), "own", {}, False),
        (term(namespace_selector=EMPTY), "other", {}, True),
        (term(namespace_selector=EMPTY), "own", None, True),
        (term(namespace_selector=TEAM), "other", BLUE, True),
        (term(namespace_selector=TEAM), "own", {}, False),
        (term(namespace_selector=TEAM), "own", None, False),
        (term(namespaces=("other",), namespace_selector=TEAM), "other", {}, True),
        (term(namespaces=("other",), namespace_selector=TEAM), "third", BLUE, True),
        (term(namespaces=("other",), namespace_selector=TEAM), "own", {}, False),
    ],
)
def test_namespaces_are_named_selected_or_the_pods_own(
    asked: PodAffinityTerm, namespace: str, namespace_labels: Labels | None, *, meant: bool
) -> None:
    compiled = compile_pod_term(asked, "own")
    assert compiled.matches(namespace, {"app": "web"}, namespace_labels=namespace_labels) is meant
    assert not compiled.matches(namespace, {"app": "db"}, namespace_labels=namespace_labels)


def test_no_label_selector_means_no_pod_and_an_empty_one_every_pod() -> None:
    for labels in (None, {}, {"app": "web"}):
        assert not compile_pod_term(term(None), "own").matches("own", labels, namespace_labels=None)
        assert compile_pod_term(term(EMPTY), "own").matches("own", labels, namespace_labels=None)


def test_equal_terms_of_one_namespace_are_one_key_and_keep_their_topology() -> None:
    assert {compile_pod_term(term(), "own")} == {compile_pod_term(term(), "own")}
    assert compile_pod_term(term(), "own") != compile_pod_term(term(), "other")
    assert compile_pod_term(term(), "own").topology_key == "zone"


@pytest.mark.parametrize("malformed", [term(BAD), term(namespace_selector=BAD)])
def test_a_malformed_selector_is_an_error(malformed: PodAffinityTerm) -> None:
    with pytest.raises(SelectorError):
        compile_pod_term(malformed, "own")
