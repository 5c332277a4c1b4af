"""Paths of the repository's own files."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MANIFESTS = ROOT / "manifests"
ALERT_RULES = ROOT / "grafana" / "alerts.yaml"
