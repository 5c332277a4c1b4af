"""What code writes: the committed files, the commented policy, the dashboard, the alerts."""

import re
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import yaml

from extender.server import metrics as of_extender
from federation.hub import rebalance_metrics as of_rebalancing
from generating.__main__ import main
from generating.alerts import ALERTS
from generating.commented_settings import Undocumented, write_settings, write_value
from generating.federation_dashboard import FEDERATION_DASHBOARD
from generating.files import EXAMPLES, ROOT, generate
from generating.panels import Dashboard, list_queries, write_dashboard
from generating.rescheduler_dashboard import RESCHEDULER_DASHBOARD
from reberth.config.settings import Section, parse
from reberth.memory.ledger import Rate
from reberth.runtime import metrics as of_library
from reberth.values.duration import Duration, Percentage
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.telemetry import metrics as of_rescheduler

POLICY = ROOT / "manifests" / "rescheduler" / "21-policy.yaml"
_METRIC = re.compile(r"\b((?:reberth|process)_[a-z_]+)(?:\{([^}]*)\})?")
_OF_PROMETHEUS = {"instance", "le"}
MODULES = (of_library, of_extender, of_rescheduler, of_rebalancing)
DASHBOARDS = (RESCHEDULER_DASHBOARD, FEDERATION_DASHBOARD)
EXPRESSIONS = {
    **{
        f"{title} {number}": query.expression
        for dashboard in DASHBOARDS
        for number, (title, query) in enumerate(list_queries(dashboard))
    },
    **{alert.name: alert.expression for alert in ALERTS},
}


@pytest.mark.parametrize("path", generate(), ids=lambda path: path.name)
def test_a_committed_file_is_up_to_date(path: Path) -> None:
    assert path.read_text() == generate()[path], "python -m generating writes it anew"


def test_the_check_names_stale_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "grafana" / "alerts.yaml"
    monkeypatch.setattr("generating.__main__.ROOT", tmp_path)
    monkeypatch.setattr("generating.__main__.generate", lambda: {stale: "new"})
    said = []
    for arguments, code in (["--check"], 1), ([], 0), (["--check"], 0):
        monkeypatch.setattr("sys.argv", ["generating", *arguments])
        assert main() == code
        said.append(capsys.readouterr().out)
    assert said == ["stale: grafana/alerts.yaml\n", "written: grafana/alerts.yaml\n", ""]


def test_the_commented_policy_holds_every_default_and_is_valid() -> None:
    held = yaml.safe_load(POLICY.read_text())["data"]["policy.yaml"]
    assert parse(held.encode(), ReschedulerPolicy) == ReschedulerPolicy()
    lines = held.splitlines()[2:]
    fields = [number for number, line in enumerate(lines) if not line.lstrip().startswith("#")]
    assert len(fields) == _count_fields(ReschedulerPolicy())
    assert all(lines[number - 1].lstrip().startswith("# ") for number in fields)


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_in_a_policy_comment_is_valid_for_its_field(path: str) -> None:
    content: Any = yaml.safe_load(EXAMPLES[path])
    for part in reversed(path.split(".")):
        content = {part: content}
    head = {"apiVersion": "reberth.dev/v1alpha1", "kind": "ReschedulerPolicy"}
    assert parse(yaml.safe_dump({**head, **content}).encode(), ReschedulerPolicy) != ReschedulerPolicy()
    assert f"# For example: {EXAMPLES[path]}" in POLICY.read_text()


class Told(Section, frozen=True):
    """A section."""

    berths: Annotated[int, msgspec.Meta(ge=1)] = 3
    """How many."""


class Outer(Told, frozen=True):
    """One that comes from another."""

    inner: Told = Told()
    """What is within."""


class Silent(Section, frozen=True):
    """One that says nothing of its field."""

    berths: int = 3


def test_fields_that_are_inherited_or_within_bring_their_texts() -> None:
    written = (
        "# How many.\nberths: 3\n# What is within.\ninner:\n  # How many.\n  # For example: 4\n  berths: 3\n"
    )
    assert write_settings(Outer(), {"inner.berths": "4"}) == written


def test_a_field_without_a_text_is_not_written() -> None:
    with pytest.raises(Undocumented, match=r"Silent\.berths"):
        write_settings(Silent(), {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (7, "7"),
        ("no", '"no"'),
        ("", '""'),
        ("Europe/Berlin", "Europe/Berlin"),
        (Duration(5400), "90m"),
        (Duration(7200), "2h"),
        (Duration(0.25), "250ms"),
        (Percentage(0.125), "12.5%"),
        (Rate((10, 600.0)), '"10 per 10m"'),
        ((Percentage(0.5), "a"), "[50%, a]"),
        ({"cpu": Percentage(1)}, "{cpu: 100%}"),
    ],
)
def test_a_value_is_written_as_people_write_it(value: object, text: str) -> None:
    assert write_value(value) == text


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=list(EXPRESSIONS))
def test_every_metric_and_label_of_a_query_exists(expression: str) -> None:
    known = _labels_of_metrics()
    found = _METRIC.findall(expression)
    assert found
    allowed = set(_OF_PROMETHEUS)
    for name, selector in found:
        assert name in known, name
        assert set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)) <= known[name] | _OF_PROMETHEUS
        allowed |= known[name]
    for listed in re.findall(r"\b(?:by|on|ignoring|without) \(([^)]*)\)", expression):
        assert {label.strip() for label in listed.split(",")} <= allowed


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_panels_do_not_overlap_and_have_a_description(dashboard: Dashboard) -> None:
    panels = write_dashboard(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        apart = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    assert all(panel["description"] and panel["targets"] for panel in panels if panel["type"] != "row")


def test_the_documents_tell_of_every_alert() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    texts = {alert.document: (ROOT / alert.document).read_text() for alert in ALERTS}
    assert [alert.name for alert in ALERTS if f"`{alert.name}`" not in texts[alert.document]] == []


def _labels_of_metrics() -> dict[str, set[str]]:
    """The labels of each name that a scrape shows."""
    held = [vars(module).values() for module in MODULES]
    metrics = [
        one for values in held for one in values if hasattr(one, "describe") and not isinstance(one, type)
    ]
    known: dict[str, set[str]] = {}
    for metric in metrics:
        for family in metric.describe():
            labels = {*getattr(metric, "_labelnames", ()), *getattr(family, "_labelnames", ())}
            suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}
            for suffix in suffixes.get(family.type, ("",)):
                if suffix == "_sum" and getattr(metric, "_upper_bounds", (0,))[0] < 0:
                    continue  # which would not only grow
                extra = {"le"} if suffix == "_bucket" else set()
                known[f"{family.name}{suffix}"] = labels | extra
    return known


def _count_fields(section: msgspec.Struct) -> int:
    values = [getattr(section, field.name) for field in msgspec.structs.fields(section)]
    return sum(1 + (_count_fields(one) if isinstance(one, msgspec.Struct) else 0) for one in values)
