"""What a report says of a cluster, and that it depends on nothing but the cluster."""

from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from reberth.cluster.object_files import load_objects
from rescheduler.model.rules import PROTECTIONS
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.report.cluster_report import Amounts, ClusterReport, make_report
from rescheduler.report.output import SHOWN_MOVES, write_json, write_text
from rescheduler.report.page import write_page
from rescheduler.report.steps import list_steps
from tests.support.builders import Object, node, pod
from tests.support.repository import ROOT
from tests.support.rescheduler.plans import MODEL, NOW, PLAIN_MODEL, VERSION, policy, replica

CASES = ROOT / "tests" / "cases"
ROOMY = CASES / "a2-preferred-node-with-room" / "objects.yaml"
VOID = {"br", "hr", "img", "input", "link", "meta", "rect", "line"}


def report(*objects: Object, settings: ReschedulerPolicy | None = None, model: Any = MODEL) -> ClusterReport:
    reading = load_objects(list(objects), now=NOW, version=VERSION)
    assert not reading.faults
    return make_report(reading.snapshot, settings or ReschedulerPolicy(), model)


def owner(replicas: int, name: str = "web") -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-default-{name}"},
        "spec": {"replicas": replicas},
        "status": {"replicas": replicas, "readyReplicas": replicas},
    }


def crowded(replicas: int) -> list[Object]:
    """A full node beside two empty ones, and a workload with all its replicas on it."""
    nodes = [node(name, cpu="16", memory="64Gi") for name in ("full", "free-1", "free-2")]
    return [*nodes, owner(replicas), *(replica(f"web-{n}", "web", "full", cpu="1") for n in range(replicas))]


def read_case() -> ClusterReport:
    reading = load_objects(ROOMY.read_bytes(), now=NOW, version=VERSION)
    return make_report(reading.snapshot, ReschedulerPolicy(), PLAIN_MODEL)


def test_each_pod_may_be_moved_or_counts_for_one_rule() -> None:
    bare = [pod(f"bare-{number}", node="full", cpu="500m", memory="1Gi") for number in range(3)]
    found = report(*crowded(4), *bare)
    assert found.everything == Amounts(7, 5.5, 3.0)
    assert found.movable == Amounts(4, 4.0, 0.0)
    (held,) = found.held_back
    assert (held.rule, held.amounts) == ("BarePod", Amounts(3, 1.5, 3.0))
    assert held.meaning == PROTECTIONS["BarePod"]
    assert held.example == "default/bare-0"


def test_how_fast_moves_may_be_made_does_not_matter() -> None:
    slow = policy(limits={"perCycle": 1, "perWorkload": 1, "perNode": 1, "rates": {"cluster": ["1 per 1h"]}})
    made = report(*crowded(16), settings=slow)
    assert len(made.moves) > 1
    assert made.moves == report(*crowded(16)).moves
    assert {each.mode for each in made.moves} == {"recommend"}


