"""What code writes: the committed files, the commented policy, the dashboard, the alerts."""

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import yaml

from extender.server import metrics as of_extender
from federation.hub import metrics as of_federation
from federation.hub.telemetry import application_metrics as of_applications
from federation.hub.telemetry import failover_metrics as of_failover
from federation.hub.telemetry import interpreter_metrics as of_interpreters
from federation.hub.telemetry import rebalance_metrics as of_rebalancing
from generating.__main__ import main
from generating.alerts import ALERTS, RUNBOOKS, Alert, write_alerts
from generating.commented_settings import Undocumented, write_settings, write_value
from generating.federation_dashboard import FEDERATION_DASHBOARD
from generating.files import EXAMPLES, ROOT, generate
from generating.panels import Dashboard, list_queries, write_dashboard
from generating.rescheduler_dashboard import RESCHEDULER_DASHBOARD
from reberth.config.settings import Section, parse
from reberth.memory.rates import Rate
from reberth.runtime import metrics as of_library
from reberth.values.duration import Duration, Percentage
from rescheduler.planning.policy_file import ReschedulerPolicy
from rescheduler.telemetry import metrics as of_rescheduler

POLICY = ROOT / "manifests" / "rescheduler" / "21-policy.yaml"
_METRIC = re.compile(r"\b((?:reberth|process)_[a-z_]+)(?:\{([^}]*)\})?")
_OF_PROMETHEUS = {"instance", "le", "cluster", "namespace"}
_AGGREGATION = re.compile(r"\b(sum|min|max|avg|count|group|topk|bottomk|quantile)\b(?: by \(([^)]*)\))?")
MODULES = (
    of_library,
    of_extender,
    of_rescheduler,
    of_federation,
    of_rebalancing,
    of_failover,
    of_interpreters,
    of_applications,
)
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
    monkeypatch.setattr("generating.__main__.generate", lambda **_: {stale: "new"})
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


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_keeps_installations_apart(alert: Alert) -> None:
    aggregations = _AGGREGATION.findall(alert.expression)
    assert aggregations
    assert all(labels.startswith("cluster, namespace") for _, labels in aggregations)
    assert "without (" not in alert.expression


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.uid)
def test_every_query_of_a_dashboard_follows_its_variables(dashboard: Dashboard) -> None:
    written = write_dashboard(dashboard)
    source, *variables = written["templating"]["list"]
    assert source["type"] == "datasource"
    assert [(one["name"], one["includeAll"], one["allValue"]) for one in variables] == [
        ("cluster", True, ".*"),
        ("namespace", True, ".*"),
    ]
    known = _labels_of_metrics()
    assert all(dashboard.metric in known and dashboard.metric in one["query"]["query"] for one in variables)
    chosen = 'cluster=~"$cluster", namespace=~"$namespace"'
    expressions = [target["expr"] for panel in written["panels"] for target in panel.get("targets", ())]
    assert expressions == [query.expression for _, query in list_queries(dashboard)]
    for expression in expressions:
        assert all(selector.startswith(chosen) for _, selector in _METRIC.findall(expression)), expression


def test_every_alert_leads_to_its_section_in_the_runbooks() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)
    sections = dict(_read_sections((ROOT / RUNBOOKS).read_text()))
    assert [name for name in sections if name.startswith("reberth")] == [one.name.lower() for one in ALERTS]
    for rule in write_alerts(ALERTS)["groups"][0]["rules"]:
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert page == RUNBOOKS
        assert re.findall(r"^\*\*(.*?):\*\*", sections[anchor], re.MULTILINE) == ["Seen", "It means", "Do"]


def test_the_runbooks_can_be_links_to_where_the_repository_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = []
    monkeypatch.setattr("generating.__main__.generate", lambda docs_url: given.append(docs_url) or {})
    for url in ([], ["--docs-url", "https://example.com/main"], ["--docs-url", "https://example.com/main/"]):
        monkeypatch.setattr("sys.argv", ["generating", "--check", *url])
        assert main() == 0
    assert given == ["", "https://example.com/main/", "https://example.com/main/"]
    text = generate(docs_url="https://example.com/main/")[ROOT / "grafana" / "alerts.yaml"]
    assert text.count("runbook_url: https://example.com/main/docs/runbooks.md#reberth") == len(ALERTS)


def _read_sections(text: str) -> Iterator[tuple[str, str]]:
    """Read a page's sections, with the anchor that a heading gets."""
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        heading, _, content = section.partition("\n")
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"), content


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
