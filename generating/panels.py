"""A Grafana dashboard as rows of panels, laid out from left to right on 24 columns."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from generating.promql import select_installations

Kind = Literal["stat", "timeseries", "heatmap"]
Answer = Literal["always", "after a move", "perhaps"]

_COLUMNS = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    expression: str
    legend: str = ""
    answers: Answer = "always"
    """When it must return data: always, once a pod was moved, or perhaps never."""


class Panel(NamedTuple):
    title: str
    kind: Kind
    description: str
    """What the panel shows."""
    queries: tuple[Query, ...]
    unit: str = "short"
    width: int = 8
    height: int = 7
    steps: tuple[tuple[str, float | None], ...] = ()
    """Thresholds: a colour and the value from which it applies; None for the first."""
    stacked: bool = False


class Row(NamedTuple):
    title: str
    panels: tuple[Panel, ...]


class Dashboard(NamedTuple):
    title: str
    uid: str
    description: str
    rows: tuple[Row, ...]
    metric: str
    """One that every installation has: it tells which clusters and namespaces can be chosen."""


def write_dashboard(dashboard: Dashboard) -> dict[str, Any]:
    """Return the JSON model that Grafana imports."""
    return {
        "title": dashboard.title,
        "uid": dashboard.uid,
        "description": dashboard.description,
        "tags": ["reberth"],
        "editable": True,
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": _write_variables(dashboard.metric)},
        "panels": list(_lay_out(dashboard.rows)),
    }


def list_queries(dashboard: Dashboard) -> Iterator[tuple[str, Query]]:
    """Return each query, as Grafana has it, with the title of its panel."""
    for row in dashboard.rows:
        for panel in row.panels:
            yield from ((panel.title, _select(query)) for query in panel.queries)


def _select(query: Query) -> Query:
    return query._replace(expression=select_installations(query.expression))


def _write_variables(metric: str) -> list[dict[str, Any]]:
    """Write what can be chosen above the panels. All also means series without the label."""
    within = metric + '{cluster=~"$cluster"}'
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
        _write_variable("cluster", f"label_values({metric}, cluster)"),
        _write_variable("namespace", f"label_values({within}, namespace)"),
    ]


def _write_variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _lay_out(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    number, top = 0, 0
    for row in rows:
        number, top = number + 1, top + 1
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top - 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place}
        left, height = 0, 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                left, top, height = 0, top + height, 0
            number += 1
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            yield {"id": number, "gridPos": place, **_write_panel(panel)}
            left, height = left + panel.width, max(height, panel.height)
        top += height


def _write_panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "targets": [
            _write_target(panel, query, refers)
            for refers, query in zip("ABCDEFGH", panel.queries, strict=False)
        ],
        "fieldConfig": {"defaults": _write_defaults(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
    }


def _write_target(panel: Panel, query: Query, refers: str) -> dict[str, Any]:
    return {
        "refId": refers,
        "datasource": _SOURCE,
        "expr": select_installations(query.expression),
        "legendFormat": query.legend or "__auto",
        "format": "heatmap" if panel.kind == "heatmap" else "time_series",
        "instant": panel.kind == "stat",
        "range": panel.kind != "stat",
    }


def _write_defaults(panel: Panel) -> dict[str, Any]:
    steps = [{"color": color, "value": value} for color, value in panel.steps or (("text", None),)]
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
    }
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none"}
        defaults["custom"] = {"fillOpacity": 20 if panel.stacked else 5, "stacking": stacking}
    return defaults


_OPTIONS: dict[Kind, dict[str, Any]] = {
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background", "graphMode": "none"},
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    "heatmap": {"calculate": False, "cellGap": 1, "yAxis": {"unit": "percentunit"}},
}