def test_the_moves_even_the_nodes_out() -> None:
    found = report(*crowded(16))
    cpu, memory = found.balance
    assert cpu.before == (2, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    assert sum(cpu.after) == 3
    assert cpu.after != cpu.before
    assert cpu.share == round(16 / 48, 3)
    assert memory.before == memory.after == (3, *(0,) * 9)
    assert found.score_after.spread < found.score.spread


def test_each_policy_is_tried_alone_and_named_with_its_purpose() -> None:
    found = report(*crowded(16))
    (gain,) = found.policies
    assert (gain.policy, gain.moves, gain.is_cut) == ("underUtilisedNodes", len(found.moves), False)
    assert sum(gain.levels.values()) == gain.moves == 4
    (step,) = list_steps(found)
    assert step.startswith("Switch on underUtilisedNodes: 4 moves would even the nodes out (")


def test_a_policy_that_is_off_is_tried_and_so_is_every_level() -> None:
    off = policy(level=1, policies={"underUtilisedNodes": {"enabled": False}})
    found = report(*crowded(16), settings=off)
    assert [(gain.policy, gain.moves) for gain in found.policies] == [("underUtilisedNodes", 4)]
    assert found.moves == (), "the plan of all policies is that of the settings"


def test_what_is_only_too_much_at_once_is_no_refusal() -> None:
    nodes = [node("full", cpu="160", pods="400"), node("free", cpu="160", pods="400")]
    replicas = [replica(f"web-{n:03}", "web", "full", cpu="600m") for n in range(240)]
    found = report(*nodes, owner(240), *replicas)
    assert found.is_cut
    assert "NotesFull" not in {each.rule for each in found.repeated}
    assert "or more moves" in next(list_steps(found))


def test_what_could_not_be_read_is_said_in_the_report_itself() -> None:
    reading = load_objects(crowded(16), now=NOW, version=VERSION)
    gaps = tuple(f"planned without kind-{number}: forbidden" for number in range(50))
    found = make_report(reading.snapshot, ReschedulerPolicy(), MODEL, gaps=gaps)
    assert found.warnings[:20] == gaps[:20]
    assert "Note: planned without kind-0: forbidden." in write_text(found, width=200)
    assert "planned without kind-0: forbidden" in write_page(found)


def test_what_the_extender_adds_is_told_where_kube_scheduler_does_not_ask_it() -> None:
    assert report(*crowded(16)).without_extender is None
    found = report(*crowded(16), model=PLAIN_MODEL)
    assert found.without_extender == len(found.moves) == 4
    assert not any("without it" in step for step in list_steps(found)), "it adds nothing here"
    fewer = msgspec.structs.replace(found, without_extender=1)
    assert any("without it 1 of the 4 moves would pay" in step for step in list_steps(fewer))


def test_a_cluster_in_which_nothing_pays_is_told_so_and_what_keeps_it_in_place() -> None:
    bare = [pod(f"bare-{number}", node="full", cpu="500m") for number in range(3)]
    found = report(node("full", cpu="16"), *bare)
    first, second = list_steps(found)
    assert first == "Nothing needs to move: no policy finds a move that is worth it."
    assert second == (
        "BarePod keeps 1.5 cores in place: create such pods by a Deployment or another controller."
    )


def test_an_empty_cluster_has_a_report() -> None:
    found = report()
    assert found.everything == found.movable == Amounts(0, 0.0, 0.0)
    assert write_text(found, width=80)
    assert write_page(found)


def test_the_same_cluster_gives_the_same_bytes() -> None:
    assert write_json(read_case()) == write_json(read_case())
    assert write_page(read_case()) == write_page(read_case())
    assert msgspec.json.decode(write_json(read_case()), type=ClusterReport) == read_case()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_text_keeps_to_the_width_of_the_terminal(width: int) -> None:
    for found in (read_case(), everything()):
        assert max(map(len, write_text(found, width=width).splitlines())) <= max(width, 60)


class Checker(HTMLParser):
    """Fails on a tag that is closed in the wrong place, and lists what a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [f"{tag} {name}" for name, _ in attrs if name in {"src", "href", "onclick"}]
        self.loaded += [tag] if tag == "script" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def everything() -> ClusterReport:
    """A report with something in each of its parts, and more moves than are shown."""
    bare = [pod(f"bare-{number}", node="free-1", cpu="500m", memory="1Gi") for number in range(3)]
    nodes = [node("full", cpu="30", pods="200"), node("free-1", cpu="32"), node("going", unschedulable=True)]
    replicas = [replica(f"web-{n:03}", "web", "full", cpu="500m") for n in range(12)]
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "api", "namespace": "default", "uid": "uid-pdb", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "api"}}},
        "status": {
            "disruptionsAllowed": 0,
            "observedGeneration": 1,
            "desiredHealthy": 2,
            "currentHealthy": 2,
        },
    }
    kept = [replica(f"api-{n}", "api", "full", cpu="1") for n in range(25)]
    owners = [
        owner(12),
        {**owner(2), "metadata": {"name": "api", "namespace": "default", "uid": "uid-default-api"}},
    ]
    return report(*nodes, *owners, budget, *replicas, *kept, *bare)


def test_each_part_is_written_and_the_first_of_many_moves() -> None:
    found = everything()
    assert len(found.moves) > SHOWN_MOVES
    text, page = write_text(found, width=100), write_page(found)
    assert f"MOVES THAT PAY: {len(found.moves)}; the first {SHOWN_MOVES}" in text
    assert f"The first {SHOWN_MOVES} of {len(found.moves)}; -o json has all of them." in page
    for said in ("BarePod", "1.5 cores", "PDB api allows 0"):
        assert said in page
    assert "WHAT CANNOT MOVE: all but 37 pods" in text
    assert "BarePod  3     1.5    The pod has no controller" in text
    assert "PDB        underUtilisedNodes  25" in text


def test_the_page_is_whole_and_loads_nothing() -> None:
    for found in (read_case(), everything(), report()):
        checker = Checker()
        checker.feed(write_page(found))
        assert checker.open == []
        assert checker.loaded == []


def test_texts_of_others_stay_texts() -> None:
    found = read_case()
    evil = msgspec.structs.replace(found.moves[0], reason="<script>alert(1)</script>\x1b[31m")
    found = msgspec.structs.replace(found, moves=(evil,), warnings=("<b>\x1b[31m",))
    checker = Checker()
    checker.feed(write_page(found))
    assert checker.loaded == []
    assert "\x1b" not in write_text(found, width=80)
